"""The fields of an eligible member (docs/interface.md, Fields of a member), and how a JSON object is parsed.

The reference, the readers of files and the stored columns follow from the table of fields.
`parse_member` turns an untrusted object into a record with all its faults; `decide` adds those that
depend on other records.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

from frontdesk import codes
from frontdesk.eligibility.field_kinds import (
    BOOLEAN,
    DATE_OF_BIRTH,
    DATE_PATTERN,
    EMAIL,
    FIRST_DAY,
    GENDER,
    HIPAA_RELATIONSHIP,
    IDENTIFIER,
    IDENTIFIER_LENGTH,
    LAST_DAY,
    METADATA,
    NAME,
    PHONE,
    SHORT_TEXT,
    STATE,
    SUBSCRIBER_RELATIONSHIP,
    TRUE_OR_FALSE,
    UNMAILABLE_ENDS,
    ZIPCODE,
    FieldContext,
    FieldKind,
    Placeholder,
    Storage,
    parse_identifier,
)
from frontdesk.eligibility.model import MemberRecord, MemberWarning
from frontdesk.eligibility.placeholders import NO_IDENTIFIERS, is_no_identifier
from frontdesk.errors import Fault, fault_of, unknown_faults
from frontdesk.text import Rejected, RejectedParts, fold_email, is_plain, trimmed


@dataclass(frozen=True, slots=True)
class Field:
    """One field. A `required` field is needed on create and never cleared. No two records share a
    value of a `unique` one.
    """

    name: str
    kind: FieldKind
    description: str
    _: KW_ONLY
    example: Any
    required: bool = False
    unique: bool = False


_TABLE = (
    Field(
        "external_id",
        IDENTIFIER,
        "Global identifier and match key.",
        example="AB 123356",
        required=True,
        unique=True,
    ),
    Field(
        "member_id",
        IDENTIFIER,
        "Member or program identifier.",
        example="M-100200",
        required=True,
        unique=True,
    ),
    Field("first_name", NAME, "Patient first name.", example="Robin", required=True),
    Field("last_name", NAME, "Patient last name.", example="Sample", required=True),
    Field("middle_name", NAME, "Patient middle name.", example="Lee"),
    Field(
        "dob",
        DATE_OF_BIRTH,
        "Date of birth, 1900 to today; of a timestamp, the date as written.",
        example="1977-01-11T00:00:00Z",
        required=True,
    ),
    Field(
        "gender",
        GENDER,
        "Biological sex: male, female, other, unknown; any case.",
        example="female",
        required=True,
    ),
    Field(
        "email",
        EMAIL,
        "E-mail address; unique whatever its letter case.",
        example="robin.sample@example.com",
        unique=True,
    ),
    Field(
        "phone",
        PHONE,
        "10 digits of North America; punctuation and a leading 1 are dropped.",
        example="9999999999",
    ),
    Field(
        "zipcode",
        ZIPCODE,
        "5, 9, or 5-4 digits, with any dash or space.",
        example="02134",
        required=True,
    ),
    Field("city", SHORT_TEXT, "City.", example="Boston"),
    Field("county", SHORT_TEXT, "County.", example="Suffolk"),
    Field("state", STATE, "State: USPS code or full name.", example="MA"),
    Field(
        "effective_date",
        FIRST_DAY,
        "Date since which access is active.",
        example="2026-01-01",
        required=True,
    ),
    Field(
        "expiry_date", LAST_DAY, "Last day of access; none means open-ended.", example="2026-12-31"
    ),
    Field("invite_immediately", BOOLEAN, "Invite a new member at once.", example=True),
    Field("medical_eligibility", TRUE_OR_FALSE, "TRUE or FALSE.", example="TRUE"),
    Field("medical_enrollment", TRUE_OR_FALSE, "TRUE or FALSE.", example="FALSE"),
    Field("medical_plan_description", SHORT_TEXT, "Medical plan description.", example="PPO 500"),
    Field("payor_name", SHORT_TEXT, "Payor name.", example="Example Payor"),
    Field("payor_plan_name", SHORT_TEXT, "Payor plan name.", example="Gold"),
    Field(
        "relationship_code", SHORT_TEXT, "Relationship to the subscriber, in words.", example="Self"
    ),
    Field(
        "relationship_code_hipaa",
        HIPAA_RELATIONSHIP,
        "HIPAA relationship code; zeros are kept, the integer 1 becomes 01.",
        example="18",
    ),
    Field(
        "subscriber_relationship",
        SUBSCRIBER_RELATIONSHIP,
        "Primary or Dependent.",
        example="Primary",
    ),
    Field(
        "metadata",
        METADATA,
        "Free-form keys with string values; replaced as a whole.",
        example={"department": "North"},
    ),
)
FIELDS: dict[str, Field] = {field.name: field for field in _TABLE}

if len(FIELDS) != len(_TABLE):
    raise ValueError("a field is declared twice")

REQUIRED = tuple(field.name for field in FIELDS.values() if field.required)

# An unusable optional value of a file is dropped with a warning; never the day on which access
# ends.
DROPPED = {
    field.name: codes.rows.dropped(field.name)
    for field in FIELDS.values()
    if not field.required and field.name != "expiry_date"
}

STORED_FIELDS = tuple(
    field.name for field in FIELDS.values() if field.kind.storage is not Storage.NONE
)
# The columns of the members table that come from the fields. E-mail addresses are compared in their
# folded form. A member that was ended by absence keeps its earlier expiry_date
# (eligibility.decide), and a dependent that shares the address of its subscriber is marked. The
# dates and the plan are derived from the coverages, where these are kept.
STORED_COLUMNS = (
    *STORED_FIELDS,
    "email_folded",
    "expiry_before_absence",
    "shares_home",
    "coverages",
    "derive_on",
)

# The unique fields, each with the column that is compared.
UNIQUE = {
    name: "email_folded" if name == "email" else name
    for name, each in FIELDS.items()
    if each.unique
}

# Shapes of refused texts, by the code of the fault: the first pattern that matches the whole text,
# without letter case. They see the first 101 characters only (docs/decisions/0008).
_M = "(?:0?[0-9]|1[0-2])[/.-]"
_N = "[0-9]{1,2}[/.-]"
_YEAR = "(?:[0-9]{4}|[0-9]{1,2})(?![0-9]).*"
_LOOKS = {
    "not_a_date": {
        DATE_PATTERN.pattern: "this day does not exist",
        _M + _M + _YEAR: "it looks like month/day/year or day/month/year",
        _M + _N + _YEAR: "it looks like month/day/year",
        _N + _M + _YEAR: "it looks like day/month/year",
        "[0-9]{4}[/.][0-9]{1,2}[/.][0-9]{1,2}(?![0-9]).*": "it looks like year/month/day",
        "[1-9][0-9]{4}(?:[.][0-9]+)?": "it looks like an Excel serial number",
        "[0-9]{8}": "it looks like a date without hyphens",
        "(?:.*[^a-z])?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*": (
            "it looks like a date with the name of a month"
        ),
    },
    "malformed_zipcode": {
        "[0-9]+[.]0+": "it looks like a number with decimals",
        "[0-9]{3,4}(?:-?[0-9]{4})?": "it looks like a zip without its leading zeros",
    },
    "not_ten_digits": {
        "[01][^0-9]*(?:[0-9][^0-9]*){9}": (
            "it begins with 0 or 1, as no number of North America does"
        ),
        "[0-9](?:[.,][0-9]+)?e[+]?[0-9]{1,2}": "it looks like a number that a spreadsheet has rounded",
        r".*[0-9]\D*(?:ext|x|#)\D*[0-9]{1,6}": "it looks like a number with an extension",
        "[+](?!1).*": "it looks like a number outside North America",
    },
    "malformed_email": {
        "[^@]*@[^@]*@.*": "it looks like several addresses",
        "[^<]*<.*>": "it looks like a name with an address",
        "[^@]{1,100}": "it has no @",
        f"[^@]*@.*[.](?:{'|'.join(sorted(UNMAILABLE_ENDS))})": (
            "no mail can be sent to the last part of its domain"
        ),
    },
    "not_allowed": {
        "[yn]|yes|no": "it looks like yes or no",
        "[a-z]|[0-9]{1,2}": "it looks like a code",
    },
}
_REQUIRED = frozenset(REQUIRED)


def parse_member(
    body: Mapping[str, object], *, today: str, strict: bool = False, lenient: bool = False
) -> MemberRecord:
    """Read every field of the body (docs/interface.md, Eligible members). Never raises; `today` is
    the latest day that it may be where the member lives.

    Unknown fields are named in `ignored`, and are faults too when `strict`. Absent fields stay out
    of `given`, and so do placeholders, and fields of DROPPED that can't be used when `lenient`, as
    for a row of a file: they are warned of.
    """
    context = FieldContext(today)
    given: dict[str, Any] = {}
    faults: list[Fault] = []
    ignored: list[str] = []
    for name, value in body.items():
        field = FIELDS.get(name)
        if field is None:
            ignored.append(name)
            continue
        try:
            given[name] = _read(field, value, context)
        except Placeholder:
            context.warnings.append(MemberWarning(codes.warnings.PLACEHOLDER, name))
        except (Rejected, RejectedParts) as rejected:
            if lenient and name in DROPPED:
                [(_, _, message), *_] = _faults(name, rejected, value)
                context.warnings.append(MemberWarning.of(DROPPED[name], detail=message))
            else:
                faults += _faults(name, rejected, value)
    if "external_id" not in body:
        faults.append(
            Fault("external_id", codes.faults.REQUIRED, "is required: it is the match key")
        )
    if lenient:
        faults += _take_no_identifiers(given)
    if strict:
        faults += unknown_faults(ignored)
    if "email" in given:
        given["email_folded"] = None if given["email"] is None else fold_email(given["email"])
    asked = bool(given.pop("invite_immediately", False))
    key = given.get("external_id")
    return MemberRecord(
        key,
        given,
        invite_immediately=asked,
        faults=tuple(faults),
        warnings=tuple(context.warnings),
        ignored=tuple(ignored),
    )


def _read(field: Field, value: Any, context: FieldContext) -> Any:
    """The stored form of a field; None clears it, and an empty object metadata. Raises Rejected,
    RejectedParts.
    """
    kind = field.kind
    if type(value) is str and len(value) <= kind.plain_length and is_plain(value):
        return value
    if value is None or (type(value) is str and not value[:1].isalnum() and not trimmed(value)):
        if field.required:
            raise Rejected(codes.faults.REQUIRED, "must not be null or blank")
        return {} if kind is METADATA else None
    return kind.read(value, context)


def _take_no_identifiers(given: dict[str, Any]) -> Iterator[Fault]:
    """Take what a spreadsheet has left of an identifier out of the values of a file's row."""
    for name in ("external_id", "member_id"):
        if name in given and is_no_identifier(given[name]):
            del given[name]
            yield fault_of(codes.rows.SPREADSHEET_VALUE)._replace(field=name)


