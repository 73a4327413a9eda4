"""docs/wait-estimate.md says of the back-test what it does, and its examples are real."""

import re
from pathlib import Path

import pytest

from frontdesk.backtest import verdict, warnings
from frontdesk.backtest.encounters_csv import COLUMNS
from frontdesk.cli.queue_backtest import LEGEND
from tests.cli.conftest import CommandLine

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/wait-estimate.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```csv\n(.*?)```\s+```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=["call centre", "clinic"])
def test_a_file_of_the_page_is_judged_as_it_shows(
    bare_cli: CommandLine, tmp_path: Path, example: tuple[str, str]
) -> None:
    content, shown = example
    file = tmp_path / "encounters.csv"
    file.write_text(content, encoding="utf-8")
    found = bare_cli.json("queue", "backtest", "--csv", str(file))
    assert found["warnings"] == []
    text = bare_cli.text("queue", "backtest", "--csv", str(file))
    assert text.splitlines()[: len(shown.splitlines())] == shown.splitlines()


def rows_of(heading: str) -> dict[str, str]:
    """First and second column of each table below a heading."""
    section = PAGE.split(f"### {heading}\n")[1].split("\n### ")[0]
    return dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", section, re.MULTILINE))


def test_the_words_of_the_tables_are_those_of_the_command() -> None:
    shown = rows_of("The verdict")
    assert {word: shown.get(word) for word in LEGEND} == LEGEND


def test_each_column_warning_and_verdict_is_explained() -> None:
    assert set(COLUMNS) <= set(rows_of("The file"))
    made = {
        module: set(re.findall(pattern, Path(module.__file__ or "").read_text()))
        for module, pattern in (
            (warnings, r'BacktestWarning\(\s*"(\w+)"'),
            (verdict, r'Verdict\(\s*"(\w+)"'),
        )
    }
    assert len(made[warnings]) == 8
    assert made[warnings] <= set(rows_of("What can be wrong"))
    assert made[verdict] == {"too_early", "worse", "worse_in_places", "nearer"}
    assert made[verdict] | {"not_nearer"} <= set(rows_of("The verdict"))
