"""How the value of each kind of field is read: a JSON value in, the stored form out, or Rejected; no field is known here.

A reader gets the value (never null or blank) and a `Reading`, on which it leaves warnings.
"""

import re
from dataclasses import dataclass, field
from itertools import islice

from email_validator import EmailNotValidError, validate_email

from frontdesk.eligibility.code_sets import GENDERS, HIPAA_RELATIONSHIPS, STATE_CODES
from frontdesk.eligibility.dates import calendar_date
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
METADATA_KEYS, METADATA_KEY_LENGTH, METADATA_VALUE_LENGTH = 50, 40, 500
EMAIL_LENGTH = 254

_PHONE = re.compile(r"[0-9 ().+/\-]*")
_ZIPCODE = re.compile(r"[0-9]{5}(?:-?[0-9]{4})?")
# A part of what email-validator accepts, for which its 60 µs are saved; everything else is asked of the library.
_PLAIN_EMAIL = re.compile(
    r"[A-Za-z0-9_]+(?:[.+-][A-Za-z0-9_]+)*@(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]{2,24}"
)
_PLAIN_EMAIL_LENGTH = 64


@dataclass(slots=True)
class FieldContext:
    """What goes along while one record is read. `today` is `YYYY-MM-DD` in UTC."""

    today: str
    lenient_email: bool = False
    warnings: list[str] = field(default_factory=list)


def read_short_text(value: object, _reading: FieldContext) -> str:
    return parse_text(value, limit=255)


def read_name(value: object, _reading: FieldContext) -> str:
    return parse_text(value, limit=100)


def read_date(value: object, _reading: FieldContext) -> str:
    return calendar_date(value)[0]


def read_dob(value: object, reading: FieldContext) -> str:
    day, is_midnight = calendar_date(value)
    if day > reading.today:
        raise Rejected("in_the_future", "must not be in the future")
    if day < EARLIEST_DOB:
        raise Rejected("before_1900", "must not be before 1900")
    if not is_midnight:
        reading.warnings.append("dob_not_midnight")
    return day


def read_gender(value: object, _reading: FieldContext) -> str:
    gender = parse_text(value, limit=255).lower()
    if gender not in GENDERS:
        raise Rejected("not_allowed", "must be one of male, female, other, unknown")
    return gender


def read_email(value: object, reading: FieldContext) -> str | None:
    """As given, trimmed. A malformed one in a file is dropped with a warning (`lenient_email`)."""
    if type(value) is not str:
        raise Rejected("wrong_type", "must be a string")
    email = trimmed(value)
    if _is_email(email):
        return email
    if not reading.lenient_email:
        raise Rejected("malformed_email", "must be an e-mail address of at most 254 characters")
    reading.warnings.append("email_dropped")
    return None


def read_phone(value: object, _reading: FieldContext) -> str:
    if type(value) is not str:
        raise Rejected("wrong_type", "must be a string")
    if len(value) == 10 and value.isascii() and value.isdigit():
        return value
    digits = "".join(re.findall("[0-9]", value)) if _PHONE.fullmatch(trimmed(value)) else ""
    if len(digits) == 11 and digits[0] == "1":
        digits = digits[1:]
    if len(digits) != 10:
        raise Rejected("not_ten_digits", "must have exactly 10 digits")
    return digits


def read_zipcode(value: object, _reading: FieldContext) -> str:
    if type(value) is not str:
        raise Rejected("wrong_type", "must be a string, so that leading zeros are kept")
    zipcode = trimmed(value)
    if not _ZIPCODE.fullmatch(zipcode):
        raise Rejected("malformed_zipcode", "must have 5 or 9 digits, or 5 and 4 with a hyphen")
    return zipcode


def read_state(value: object, reading: FieldContext) -> str:
    state = parse_text(value, limit=255)
    code = STATE_CODES.get(state.lower())
    if code is None:
        reading.warnings.append("state_not_recognised")
        return state
    return code


def read_true_or_false(value: object, _reading: FieldContext) -> str:
    if type(value) not in (str, bool):
        raise Rejected("wrong_type", "must be TRUE or FALSE, as a string or a boolean")
    text = parse_text(str(value), limit=255).upper()
    if text not in ("TRUE", "FALSE"):
        raise Rejected("not_allowed", "must be TRUE or FALSE")
    return text


def read_relationship_hipaa(value: object, reading: FieldContext) -> str:
    if type(value) not in (str, int):
        raise Rejected("wrong_type", "must be a string or a whole number")
    if type(value) is int and not 0 <= value <= 99:
        raise Rejected("not_allowed", "as a number must be from 0 to 99")
    code = f"{value:02d}" if type(value) is int else parse_text(value, limit=255)
    if code not in HIPAA_RELATIONSHIPS:
        reading.warnings.append("relationship_code_hipaa_unknown")
    return code


def read_subscriber_relationship(value: object, _reading: FieldContext) -> str:
    relationship = parse_text(value, limit=255).capitalize()
    if relationship not in ("Primary", "Dependent"):
        raise Rejected("not_allowed", "must be Primary or Dependent")
    return relationship


def read_boolean(value: object, _reading: FieldContext) -> bool:
    if type(value) is not bool:
        raise Rejected("wrong_type", "must be true or false, without quotes")
    return value


def read_metadata(value: object, _reading: FieldContext) -> dict[str, str]:
    """A flat object of strings, kept exactly as sent. Raises RejectedParts with all that is wrong in as many keys as may be."""
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
    if type(item) is not str:
        raise Rejected("wrong_type", "must be a string")
    if len(item) > METADATA_VALUE_LENGTH:
        raise Rejected("too_long", f"must have at most {METADATA_VALUE_LENGTH} characters")
    refuse_control_characters(item)


def _is_email(email: str) -> bool:
    if len(email) <= _PLAIN_EMAIL_LENGTH and _PLAIN_EMAIL.fullmatch(email):
        return True
    if len(email) > EMAIL_LENGTH or "." not in email.rpartition("@")[2]:
        return False
    if ENCODED_WORD in email:
        return False
    try:
        validate_email(email, check_deliverability=False, globally_deliverable=False)
    except (EmailNotValidError, ValueError):
        return False
    return True