def read_external_id(value: object) -> str | None:
    """The match key of a file's row in its stored form; None when it is missing or not valid."""
    try:
        text = parse_identifier(value)
    except Rejected:
        return None
    return None if not text or is_no_identifier(text) else text


def read_external_ids(values: Sequence[str | None]) -> Sequence[str | None]:
    """`read_external_id` of each. Plain ones, as nearly all are, are checked together."""
    if None not in values and all(values):
        present = cast(Sequence[str], values)
        text = "".join(present)
        is_plain = text.isascii() and text.isprintable() and " " not in text and "+" not in text
        is_short = is_plain and max(map(len, present)) <= IDENTIFIER_LENGTH
        if is_short and NO_IDENTIFIERS.isdisjoint(present):
            return values
    return [*map(read_external_id, values)]


def missing_on_create(record: MemberRecord, causes: Iterable[Fault] = ()) -> list[Fault]:
    """A fault for each required field that is absent and has no fault yet; `causes` stand for those
    of their fields.
    """
    if record.given.keys() >= _REQUIRED:
        return []
    at_fault = {fault.field for fault in record.faults}
    known = {cause.field: cause for cause in causes}
    return [
        known.get(name) or Fault(name, codes.faults.REQUIRED, "is required for a new member")
        for name in REQUIRED
        if name not in record.given and name not in at_fault
    ]


INVERTED_DATES = Fault(
    "expiry_date", codes.faults.EXPIRY_BEFORE_EFFECTIVE, "must not be before effective_date"
)


def check_dates(effective_date: str | None, expiry_date: str | None) -> Fault | None:
    """The fault of dates in the wrong order. Both days are inclusive, so equal dates are fine."""
    if effective_date is not None and expiry_date is not None and expiry_date < effective_date:
        return INVERTED_DATES
    return None


def _faults(name: str, rejected: Rejected | RejectedParts, value: object) -> list[Fault]:
    parts = rejected.parts if isinstance(rejected, RejectedParts) else (rejected,)
    return [
        Fault(
            f"{name}.{part.part}" if part.part else name,
            part.code,
            part.message + _look(part.code, value),
        )
        for part in parts
    ]


def _look(code: str, value: object) -> str:
    """The shape of the start of a refused text, after a semicolon; "" without a known shape."""
    start = value.strip()[:101] if isinstance(value, str) else ""
    looks = _LOOKS.get(code, {}).items()
    for pattern, description in looks:
        if re.fullmatch(pattern, start, re.IGNORECASE | re.DOTALL):
            return f"; {description}"
    return ""
