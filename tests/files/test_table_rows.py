"""What a table's mapping decides about rows and identifiers: rows of `end`, social security
numbers, remedies of refused rows.
"""

import json
import re
from typing import Any

import pytest

from frontdesk.mapping.parser import parse_mapping
from tests.conftest import SetClock
from tests.files.exports import names_in, written
from tests.files.loading import ON_SQLITE, Desk
from tests.formats.reading import MEMBER, file_834
from tests.formats.workbooks import workbook
from tests.mapping.suggesting import suggested

pytestmark = ON_SQLITE
MAPPING: dict[str, Any] = {
    "columns": {"Until": "expiry_date"},
    "skip": [{"column": "Status", "equals": "test"}],
    "end": [{"column": "Status", "equals": ["Terminated"], "starts_with": "Dec"}],
}
HEAD = "external_id|member_id|first_name|last_name|dob|gender|zipcode|effective_date|Until|Status"


def table(*rows: str) -> list[list[str]]:
    """Of rows `number|until|status`; those with a status that ends have nothing else."""
    lines = [HEAD]
    for number, until, status in (names_in(row, "|") for row in rows):
        person = f"Robin|Sample {number}|1980-02-03|female|02134|2026-01-01"
        person = "|||||" if status in ("TERMINATED", "deceased") else person
        lines.append(f"E{number}|M{number}|{person}|{until}|{status}")
    return [names_in(line, "|") for line in lines]


def as_json(rows: list[list[str]]) -> bytes:
    return json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]]).encode()


FIRST = table("1||Active", "2||Active", "3||Active")
SECOND = table("1||TERMINATED ", "2|2026-03-31|deceased", "3||Active", "4||TERMINATED", "5||test")


@pytest.mark.parametrize("write", [written, workbook, as_json])
@pytest.mark.parametrize("full", [False, True])
def test_a_row_of_end_ends_its_member_once_on_its_day_or_on_that_of_the_file(
    desk: Desk, clock: SetClock, write: Any, full: bool
) -> None:
    assert desk.load(write(FIRST), mapping=MAPPING).counts == {"created": 3}
    file = desk.load(write(SECOND), mapping=MAPPING, full=full)
    assert file.counts == {"ended": 2, "unchanged": 1, "skipped": 2, "warned": 1, "lost": 2}
    assert desk.codes(file)[3:] == [("skipped", ""), ("warned", "nothing_to_end"), ("skipped", "")]
    ends = {"E1": file.file_date, "E2": "2026-03-31", "E3": None}
    assert desk.ends() == ends
    clock.advance(48 * 3600)
    again = desk.load(write(SECOND), mapping=MAPPING)
    assert (again.counts["unchanged"], desk.ends()) == (3, ends)
    desk.undo(again)
    desk.undo(file)
    assert {*desk.ends().values()} == {None}


def test_a_corrected_day_counts_and_none_before_the_first(desk: Desk) -> None:
    desk.load(written(FIRST), mapping=MAPPING)
    desk.load(written(SECOND), mapping=MAPPING)
    assert desk.load(written(table("2|2026-04-30|deceased")), mapping=MAPPING).counts == {
        "ended": 1
    }
    compared = desk.load(written(SECOND), mapping=MAPPING, mode="compare")
    assert compared.codes["differs"] == 1
    file = desk.load(written(table("3|2025-12-31|deceased")), mapping=MAPPING)
    assert file.codes == {"ends_on_first_day": 1}
    assert desk.ends() == {"E1": "2026-11-20", "E2": "2026-04-30", "E3": "2026-01-01"}


def test_rows_to_skip_or_that_contradict_each_other_end_nobody(desk: Desk) -> None:
    desk.load(written(FIRST), mapping=MAPPING)
    both = MAPPING | {"skip": [{"column": "external_id", "equals": "E1"}]}
    assert "no_rows" in str(desk.load(written(SECOND[:2]), mapping=both).problem)
    file = desk.load(written(table("1||Active", "1||TERMINATED")), mapping=MAPPING)
    assert file.codes == {"repeated_differently": 2}
    assert desk.ends()["E1"] is None


