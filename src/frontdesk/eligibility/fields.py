"""The ONE table of an eligible member's fields; the parser, the reference and the stored columns are all made from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frontdesk.eligibility import values
from frontdesk.eligibility.values import FieldContext


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `read` turns a given value into its stored form; `required` means on create, and never to be cleared."""

    name: str
    read: Callable[[Any, FieldContext], Any]
    required: bool
    description: str
    example: Any
    schema: dict[str, Any]  # of a trimmed value that is not blank


def _text(limit: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": limit}


def _any_case(*words: str) -> str:
    """A pattern for any of the words in any letter case; spelt out, because JSON Schema's patterns know no flags."""
    spelt = ("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)
    return f"^(?:{'|'.join(spelt)})$"


_DATE = {
    "type": "string",
    "pattern": "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?$",
}
_PHONE = {"type": "string", "pattern": "^[ ().+/-]*(?:1[ ().+/-]*)?(?:[0-9][ ().+/-]*){10}$"}
_TRUTH = {"type": ["string", "boolean"], "pattern": _any_case("true", "false")}
_METADATA = {
    "type": "object",
    "maxProperties": values.METADATA_KEYS,
    "propertyNames": {"minLength": 1, "maxLength": values.METADATA_KEY_LENGTH},
    "additionalProperties": {"type": "string", "maxLength": values.METADATA_VALUE_LENGTH},
}

FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("external_id", values.read_short_text, True, "Global identifier and match key.", "AB 123356", _text(255)),
        Field("member_id", values.read_short_text, True, "Member or program identifier.", "M-100200", _text(255)),
        Field("first_name", values.read_name, True, "Patient first name.", "Robin", _text(100)),
        Field("last_name", values.read_name, True, "Patient last name.", "Sample", _text(100)),
        Field("middle_name", values.read_name, False, "Patient middle name.", "Lee", _text(100)),
        Field("dob", values.read_dob, True, "Date of birth, 1900 to today; of a timestamp, the date as written.",
              "1977-01-11T00:00:00Z", _DATE),
        Field("gender", values.read_gender, True, "Biological sex: male, female, other, unknown; any case.", "female",
              {"type": "string", "pattern": _any_case("male", "female", "other", "unknown")}),
        Field("email", values.read_email, False, "E-mail address; unique whatever its letter case.",
              "robin.sample@example.com", {"type": "string", "maxLength": values.EMAIL_LENGTH}),
        Field("phone", values.read_phone, False, "10 digits; punctuation and a leading 1 are dropped.", "9999999999",
              _PHONE),
        Field("zipcode", values.read_zipcode, True, "5, 9, or 5-4 digits.", "02134",
              {"type": "string", "pattern": "^[0-9]{5}(?:-?[0-9]{4})?$"}),
        Field("city", values.read_short_text, False, "City.", "Boston", _text(255)),
        Field("county", values.read_short_text, False, "County.", "Suffolk", _text(255)),
        Field("state", values.read_state, False, "State: USPS code or full name.", "MA", _text(255)),
        Field("effective_date", values.read_date, True, "Date since which access is active.", "2026-01-01", _DATE),
        Field("expiry_date", values.read_date, False, "Last day of access; none means open-ended.", "2026-12-31", _DATE),
        Field("invite_immediately", values.read_boolean, False, "Invite a new member at once.", True, {"type": "boolean"}),
        Field("medical_eligibility", values.read_true_or_false, False, "TRUE or FALSE.", "TRUE", _TRUTH),
        Field("medical_enrollment", values.read_true_or_false, False, "TRUE or FALSE.", "FALSE", _TRUTH),
        Field("medical_plan_description", values.read_short_text, False, "Medical plan description.", "PPO 500",
              _text(255)),
        Field("payor_name", values.read_short_text, False, "Payor name.", "Example Payor", _text(255)),
        Field("payor_plan_name", values.read_short_text, False, "Payor plan name.", "Gold", _text(255)),
        Field("relationship_code", values.read_short_text, False, "Relationship to the subscriber, in words.", "Self",
              _text(255)),
        Field("relationship_code_hipaa", values.read_relationship_hipaa, False,
              "HIPAA relationship code; zeros are kept, the integer 1 becomes 01.", "18",
              {"type": ["string", "integer"], "maxLength": 255, "minimum": 0, "maximum": 99}),
        Field("subscriber_relationship", values.read_subscriber_relationship, False, "Primary or Dependent.", "Primary",
              {"type": "string", "pattern": _any_case("primary", "dependent")}),
        Field("metadata", values.read_metadata, False, "Free-form keys with string values; replaced as a whole.",
              {"department": "North"}, _METADATA),
    )
}  # fmt: skip

REQUIRED = tuple(field.name for field in FIELDS.values() if field.required)

# Columns of the members table that come from the fields; the folded e-mail is what uniqueness compares.
STORED_COLUMNS = (*(name for name in FIELDS if name != "invite_immediately"), "email_folded")

# The unique fields, each with the column that is compared.
UNIQUE = {"external_id": "external_id", "member_id": "member_id", "email": "email_folded"}
