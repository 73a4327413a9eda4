"""The one table of an eligible member's fields, and the kinds of their values.

The parser, the reference, the readers of files and the stored columns follow from it. A kind says how a value is read,
described, stored, and written in a file.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from frontdesk.eligibility import values
from frontdesk.eligibility.code_sets import GENDERS, X12_GENDERS, X12_SUBSCRIBER
from frontdesk.eligibility.hints import choice_hint, with_hint
from frontdesk.eligibility.values import FieldContext
from frontdesk.strict_json import NotStrict, parse_strictly
from frontdesk.text import Rejected, parse_text


class Storage(Enum):
    TEXT = "text"
    DATE = "date"
    JSON = "json"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class FieldKind:
    """How the values of a field are read, described and stored.

    `read` turns a JSON value (never null or blank) into its stored form and may leave warnings in the context; it raises
    Rejected or RejectedParts. `schema` is the JSON Schema of a trimmed value that is not blank. `length` is the longest
    stored text. `from_text` makes the JSON value of a text cell, `from_x12` that of an 834's element: a text that does not
    convert stays as it is, for `read` to refuse; None where the text is the value.
    """

    read: Callable[[Any, FieldContext], Any]
    schema: dict[str, Any]
    length: int = 0
    storage: Storage = Storage.TEXT
    from_text: Callable[[str], object] | None = None
    from_x12: Callable[[str], str] | None = None


def text_kind(limit: int) -> FieldKind:
    def read(value: object, _context: FieldContext) -> str:
        return parse_text(value, limit=limit)

    return FieldKind(read, {"type": "string", "maxLength": limit}, limit)


def choice_kind(*words: str, booleans: bool = False, x12: dict[str, str] | None = None) -> FieldKind:
    """One of the words in any letter case, stored as written here; with `booleans`, true and false stand for TRUE and FALSE."""
    by_folded = {word.lower(): word for word in words}
    rule = f"must be {' or '.join(words)}" if len(words) == 2 else f"must be one of {', '.join(words)}"

    def read(value: object, _context: FieldContext) -> str:
        if booleans and type(value) not in (str, bool):
            raise Rejected("wrong_type", f"{rule}, as a string or a boolean")
        text = parse_text(str(value) if booleans else value, limit=255)
        found = by_folded.get(text.lower())
        if found is None:
            raise Rejected("not_allowed", with_hint(rule, choice_hint(text, words)))
        return found

    # JSON Schema's patterns have no flag for letter case.
    any_case = "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in word) for word in words)
    schema = {"type": ["string", "boolean"] if booleans else "string", "pattern": f"^(?:{any_case})$"}
    from_x12 = None if x12 is None else lambda code: x12.get(code, code)
    return FieldKind(read, schema, max(map(len, words)), from_x12=from_x12)


def _pattern(rule: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{rule.pattern}$"}


def x12_date(text: str) -> str:
    """CCYYMMDD as YYYY-MM-DD; any other text as it is."""
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if len(text) == 8 and text.isdigit() else text


def _relationship_from_text(text: str) -> object:
    """Spreadsheets take the zero of 01 away; one digit is what a body carries as the integer 1."""
    return int(text) if len(text) == 1 and "0" <= text <= "9" else text


def _boolean_from_text(text: str) -> object:
    return {"true": True, "false": False}.get(text.lower(), text)


def _object_from_text(text: str) -> object:
    try:
        return parse_strictly(text)
    except NotStrict:
        return text


SHORT_TEXT, NAME = text_kind(255), text_kind(100)
DATE = FieldKind(values.read_date, _pattern(values.DATE), 10, Storage.DATE, from_x12=x12_date)
DATE_OF_BIRTH = FieldKind(values.read_dob, _pattern(values.DATE), 10, Storage.DATE, from_x12=x12_date)
GENDER = choice_kind(*GENDERS, x12=X12_GENDERS)
EMAIL = FieldKind(
    values.read_email, {"type": "string", "maxLength": values.EMAIL_LENGTH}, values.EMAIL_LENGTH
)
PHONE = FieldKind(values.read_phone, _pattern(values.PHONE), 10)
ZIPCODE = FieldKind(values.read_zipcode, _pattern(values.ZIPCODE), 10)
STATE = FieldKind(values.read_state, SHORT_TEXT.schema, SHORT_TEXT.length)
TRUE_OR_FALSE = choice_kind("TRUE", "FALSE", booleans=True)
SUBSCRIBER_RELATIONSHIP = choice_kind("Primary", "Dependent", x12=X12_SUBSCRIBER)
HIPAA_RELATIONSHIP = FieldKind(
    values.read_relationship,
    {"type": ["string", "integer"], "maxLength": 255, "minimum": 0, "maximum": 99},
    SHORT_TEXT.length,
    from_text=_relationship_from_text,
)
BOOLEAN = FieldKind(
    values.read_boolean, {"type": "boolean"}, storage=Storage.NONE, from_text=_boolean_from_text
)
METADATA = FieldKind(
    values.read_metadata,
    {
        "type": "object",
        "maxProperties": values.METADATA_KEYS,
        "propertyNames": {"minLength": 1, "maxLength": values.METADATA_KEY_LENGTH},
        "additionalProperties": {"type": "string", "maxLength": values.METADATA_VALUE_LENGTH},
    },
    storage=Storage.JSON,
    from_text=_object_from_text,
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field. A `required` field is needed on create and never cleared. No two records share a value of a `unique` one."""

    name: str
    kind: FieldKind
    required: bool
    description: str
    example: Any
    unique: bool = False


FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("external_id", SHORT_TEXT, True, "Global identifier and match key.", "AB 123356", unique=True),
        Field("member_id", SHORT_TEXT, True, "Member or program identifier.", "M-100200", unique=True),
        Field("first_name", NAME, True, "Patient first name.", "Robin"),
        Field("last_name", NAME, True, "Patient last name.", "Sample"),
        Field("middle_name", NAME, False, "Patient middle name.", "Lee"),
        Field("dob", DATE_OF_BIRTH, True, "Date of birth, 1900 to today; of a timestamp, the date as written.",
              "1977-01-11T00:00:00Z"),
        Field("gender", GENDER, True, "Biological sex: male, female, other, unknown; any case.", "female"),
        Field("email", EMAIL, False, "E-mail address; unique whatever its letter case.",
              "robin.sample@example.com", unique=True),
        Field("phone", PHONE, False, "10 digits; punctuation and a leading 1 are dropped.", "9999999999"),
        Field("zipcode", ZIPCODE, True, "5, 9, or 5-4 digits.", "02134"),
        Field("city", SHORT_TEXT, False, "City.", "Boston"),
        Field("county", SHORT_TEXT, False, "County.", "Suffolk"),
        Field("state", STATE, False, "State: USPS code or full name.", "MA"),
        Field("effective_date", DATE, True, "Date since which access is active.", "2026-01-01"),
        Field("expiry_date", DATE, False, "Last day of access; none means open-ended.", "2026-12-31"),
        Field("invite_immediately", BOOLEAN, False, "Invite a new member at once.", True),
        Field("medical_eligibility", TRUE_OR_FALSE, False, "TRUE or FALSE.", "TRUE"),
        Field("medical_enrollment", TRUE_OR_FALSE, False, "TRUE or FALSE.", "FALSE"),
        Field("medical_plan_description", SHORT_TEXT, False, "Medical plan description.", "PPO 500"),
        Field("payor_name", SHORT_TEXT, False, "Payor name.", "Example Payor"),
        Field("payor_plan_name", SHORT_TEXT, False, "Payor plan name.", "Gold"),
        Field("relationship_code", SHORT_TEXT, False, "Relationship to the subscriber, in words.", "Self"),
        Field("relationship_code_hipaa", HIPAA_RELATIONSHIP, False,
              "HIPAA relationship code; zeros are kept, the integer 1 becomes 01.", "18"),
        Field("subscriber_relationship", SUBSCRIBER_RELATIONSHIP, False, "Primary or Dependent.", "Primary"),
        Field("metadata", METADATA, False, "Free-form keys with string values; replaced as a whole.",
              {"department": "North"}),
    )
}  # fmt: skip

REQUIRED = tuple(field.name for field in FIELDS.values() if field.required)

# An optional value of a file that can't be used is left out, with a warning. Not the day on which access ends.
DROPPED = tuple(field.name for field in FIELDS.values() if not field.required and field.name != "expiry_date")

# The columns of the members table that come from the fields. E-mail addresses are compared in their folded form. Of a member
# that a full file ended by omitting it, the expiry_date before that is kept (eligibility.decide).
STORED_COLUMNS = (
    *(field.name for field in FIELDS.values() if field.kind.storage is not Storage.NONE),
    "email_folded",
    "expiry_before_absence",
)

# The unique fields, each with the column that is compared.
UNIQUE = {
    field.name: "email_folded" if field.kind is EMAIL else field.name
    for field in FIELDS.values()
    if field.unique
}
