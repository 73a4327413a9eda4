"""Reads single values of a member: a JSON value in, its stored form out, or Rejected.

A reader never gets null or blank. It leaves warnings in the context.
"""

import re
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import islice

from email_validator import EmailNotValidError, validate_email

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS, STATE_CODES
from frontdesk.eligibility.hints import date_hint, email_hint, phone_hint, with_hint, zip_hint
from frontdesk.text import (
    ENCODED_WORD,
    Rejected,
    RejectedParts,
    parse_text,
    refuse_control_characters,
    shown_name,
    trimmed,
)

EARLIEST_DOB = "1900-01-01"
EMAIL_LENGTH = 254
METADATA_KEYS, METADATA_KEY_LENGTH, METADATA_VALUE_LENGTH = 50, 40, 500
_LONGEST_DATE = len("2026-01-01T00:00:00.000000000+00:00")

# Each rule stands once: it is the schema's pattern and the reader's.
DATE = re.compile(
    "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
PHONE = re.compile("[ ().+/-]*(?:1[ ().+/-]*)?(?:[0-9][ ().+/-]*){10}")
ZIPCODE = re.compile("[0-9]{5}(?:-?[0-9]{4})?")
# A part of what email-validator accepts, for which its 60 µs are saved. The library decides about everything else.
_PLAIN_EMAIL = re.compile(
    r"[A-Za-z0-9_]+(?:[.+-][A-Za-z0-9_]+)*@(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]{2,24}"
)
_PLAIN_EMAIL_LENGTH = 64


@dataclass(slots=True)
class FieldContext:
    """What readers know of the record, and the warnings that they leave. `today` is `YYYY-MM-DD` in UTC."""

    today: str
    warnings: list[str] = field(default_factory=list)


def calendar_date(value: object) -> tuple[str, bool]:
    """The date as written, never moved to another time zone, and whether its time is midnight or absent. Raises Rejected."""
    text = trimmed(_text(value))
    # The cache keeps its keys, so nothing longer than a date may get into it.
    found = _read_calendar_date(text) if len(text) <= _LONGEST_DATE else None
    if found is None:
        rule = "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"
        raise Rejected("not_a_date", with_hint(rule, date_hint(text)))
    return found


@lru_cache(maxsize=4096)
def _read_calendar_date(text: str) -> tuple[str, bool] | None:
    if DATE.fullmatch(text) is None:
        return None
    try:
        date(int(text[:4]), int(text[5:7]), int(text[8:10]))
    except ValueError:
        return None
    time = re.split("[Zz+-]", text[11:])[0]
    return text[:10], not time.strip("0:.,")


def read_date(value: object, _context: FieldContext) -> str:
    return calendar_date(value)[0]


def read_dob(value: object, context: FieldContext) -> str:
    day, is_midnight = calendar_date(value)
    if day > context.today:
        raise Rejected("in_the_future", "must not be in the future")
    if day < EARLIEST_DOB:
        raise Rejected("before_1900", "must not be before 1900")
    if not is_midnight:
        context.warnings.append("dob_not_midnight")
    return day


def parse_email(value: object) -> str:
    """The address, trimmed; only its syntax is looked at. Raises Rejected."""
    email = trimmed(_text(value))
    if not _is_email(email):
        rule = "must be an e-mail address of at most 254 characters"
        raise Rejected("malformed_email", with_hint(rule, email_hint(email)))
    return email


def _is_email(email: str) -> bool:
    if len(email) <= _PLAIN_EMAIL_LENGTH and _PLAIN_EMAIL.fullmatch(email):
        return True
    if len(email) > EMAIL_LENGTH or "." not in email.rpartition("@")[2] or ENCODED_WORD in email:
        return False
    try:
        validate_email(email, check_deliverability=False, globally_deliverable=False)
    except (EmailNotValidError, ValueError):
        return False
    return True


def read_email(value: object, _context: FieldContext) -> str:
    return parse_email(value)


def read_phone(value: object, _context: FieldContext) -> str:
    phone = _text(value)
    if len(phone) == 10 and phone.isascii() and phone.isdigit():
        return phone
    if not PHONE.fullmatch(trimmed(phone)):
        raise Rejected("not_ten_digits", with_hint("must have exactly 10 digits", phone_hint(phone)))
    return re.sub("[^0-9]", "", phone)[-10:]


def read_zipcode(value: object, _context: FieldContext) -> str:
    zipcode = trimmed(_text(value, "must be a string, so that leading zeros are kept"))
    if not ZIPCODE.fullmatch(zipcode):
        rule = "must have 5 or 9 digits, or 5 and 4 with a hyphen"
        raise Rejected("malformed_zipcode", with_hint(rule, zip_hint(zipcode)))
    return zipcode


def read_state(value: object, context: FieldContext) -> str:
    state = parse_text(value, limit=255)
    code = STATE_CODES.get(state.lower())
    if code is None:
        context.warnings.append("state_not_recognised")
        return state
    return code


def read_relationship(value: object, context: FieldContext) -> str:
    if type(value) not in (str, int):
        raise Rejected("wrong_type", "must be a string or a whole number")
    if type(value) is int and not 0 <= value <= 99:
        raise Rejected("not_allowed", "as a number must be from 0 to 99")
    code = f"{value:02d}" if type(value) is int else parse_text(value, limit=255)
    if code not in HIPAA_RELATIONSHIPS:
        context.warnings.append("relationship_code_hipaa_unknown")
    return code


def read_boolean(value: object, _context: FieldContext) -> bool:
    if type(value) is not bool:
        raise Rejected("wrong_type", "must be true or false, without quotes")
    return value


def read_metadata(value: object, _context: FieldContext) -> dict[str, str]:
    """A flat object of strings, kept exactly as sent. Raises RejectedParts with the faults of its first 50 keys."""
    if type(value) is not dict:
        raise Rejected("wrong_type", "must be an object whose values are strings")
    rejected = []
    if len(value) > METADATA_KEYS:
        rejected.append(Rejected("too_many_keys", f"must have at most {METADATA_KEYS} keys"))
    for key, item in islice(value.items(), METADATA_KEYS):
        for check, checked in ((_check_metadata_key, key), (_check_metadata_value, item)):
            try:
                check(checked)
            except Rejected as error:
                rejected.append(Rejected(error.code, error.message, part=shown_name(key)))
    if rejected:
        raise RejectedParts(rejected)
    return value


def _check_metadata_key(key: str) -> None:
    if not key:
        raise Rejected("empty_key", "must not have an empty key")
    if len(key) > METADATA_KEY_LENGTH:
        raise Rejected("too_long", f"keys must have at most {METADATA_KEY_LENGTH} characters")
    refuse_control_characters(key)


def _check_metadata_value(item: object) -> None:
    if len(text := _text(item)) > METADATA_VALUE_LENGTH:
        raise Rejected("too_long", f"must have at most {METADATA_VALUE_LENGTH} characters")
    refuse_control_characters(text)


def _text(value: object, rule: str = "must be a string") -> str:
    if type(value) is not str:
        raise Rejected("wrong_type", rule)
    return value