ISSUED = ["123456789", "665010001", "001 01 0001", "899-99-9999"]
OWN = ["000123456", "E2", "E3", "12345678"]


HEADERS: list[dict[str, Any]] = [
    {"columns": {"Until": "expiry_date"}},
    MAPPING,
    {"fields": {"member_id": {"column": ["member_id", "zipcode"]}}},
]


@pytest.mark.parametrize("write", [written, workbook])
@pytest.mark.parametrize("mapping", HEADERS)
def test_the_header_again_between_the_rows_is_skipped_with_a_warning(
    desk: Desk, write: Any, mapping: dict[str, Any]
) -> None:
    rows = table(*(f"{number}||Active" for number in range(6)))
    header = rows[0]
    paged = [*rows[:3], header, *rows[3:5], [f" {name} " for name in header], *rows[5:]]
    file = desk.load(write(paged), mapping=mapping)
    assert file.counts == {"created": 6, "skipped": 2, "warned": 2}
    again = [line for line in desk.report(file) if line["row"] in (4, 7)]
    assert [(line["row"], line["outcome"], line["code"]) for line in again] == [
        (4, "skipped", ""),
        (4, "warned", "untidy_file"),
        (7, "skipped", ""),
        (7, "warned", "untidy_file"),
    ]
    assert "header" in again[1]["hint"]
    again_loaded = desk.load(write(paged), mapping=mapping, full=True)
    assert again_loaded.counts == {"unchanged": 6, "skipped": 2, "warned": 2}
    assert suggested(write(paged))["rows"] == 6


@pytest.mark.parametrize("write", [written, workbook, as_json])
@pytest.mark.parametrize("column", ["external_id", "member_id"])
def test_a_table_of_social_security_numbers_needs_a_mapping_that_says_so(
    desk: Desk, column: str, write: Any
) -> None:
    rows = table(*(f"{number}||Active" for number in range(8)))
    at = rows[0].index(column)
    for row, number in zip(rows[1:], [*ISSUED, "123-45-6789", *OWN], strict=False):
        row[at] = number
    file = desk.load(write(rows), mapping=MAPPING)
    assert (file.state, desk.count("members")) == ("failed", 0)
    said = str(file.problem)
    assert [text in said for text in ("looks_like_ssn", column, '"ssn": "plain"')] == [True] * 3
    assert "123" not in said
    rows[1][at] = "E1"  # half of them are not more than half
    assert desk.load(write(rows), mapping=MAPPING).counts == {"created": 8}
    rows[1][at] = "123456788"
    assert desk.load(write(rows), mapping=MAPPING | {"ssn": "plain"}).state == "done"
    joined = MAPPING | {"fields": {"member_id": {"column": ["external_id", "zipcode"], "join": ""}}}
    content = written(table("1||Active")).replace(b"E1", b"1234")
    assert "looks_like_ssn" in str(desk.load(content, mapping=joined).problem), (
        "a rule made it of two cells"
    )


def test_a_refused_row_of_a_table_says_what_to_put_into_the_mapping(desk: Desk) -> None:
    table_ = b"external_id,dob\nE1,02/30/1977\n"
    loop = file_834(MEMBER.split("N3*")[0]).encode()
    for content, is_table in ((table_, True), (loop, False)):
        hints = {line["field"]: line["hint"] for line in desk.report(desk.load(content))}
        assert ('{"columns": {"its name": "zipcode"}}' in hints["zipcode"]) is is_table
        constant = '{"fields": {"effective_date": {"constant": "2026-01-01"}}}'
        assert (constant in hints["effective_date"]) is is_table
        examples = re.findall("{.*?}(?=,? or|$)", hints["zipcode"]) if is_table else []
        assert ("family" in hints["zipcode"]) is is_table
        for example in examples:
            parse_mapping(json.loads(example))
    dates = {"fields": {"dob": {"dates": "MM/DD/YYYY"}}}
    [dob] = [
        line for line in desk.report(desk.load(table_, mapping=dates)) if line["field"] == "dob"
    ]
    assert "this day does not exist" in dob["hint"]
