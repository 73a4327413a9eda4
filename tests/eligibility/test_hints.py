"""What a refused value looks like is said in the fault's message, never what it is."""

from typing import Any

import pytest

from frontdesk.eligibility import parse_member

RULES = {
    "dob": "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp",
    "zipcode": "must have 5 or 9 digits, or 5 and 4 with a hyphen",
    "phone": "must have exactly 10 digits",
    "email": "must be an e-mail address of at most 254 characters",
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
    ("dob", "2026-02-30T00:00:00Z", "this day does not exist"),
    ("dob", "28136", "it looks like an Excel serial number"),
    ("dob", "28136.0", "it looks like an Excel serial number"),
    ("dob", "19770131", "it looks like a date without hyphens"),
    ("dob", "223516800", ""),
    ("dob", "January 31, 1977", "it looks like a date with the name of a month"),
    ("dob", "1977-13-01", ""),
    ("dob", "never", ""),
    ("dob", "\u0661/\u0661/1977", ""),
    ("zipcode", "2134", "it looks like a zip without its leading zeros"),
    ("zipcode", "21341234", "it looks like a zip without its leading zeros"),
    ("zipcode", "2134-1234", "it looks like a zip without its leading zeros"),
    ("zipcode", "2134.0", "it looks like a number with decimals"),
    ("zipcode", "12", ""),
    ("phone", "617-555-0100 x12", "it looks like a number with an extension"),
    ("phone", "6.17555E+09", "it looks like a number that a spreadsheet has rounded"),
    ("phone", "+44 20 7946 0000", "it looks like a number outside North America"),
    ("phone", "555", ""),
    ("email", "Robin Sample <robin@example.com>", "it looks like a name with an address"),
    ("email", "a@example.com;b@example.com", "it looks like several addresses"),
    ("email", "robin", "it has no @"),
    ("email", "robin@", ""),
    ("gender", "F", "it looks like a code"),
    ("gender", "2", "it looks like a code"),
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


@pytest.mark.parametrize("field", RULES)
@pytest.mark.parametrize("value", ["1" * 60_000, "x1" * 30_000, "@" * 60_000, " 1/" * 20_000, "\u0661" * 50])
def test_a_long_value_is_told_at_once(field: str, value: str) -> None:
    assert len(fault(field, value)) < 140
