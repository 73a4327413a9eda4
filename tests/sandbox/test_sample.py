"""Invented members: plausible, the same for the same seed, and the same people from every format
through its reader; `frontdesk sample` writes them to stdout or a file, packed by its name, without
a database.
"""

import gzip
import io
import tracemalloc
from itertools import groupby, islice
from pathlib import Path

import pytest

from frontdesk.eligibility import parse_member
from frontdesk.formats.model import Format
from frontdesk.mapping.model import read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from frontdesk.sandbox import SAMPLE_MAPPING
from frontdesk.sandbox.sample_files import MEMBERS_OF_A_TRANSACTION, SAMPLE_FORMATS, write_sample
from frontdesk.sandbox.sample_members import COLUMNS, sample_members
from tests.cli.conftest import CommandLine
from tests.formats.reading import Pieces, rows_of_stream

PEOPLE = list(sample_members(3000, seed=7))
IDS = {person["external_id"]: person for person in PEOPLE}
each_format = pytest.mark.parametrize("format_", SAMPLE_FORMATS)


def written(format_: Format, count: int, seed: int = 7) -> bytes:
    out = io.BytesIO()
    told = list(write_sample(sample_members(count, seed=seed), format_, out))
    assert told[-1:] == [count] * bool(count)
    return out.getvalue()


@each_format
def test_every_format_gives_back_the_same_members(format_: Format) -> None:
    _, rows = open_unread(
        io.BytesIO(written(format_, len(PEOPLE))), mapping=parse_mapping(SAMPLE_MAPPING)
    )
    given = [{name: value for name, value in person.items() if value} for person in PEOPLE]
    found = []
    for row in read_rows(rows):
        values = {**row.values}
        for coverage in row.context.coverages:  # those of an 834 give the dates
            values |= {"effective_date": coverage.begin, "expiry_date": coverage.end}
        found.append({name: value for name, value in values.items() if value})
    assert found == given


def test_the_same_seed_gives_the_same_people_and_another_one_others() -> None:
    assert list(sample_members(100, seed=7)) == PEOPLE[:100]
    assert written(Format.X12, 500) == written(Format.X12, 500)
    others = [person for seed in (8, 1007) for person in sample_members(500, seed=seed)]
    assert [person for person in others if person["external_id"] in IDS] == []


def test_every_member_is_without_fault_or_warning_and_unique() -> None:
    for person in PEOPLE:
        record = parse_member(
            {name: value for name, value in person.items() if value}, today="2026-11-20"
        )
        assert (record.faults, record.warnings, record.ignored) == ((), (), ())
        assert tuple(person) == COLUMNS
    families = [len(list(each)) for _, each in groupby(PEOPLE, lambda person: person["last_name"])]
    assert max(families) > 3  # people of one name come together
    assert sum(person["zipcode"].startswith("0") for person in PEOPLE) > 500
    for name in ("external_id", "member_id", "email"):
        given = [person[name] for person in PEOPLE if person[name]]
        assert len(set(given)) == len(given)


def test_an_834_has_no_more_members_in_a_transaction_than_the_guide_asks_for() -> None:
    content = written(Format.X12, MEMBERS_OF_A_TRANSACTION + 1).decode()
    assert [part.count("INS*") for part in content.split("~\nST*")] == [
        0,
        MEMBERS_OF_A_TRANSACTION,
        1,
    ]
    assert "~\nGE*2*1~\n" in content


@each_format
def test_memory_does_not_grow_with_the_file(
    format_: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The addresses of so many families are kept; the file has more.
    monkeypatch.setattr("frontdesk.mapping.addresses.FAMILIES_LIMIT", 50)

    def peak(count: int) -> int:
        content = written(format_, count)
        stream = Pieces(content[at : at + 4096] for at in range(0, len(content), 4096))
        tracemalloc.start()
        try:
            assert sum(1 for _ in rows_of_stream(stream)) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(300)  # what is kept for good: modules, caches
    assert peak(2500) - peak(800) < 256 * 1024


def test_nothing_is_written_for_nobody_but_what_frames_it() -> None:
    assert written(Format.JSON_LINES, 0) == b""
    assert written(Format.CSV, 0).decode() == ",".join(COLUMNS) + "\n"
    assert list(islice(sample_members(0, seed=1), 1)) == []


@pytest.mark.parametrize(
    ("format_", "start"),
    [("csv", "external_id,"), ("jsonl", '{"external_id":'), ("834", "ISA*00*")],
)
def test_each_format_is_written(
    bare_cli: CommandLine, tmp_path: Path, format_: str, start: str
) -> None:
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
        assert told == {
            "path": str(path),
            "format": "csv",
            "members": 50,
            "seed": 3,
            "mapping": None,
        }
    assert paths[0].read_bytes() == paths[1].read_bytes()
    plain = bare_cli.text("sample", "--members", "50", "--seed", "3")
    assert plain.startswith("external_id,member_id,first_name,")
    assert gzip.decompress(paths[0].read_bytes()).decode() == plain


def test_a_file_that_can_not_be_written_is_a_sentence(
    bare_cli: CommandLine, tmp_path: Path
) -> None:
    said = bare_cli.refused(
        "sample", "--members", "1", "--out", str(tmp_path / "missing" / "a.csv")
    )
    assert "can't be written: No such file or directory" in said


@pytest.mark.parametrize(
    ("words", "named"), [("0", "--members"), ("1 --format xml", "--format"), ("1 --json", "--out")]
)
def test_misuse_is_refused(bare_cli: CommandLine, words: str, named: str) -> None:
    assert named in bare_cli.refused("sample", "--members", *words.split(), status=2)
