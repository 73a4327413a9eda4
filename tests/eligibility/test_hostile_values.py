"""Values that are refused: the fault says what each looks like, never what it is, and what is made
to hurt costs nothing.
"""

from typing import Any

import pytest

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.field_kinds import _read_calendar_date
from frontdesk.eligibility.fields import FIELDS

LONG = 60_000


def codes(**body: Any) -> dict[str, str]:
    record = parse_member({"external_id": "X"} | body, today="2026-11-20")
    return {fault.field: fault.code for fault in record.faults}


ENCODED_WORDS = [
    "=?utf-8?q?bcc=3Aall?=@example.com",
    "=?utf-8?b?YQ==?=@example.com",
    "a=?utf-8?q?b?=@example.com",
    "=?@example.com",
    '"=?utf-8?q?a?="@example.com',
    "robin@=?utf-8?q?example?=.com",
]
HEADERS = [
    "a@b.com\nBcc: c@d.com",
    "a@b.com,c@d.com",
    "Robin <a@b.com>",
    "a@b.com\0",
    "a\r\n@b.com",
    "a@[127.0.0.1]",
    "a@b",
]


@pytest.mark.parametrize("email", ENCODED_WORDS + HEADERS)
def test_an_address_can_not_bring_a_header_or_a_second_recipient(email: str) -> None:
    assert codes(email=email) == {"email": "malformed_email"}
    assert codes(email="a=b?c@example.com") == {}  # neither sign alone makes an encoded word


@pytest.mark.parametrize("field", ["dob", "effective_date", "expiry_date"])
def test_long_dates_are_refused_and_never_remembered(field: str) -> None:
    before = _read_calendar_date.cache_info().currsize
    for sent in (
        "2026-01-01" + "0" * LONG,
        "2" * LONG,
        "2026-01-01T00:00:00." + "0" * 10 + "Z" * 10,
    ):
        assert codes(**{field: sent}) == {field: "not_a_date"}
    assert _read_calendar_date.cache_info().currsize == before
    # the longest there is
    assert codes(effective_date="  2026-01-01T00:00:00.000000000+00:00  ") == {}


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "invite_immediately"])
@pytest.mark.parametrize(
    "filler", ["a\u0301\u0316", "\u0301\u0316", "\0", "9", " 1", "\u0660", " 1/", "@"]
)
def test_the_longest_value_that_a_body_can_carry_is_a_fault_of_its_field(
    name: str, filler: str
) -> None:
    value: Any = "a" + filler * (LONG // len(filler))
    sent = {"external_id": "X", name: {"k": value} if name == "metadata" else value}
    [found] = parse_member(sent, today="2026-11-20").faults
    assert found.field == (f"{name}.k" if name == "metadata" else name)
    assert len(found.message) < 140


RULES = {
    "dob": "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp",
    "zipcode": "must have 5 or 9 digits, or 5 and 4 with a hyphen",
    "phone": "must have exactly 10 digits",
    "email": "must be an e-mail address of at most 254 characters, in a domain that can have mail",
    "gender": "must be one of male, female, other, unknown",
    "medical_eligibility": "must be TRUE or FALSE",
}

HINTS = [
    ("dob", "01/31/1977", "it looks like month/day/year"),
    ("dob", "31.1.1977", "it looks like day/month/year"),
    ("dob", "1-2-1977 0:00", "it looks like month/day/year or day/month/year"),
    ("dob", "1/31/77", "it looks like month/day/year"),
    ("dob", "1977/01/31", "it looks like year/month/day"),
    ("dob", "1977-02-29", "this day does not exist"),
    ("dob", "28136.0", "it looks like an Excel serial number"),
    ("dob", "19770131", "it looks like a date without hyphens"),
    ("dob", "223516800", ""),
    ("dob", "January 31, 1977", "it looks like a date with the name of a month"),
    ("dob", "1977-13-01", ""),
    ("dob", "\u0661/\u0661/1977", ""),
    ("zipcode", "2134", "it looks like a zip without its leading zeros"),
    ("zipcode", "2134-1234", "it looks like a zip without its leading zeros"),
    ("zipcode", "2134.0", "it looks like a number with decimals"),
    ("phone", "617-555-0100 x12", "it looks like a number with an extension"),
    ("phone", "6.17555E+09", "it looks like a number that a spreadsheet has rounded"),
    ("phone", "+44 20 7946 0000", "it looks like a number outside North America"),
    ("phone", "06 12 34 56 78", "it begins with 0 or 1, as no number of North America does"),
    ("phone", "1 555 123 456", "it begins with 0 or 1, as no number of North America does"),
    ("email", "Robin Sample <robin@example.com>", "it looks like a name with an address"),
    ("email", "a@example.com;b@example.com", "it looks like several addresses"),
    ("email", "robin", "it has no @"),
    ("email", "robin@", ""),
    ("gender", "F", "it looks like a code"),
    ("gender", "woman", ""),
    ("medical_eligibility", "Yes", "it looks like yes or no"),
]


def fault(field: str, value: Any) -> str:
    [found] = parse_member({"external_id": "1", field: value}, today="2026-11-22").faults
    return found.message


@pytest.mark.parametrize(("field", "value", "hint"), HINTS)
def test_a_refused_value_is_told_by_its_look(field: str, value: str, hint: str) -> None:
    rule, _, said = fault(field, value).partition("; ")
    assert rule.startswith(RULES[field])
    assert said == hint
    assert value not in fault(field, value)
