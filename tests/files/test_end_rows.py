"""Rows that end their members by a mapping's `end`: terminated employees in an HR export."""

import json
from typing import Any

import pytest

from tests.conftest import SetClock
from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.files.readers.workbooks import workbook

MAPPING: dict[str, Any] = {
    "columns": {"Until": "expiry_date"},
    "skip": [{"column": "Status", "equals": "test"}],
    "end": [{"column": "Status", "equals": ["Terminated"], "starts_with": "Dec"}],
}
HEAD = "external_id|member_id|first_name|last_name|dob|gender|zipcode|effective_date|Until|Status"


def table(*rows: str) -> list[list[str]]:
    """Of rows `number|until|status`; those with a status that ends have nothing else."""
    made = []
    for number, until, status in (names_in(row, "|") for row in rows):
        person = (
            "|||||"
            if status in ("TERMINATED", "deceased")
            else "Robin|Sample|1980-02-03|female|02134|2026-01-01"
        )
        made.append(names_in(f"E{number}|M{number}|{person}|{until}|{status}", "|"))
    return [names_in(HEAD, "|"), *made]


def as_json(rows: list[list[str]]) -> bytes:
    return json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]]).encode()


FIRST = table("1||Active", "2||Active", "3||Active")
SECOND = table("1||TERMINATED ", "2|2026-03-31|deceased", "3||Active", "4||TERMINATED", "5||test")


@pytest.mark.parametrize("write", [written, workbook, as_json])
@pytest.mark.parametrize("full", [False, True])
def test_a_row_of_end_ends_its_member_on_its_day_or_on_that_of_the_file(
    desk: Desk, write: Any, full: bool
) -> None:
    assert desk.load(write(FIRST), mapping=MAPPING).counts == {"created": 3}
    file = desk.load(write(SECOND), mapping=MAPPING, full=full)
    assert file.counts == {"ended": 2, "unchanged": 1, "skipped": 2, "warned": 1}
    assert [(each["outcome"], each["code"]) for each in desk.report(file)][3:] == [
        ("skipped", ""),
        ("warned", "nothing_to_end"),
        ("skipped", ""),
    ]
    ends = {key: str(member["expiry_date"]) for key, member in desk.members().items()}
    assert ends == {"E1": file.file_date, "E2": "2026-03-31", "E3": "None"}
    desk.undo(file)
    assert {str(member["expiry_date"]) for member in desk.members().values()} == {"None"}


def test_a_row_that_comes_every_night_ends_its_member_once_and_a_corrected_day_counts(
    desk: Desk, clock: SetClock
) -> None:
    desk.load(written(FIRST), mapping=MAPPING)
    first = desk.load(written(SECOND), mapping=MAPPING).file_date
    clock.advance(48 * 3600)
    assert desk.load(written(SECOND), mapping=MAPPING).counts["unchanged"] == 3
    assert str(desk.members()["E1"]["expiry_date"]) == first
    assert desk.load(written(table("2|2026-04-30|deceased")), mapping=MAPPING).counts == {"ended": 1}
    assert str(desk.members()["E2"]["expiry_date"]) == "2026-04-30"
    compared = desk.load(written(SECOND), mapping=MAPPING, mode="compare")
    assert compared.codes["differs"] == 1


def test_who_was_never_to_have_access_is_left_out_although_a_rule_of_end_applies(desk: Desk) -> None:
    desk.load(written(FIRST), mapping=MAPPING)
    both = MAPPING | {"skip": [{"column": "external_id", "equals": "E1"}]}
    assert desk.load(written(SECOND[:2]), mapping=both).problem["code"] == "no_rows"  # type: ignore[index]
    assert desk.members()["E1"]["expiry_date"] is None


def test_access_that_was_to_begin_later_ends_on_its_first_day(desk: Desk) -> None:
    desk.load(written(FIRST), mapping=MAPPING)
    file = desk.load(written(table("1|2025-12-31|deceased")), mapping=MAPPING)
    assert file.codes == {"ends_on_first_day": 1}
    assert str(desk.members()["E1"]["expiry_date"]) == "2026-01-01"


def test_ended_and_active_rows_of_one_member_are_both_refused(desk: Desk) -> None:
    file = desk.load(written(table("1||Active", "1||TERMINATED")), mapping=MAPPING)
    assert file.codes == {"repeated_differently": 2}
