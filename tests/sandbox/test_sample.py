"""`frontdesk sample`: writes to stdout or a file, packed by its name; needs no database."""

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(
    ("format_", "start"), [("csv", "external_id,"), ("jsonl", '{"external_id":'), ("834", "ISA*00*")]
)
def test_each_format_is_written(bare_cli: CommandLine, tmp_path: Path, format_: str, start: str) -> None:
    path = tmp_path / f"members.{format_}"
    told = bare_cli.text("sample", "--members", "1200", "--format", format_, "--out", str(path))
    assert " ".join(told.split()).startswith(f"1,200 invented members are in {path}.")
    assert ("identify" in told) is (format_ == "834")
    assert path.read_text().startswith(start)


def test_a_name_in_gz_packs_the_same_bytes_each_time(bare_cli: CommandLine, tmp_path: Path) -> None:
    paths = [tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"]
    for path in paths:
        asked = ("--members", "50", "--seed", "3", "--out", str(path))
        told = bare_cli.json("sample", *asked)
        assert told == {"path": str(path), "format": "csv", "members": 50, "seed": 3, "mapping": None}
    assert paths[0].read_bytes() == paths[1].read_bytes()
    plain = bare_cli.text("sample", "--members", "50", "--seed", "3")
    assert plain.startswith("external_id,member_id,first_name,")
    assert gzip.decompress(paths[0].read_bytes()).decode() == plain


def test_a_file_that_can_not_be_written_is_a_sentence(bare_cli: CommandLine, tmp_path: Path) -> None:
    said = bare_cli.refused("sample", "--members", "1", "--out", str(tmp_path / "missing" / "a.csv"))
    assert "can't be written: No such file or directory" in said


@pytest.mark.parametrize(
    ("words", "named"), [("0", "--members"), ("1 --format xml", "--format"), ("1 --json", "--out")]
)
def test_misuse_is_refused(bare_cli: CommandLine, words: str, named: str) -> None:
    assert named in bare_cli.refused("sample", "--members", *words.split(), status=2)
