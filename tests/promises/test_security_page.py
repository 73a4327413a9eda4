"""Each control in docs/security.md is where the page says, and the test that shows it is there,
unless it is not ours.
"""

import re
from pathlib import Path

import pytest

from frontdesk.db.schema import load_tables
from frontdesk.db.service_role import RIGHTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
ROWS = re.findall(
    r"^\| ((?:V|API)[\d.]+[^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", PAGE, re.MULTILINE
)
# Sections of ASVS 5.0 by chapter.
SECTIONS = [5, 4, 7, 4, 4, 8, 6, 4, 2, 7, 7, 3, 4, 3, 4, 5, 3]


def test_the_service_role_has_rights_to_every_table() -> None:
    """A table that is new: give it a line in RIGHTS, with no more than its statements need."""
    assert set(RIGHTS) == {*load_tables().tables, "alembic_version"}


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize(("numbers", "where", "tests"), [(row[0], row[2], row[3]) for row in ROWS])
def test_a_control_is_where_the_page_says_and_its_test_is_there(
    numbers: str, where: str, tests: str
) -> None:
    if where.startswith("not ours"):
        assert not named(tests)
        return
    assert named(where), numbers
    assert named(tests), numbers
    for name in named(where):
        assert any((root / name).is_file() for root in (ROOT / "src/frontdesk", ROOT)), name
    for name in named(tests):
        path, _, function = name.partition("::")
        assert f"def {function or 'test_'}" in (ROOT / path).read_text(), name


def test_no_chapter_is_left_out_and_no_requirement_stands_twice() -> None:
    controls = [
        number for numbers, *_ in ROWS for number in numbers.split() if number.startswith("V")
    ]
    assert len(controls) > 100
    assert len(controls) == len(set(controls))
    mentioned = set(re.findall(r"\bV(\d+)\b", PAGE))
    assert {str(chapter) for chapter, _ in enumerate(SECTIONS, 1)} <= mentioned
    for number in controls:
        chapter, section, _ = map(int, number.removeprefix("V").split("."))
        assert section <= SECTIONS[chapter - 1]
    ten = [numbers for numbers, *_ in ROWS if numbers.startswith("API")]
    assert ten == [f"API{n}" for n in range(1, 11)]
