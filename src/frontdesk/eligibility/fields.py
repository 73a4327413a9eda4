"""The one table of an eligible member's fields. The parser, the reference, the readers of files and the stored columns
follow from it."""

from dataclasses import dataclass
from typing import Any

from frontdesk.eligibility import kinds
from frontdesk.eligibility.kinds import FieldKind, Storage


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
        Field("external_id", kinds.SHORT_TEXT, True, "Global identifier and match key.", "AB 123356", unique=True),
        Field("member_id", kinds.SHORT_TEXT, True, "Member or program identifier.", "M-100200", unique=True),
        Field("first_name", kinds.NAME, True, "Patient first name.", "Robin"),
        Field("last_name", kinds.NAME, True, "Patient last name.", "Sample"),
        Field("middle_name", kinds.NAME, False, "Patient middle name.", "Lee"),
        Field("dob", kinds.DATE_OF_BIRTH, True, "Date of birth, 1900 to today; of a timestamp, the date as written.",
              "1977-01-11T00:00:00Z"),
        Field("gender", kinds.GENDER, True, "Biological sex: male, female, other, unknown; any case.", "female"),
        Field("email", kinds.EMAIL, False, "E-mail address; unique whatever its letter case.",
              "robin.sample@example.com", unique=True),
        Field("phone", kinds.PHONE, False, "10 digits; punctuation and a leading 1 are dropped.", "9999999999"),
        Field("zipcode", kinds.ZIPCODE, True, "5, 9, or 5-4 digits.", "02134"),
        Field("city", kinds.SHORT_TEXT, False, "City.", "Boston"),
        Field("county", kinds.SHORT_TEXT, False, "County.", "Suffolk"),
        Field("state", kinds.STATE, False, "State: USPS code or full name.", "MA"),
        Field("effective_date", kinds.DATE, True, "Date since which access is active.", "2026-01-01"),
        Field("expiry_date", kinds.DATE, False, "Last day of access; none means open-ended.", "2026-12-31"),
        Field("invite_immediately", kinds.BOOLEAN, False, "Invite a new member at once.", True),
        Field("medical_eligibility", kinds.TRUE_OR_FALSE, False, "TRUE or FALSE.", "TRUE"),
        Field("medical_enrollment", kinds.TRUE_OR_FALSE, False, "TRUE or FALSE.", "FALSE"),
        Field("medical_plan_description", kinds.SHORT_TEXT, False, "Medical plan description.", "PPO 500"),
        Field("payor_name", kinds.SHORT_TEXT, False, "Payor name.", "Example Payor"),
        Field("payor_plan_name", kinds.SHORT_TEXT, False, "Payor plan name.", "Gold"),
        Field("relationship_code", kinds.SHORT_TEXT, False, "Relationship to the subscriber, in words.", "Self"),
        Field("relationship_code_hipaa", kinds.HIPAA_RELATIONSHIP, False,
              "HIPAA relationship code; zeros are kept, the integer 1 becomes 01.", "18"),
        Field("subscriber_relationship", kinds.SUBSCRIBER_RELATIONSHIP, False, "Primary or Dependent.", "Primary"),
        Field("metadata", kinds.METADATA, False, "Free-form keys with string values; replaced as a whole.",
              {"department": "North"}),
    )
}  # fmt: skip

REQUIRED = tuple(field.name for field in FIELDS.values() if field.required)

# The columns of the members table that come from the fields. E-mail addresses are compared in their folded form.
STORED_COLUMNS = (
    *(field.name for field in FIELDS.values() if field.kind.storage is not Storage.NONE),
    "email_folded",
)

# The unique fields, each with the column that is compared.
UNIQUE = {
    field.name: "email_folded" if field.kind is kinds.EMAIL else field.name
    for field in FIELDS.values()
    if field.unique
}
