"""Values made to hurt: they are refused, and cost and leave nothing."""

from typing import Any

import pytest

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS, _read_calendar_date

LONG = 60_000


def codes(**body: Any) -> dict[str, str]:
    record = parse_member({"external_id": "X"} | body, today="2026-11-20")
    return {fault.field: fault.code for fault in record.faults}


@pytest.mark.parametrize(
    "email",
    [
        "=?utf-8?q?bcc=3Aall?=@example.com",
        "=?utf-8?b?YQ==?=@example.com",
        "a=?utf-8?q?b?=@example.com",
        "=?@example.com",
        '"=?utf-8?q?a?="@example.com',
        "robin@=?utf-8?q?example?=.com",
    ],
)
def test_an_address_can_not_hold_an_encoded_word(email: str) -> None:
    assert codes(email=email) == {"email": "malformed_email"}


@pytest.mark.parametrize(
    "email",
    [
        "a@b.com\nBcc: c@d.com",
        "a@b.com,c@d.com",
        "Robin <a@b.com>",
        "a@b.com\0",
        "a\r\n@b.com",
        "a@[127.0.0.1]",
        "a@b",
    ],
)
def test_an_address_can_not_bring_a_header_or_a_second_recipient(email: str) -> None:
    assert codes(email=email) == {"email": "malformed_email"}


def test_an_equals_sign_or_a_question_mark_alone_is_part_of_an_address() -> None:
    assert codes(email="a=b?c@example.com") == {}


@pytest.mark.parametrize("field", ["dob", "effective_date", "expiry_date"])
def test_long_dates_are_refused_and_never_remembered(field: str) -> None:
    before = _read_calendar_date.cache_info().currsize
    for sent in ("2026-01-01" + "0" * LONG, "2" * LONG, "2026-01-01T00:00:00." + "0" * 10 + "Z" * 10):
        assert codes(**{field: sent}) == {field: "not_a_date"}
    assert _read_calendar_date.cache_info().currsize == before


def test_the_longest_date_there_is_is_taken() -> None:
    assert codes(effective_date="  2026-01-01T00:00:00.000000000+00:00  ") == {}


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "invite_immediately"])
@pytest.mark.parametrize("filler", ["a\u0301\u0316", "\u0301\u0316", "\0", "9", " 1", "\u0660"])
def test_the_longest_value_that_a_body_can_carry_is_a_fault_of_its_field(name: str, filler: str) -> None:
    value: Any = "a" + filler * (LONG // len(filler))
    found = codes(**{name: {"k": value} if name == "metadata" else value})
    assert list(found) == [f"{name}.k" if name == "metadata" else name]
