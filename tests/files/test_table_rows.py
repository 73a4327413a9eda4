"""What a table's mapping decides about rows and identifiers: rows of `end`, social security numbers, remedies of refused rows."""

import json
import re
from typing import Any

import pytest

from frontdesk.mapping.parser import parse_mapping
from tests.conftest import SetClock
from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.formats.reading import MEMBER, file_834
from tests.formats.workbooks import workbook

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
            else f"Robin|Sample {number}|1980-02-03|female|02134|2026-01-01"
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


ISSUED = ["123456789", "665010001", "001 01 0001", "899-99-9999"]
OWN = ["000123456", "E2", "E3", "12345678"]


@pytest.mark.parametrize("write", [written, workbook, as_json])
@pytest.mark.parametrize("column", ["external_id", "member_id"])
def test_a_table_that_takes_social_security_numbers_is_refused_as_a_whole_unless_its_mapping_says_so(
    desk: Desk, column: str, write: Any
) -> None:
    rows = table(*(f"{number}||Active" for number in range(8)))
    at = rows[0].index(column)
    for row, number in zip(rows[1:], [*ISSUED, "123-45-6789", *OWN], strict=False):
        row[at] = number
    file = desk.load(write(rows), mapping=MAPPING)
    assert (file.state, file.problem["code"], desk.count("members")) == ("failed", "looks_like_ssn", 0)  # type: ignore[index]
    assert column in str(file.problem)
    assert '"ssn": "plain"' in str(file.problem)
    assert "123" not in str(file.problem)
    rows[1][at] = "E1"  # half of them are not more than half
    assert desk.load(write(rows), mapping=MAPPING).counts == {"created": 8}
    rows[1][at] = "123456788"
    assert desk.load(write(rows), mapping=MAPPING | {"ssn": "plain"}).state == "done"


def test_a_rule_that_makes_an_identifier_of_such_numbers_is_refused_too(desk: Desk) -> None:
    mapping = MAPPING | {"fields": {"member_id": {"column": ["first_name", "last_name"], "join": ""}}}
    content = written(table("1||Active")).replace(b"Robin,Sample 1", b"123,456789")
    assert desk.load(content, mapping=mapping).problem["code"] == "looks_like_ssn"  # type: ignore[index]


@pytest.mark.parametrize("is_table", [True, False])
def test_a_refused_row_of_a_table_says_what_to_put_into_the_mapping(desk: Desk, is_table: bool) -> None:
    file = desk.load(
        b"external_id,dob\nE1,02/30/1977\n" if is_table else file_834(MEMBER.split("N3*")[0]).encode()
    )
    hints = {line["field"]: line["hint"] for line in desk.report(file)}
    assert ('{"columns": {"its name": "zipcode"}}' in hints["zipcode"]) is is_table
    assert (
        '{"fields": {"effective_date": {"constant": "2026-01-01"}}}' in hints["effective_date"]
    ) is is_table
    if is_table:
        assert "family" in hints["zipcode"]
        for example in re.findall("{.*?}(?=,? or|$)", hints["zipcode"]):
            parse_mapping(json.loads(example))
        dates = {"fields": {"dob": {"dates": "MM/DD/YYYY"}}}
        wrong = desk.report(desk.load(b"external_id,dob\nE1,02/30/1977\n", mapping=dates))
        assert ["this day does not exist" in line["hint"] for line in wrong if line["field"] == "dob"] == [
            True
        ]
