"""Identifiers of tables that are made from names or birth dates hold a keyed digest of them."""

import json
import re
from typing import Any

import pytest

from tests.files.exports import names_in, written
from tests.files.loading import Desk
from tests.formats.reading import rows_of
from tests.formats.workbooks import workbook

HEAD = names_in("House|Given|last_name|Born|gender|zipcode|effective_date", "|")
ROWS = [
    ["H1", "Zebulon", "Quark", "02/03/1980", "male", "02134", "2026-01-01"],
    ["H1", "Kim", "Quark", "05/06/2010", "male", "02134", "2026-01-01"],
]
BY_NAME: dict[str, Any] = {
    "columns": {"Given": "first_name"},
    "fields": {
        "external_id": {"column": ["House", "Given", "Born"], "join": "-"},
        "member_id": {"column": ["House", "Given", "Born"], "join": "-"},
        "dob": {"column": "Born", "dates": ["MM/DD/YYYY"]},
    },
}


def as_json(rows: list[list[str]]) -> bytes:
    return json.dumps([dict(zip(rows[0], row, strict=True)) for row in rows[1:]]).encode()


def keys(content: bytes, mapping: dict[str, Any] = BY_NAME) -> list[str]:
    return [str(row.values["external_id"]) for row in rows_of(content, mapping=mapping)]


@pytest.mark.parametrize("write", [written, workbook, as_json])
def test_names_and_births_are_in_no_identifier_and_no_report_of_a_table(
    write: Any, desk: Desk
) -> None:
    bad = ["H2", "Zebulon", "Quark", "02/03/1980", "male", "nowhere", "2026-01-01"]
    file = desk.load(write([HEAD, *ROWS, bad]), mapping=BY_NAME)
    assert file.counts == {"created": 2, "refused": 1}
    members = desk.members()
    assert [key for key in members if not re.fullmatch("H1-[0-9a-f]{8}", key)] == []
    assert [key for key, each in members.items() if each["member_id"] != key] == []
    report = json.dumps(desk.report(file))
    assert [each for each in ("zebulon", "quark", "1980") if each in report.lower()] == []
    assert re.search('"H2-[0-9a-f]{8}"', report)
    again = desk.load(write([HEAD, *ROWS]), mapping=BY_NAME)
    assert again.counts == {"unchanged": 2}


def test_a_digest_bears_another_spelling_and_another_way_to_write_the_day() -> None:
    first = ["H1", "ZEBULON ", "Quark", "1980-02-03", *ROWS[0][4:]]
    assert keys(written([HEAD, first])) == keys(written([HEAD, ROWS[0]]))
    assert len({*keys(written([HEAD, *ROWS]))}) == 2


@pytest.mark.parametrize(
    ("composed", "in_parts"), [("Jos\u00e9", "Jose\u0301"), ("\uae40", "\u1100\u1175\u11b7")]
)
def test_an_accent_written_as_a_character_of_its_own_makes_no_second_member(
    composed: str, in_parts: str
) -> None:
    one, same, other = keys(
        written(
            [HEAD, *(["H1", name, *ROWS[0][2:]] for name in (composed, in_parts, in_parts[:1]))]
        )
    )
    assert (one == same, one == other) == (True, False)


def test_a_table_of_another_account_has_other_digests(desk: Desk, other: Desk) -> None:
    desk.load(written([HEAD, *ROWS]), mapping=BY_NAME)
    mine = set(desk.members())
    other.load(written([HEAD, *ROWS]), mapping=BY_NAME)
    assert (len(mine), len(set(desk.members()))) == (2, 4)


def test_an_identifier_of_names_alone_has_a_longer_digest() -> None:
    fields = BY_NAME["fields"] | {"external_id": {"column": ["Given", "last_name", "Born"]}}
    found = keys(written([HEAD, *ROWS]), BY_NAME | {"fields": fields})
    assert [len(key) for key in found] == [16, 16]
    # A full name in one column counts by its parts, however they are ordered.
    named: dict[str, Any] = {
        "fields": {
            "external_id": {"column": "Name"},
            "first_name": {"column": "Name", "part": "first_name"},
            "middle_name": {"column": "Name", "part": "middle_name"},
            "last_name": {"column": "Name", "part": "last_name"},
        }
    }
    cells = ["Quark, Zebulon", "Zebulon J. Quark", "Quark, Kim"]
    one, same, other = keys(written([["Name"], *([cell] for cell in cells)]), named)
    assert (one == same, one == other) == (True, False)


def test_a_row_that_lacks_a_part_of_its_identifier_has_none() -> None:
    lacks = ["H1", "", *ROWS[0][2:]]
    [row] = rows_of(written([HEAD, lacks]), mapping=BY_NAME)
    assert "external_id" not in row.values
