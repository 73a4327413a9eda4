"""`python -m bench` lists its questions, explains each benchmark and keeps the pages."""

import json
from pathlib import Path

import pytest

from bench.__main__ import NAMES, main, write
from bench.harness import README, Bench


def test_the_page_lists_every_benchmark() -> None:
    table = README.read_text().partition("| name | question |")[2].partition("\n\n")[0]
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == [
        f"| {name}" for name in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_explains_itself_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "?" in printed
    assert f"Example: python -m bench {name} --quick" in printed


def test_a_simulated_day_is_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    main(["wait", "--days", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    [everything] = [row for row in rows if row["days"] == "all days"]
    assert everything["newcomers"] == sum(
        row["newcomers"] for row in rows if row["days"].startswith("all, ")
    )
    assert everything["our error, s"] < everything["its error, s"]


def test_a_table_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- bench one -->old<!-- /bench one -->\n\nafter\n")
    bench = Bench("Why?", lambda _options, _progress: [], page=page)
    for name in ("one", "two", "two"):
        write(
            bench,
            name,
            [{"what": name, "count": 1234, "part": 0.12345, "nothing": None}],
            "a machine",
        )
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n\n<!-- bench one -->\n\n`python -m bench ")
    parts = ("| one | 1,234 | 0.123 |  |", "after", "| two | 1,234 | 0.123 |  |")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("| two |") == 1
