"""The one table of an eligible member's fields: how their values are read, described and stored, and how a JSON object is parsed.

The reference, the readers of files and the stored columns follow from the table. A reader of a value gets a JSON value, never
null or blank, and gives its stored form or raises Rejected; it leaves warnings in the context. `parse_member` turns an untrusted
object into a record with all its faults; `decide` adds those that depend on other records.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any

from email_validator import validate_email

from frontdesk.eligibility.model import WARNING_MARK, MemberRecord
from frontdesk.errors import Fault, unknown_faults
from frontdesk.text import (
    ENCODED_WORD,
    NotStrict,
    Rejected,
    RejectedParts,
    fold_email,
    is_plain,
    parse_strictly,
    parse_text,
    refuse_control_characters,
    shown_name,
    trimmed,
)

GENDERS = ("male", "female", "other", "unknown")
# Data elements 1068 (DMG03) and 1073 (INS01) of the 834 (docs/834.md).
X12_GENDERS = {"F": "female", "M": "male", "U": "unknown"}
X12_SUBSCRIBER = {"Y": "Primary", "N": "Dependent"}

_STATES = """AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut|DE Delaware
DC District of Columbia|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|IA Iowa|KS Kansas|KY Kentucky
LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|MI Michigan|MN Minnesota|MS Mississippi|MO Missouri|MT Montana
NE Nebraska|NV Nevada|NH New Hampshire|NJ New Jersey|NM New Mexico|NY New York|NC North Carolina|ND North Dakota|OH Ohio
OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island|SC South Carolina|SD South Dakota|TN Tennessee|TX Texas|UT Utah
VT Vermont|VA Virginia|WA Washington|WV West Virginia|WI Wisconsin|WY Wyoming|AS American Samoa|GU Guam
MP Northern Mariana Islands|PR Puerto Rico|VI Virgin Islands|VI U.S. Virgin Islands|FM Federated States of Micronesia
MH Marshall Islands|PW Palau|AA Armed Forces Americas|AE Armed Forces Europe|AP Armed Forces Pacific"""
# The individual relationship codes of the HIPAA 834 implementation guide (data element 1069).
_RELATIONSHIPS = """01 Spouse|03 Father or Mother|04 Grandfather or Grandmother|05 Grandson or Granddaughter|06 Uncle or Aunt
07 Nephew or Niece|08 Cousin|09 Adopted Child|10 Foster Child|11 Son-in-law or Daughter-in-law
12 Brother-in-law or Sister-in-law|13 Mother-in-law or Father-in-law|14 Brother or Sister|15 Ward
16 Stepparent|17 Stepson or Stepdaughter|18 Self|19 Child|23 Sponsored Dependent
24 Dependent of a Minor Dependent|25 Ex-spouse|26 Guardian|31 Court Appointed Guardian
38 Collateral Dependent|48 Stepfather|49 Stepmother|53 Life Partner|60 Annuitant|D2 Trustee
G8 Other Relationship|G9 Other Relative"""


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = (entry.partition(" ") for line in text.splitlines() for entry in line.split("|"))
    return [(code, meaning) for code, _, meaning in pairs]


# Code or full name, as written here or lower-cased, to the USPS code.
STATE_CODES = {
    name: code
    for code, meaning in _pairs(_STATES)
    for each in (meaning, code)
    for name in (each, each.lower())
}
HIPAA_RELATIONSHIPS = dict(_pairs(_RELATIONSHIPS))

EARLIEST_DOB = "1900-01-01"
EMAIL_LENGTH = 254
METADATA_KEYS, METADATA_KEY_LENGTH, METADATA_VALUE_LENGTH = 50, 40, 500
_SHORTEST_DATE = len("2026-01-01")
_LONGEST_DATE = len("2026-01-01T00:00:00.000000000+00:00")

# Each rule stands once: it is the schema's pattern and the reader's.
DATE_PATTERN = re.compile(
    "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
PHONE_PATTERN = re.compile("[ ().+/-]*(?:1[ ().+/-]*)?(?:[0-9][ ().+/-]*){10}")
ZIPCODE_PATTERN = re.compile("[0-9]{5}(?:-?[0-9]{4})?")
# A part of what email-validator accepts, for which its 60 µs are saved. The library decides about everything else.
_PLAIN_EMAIL = re.compile(
    r"[A-Za-z0-9_]+(?:[.+-][A-Za-z0-9_]+)*@(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]{2,24}"
)
_PLAIN_EMAIL_LENGTH = 64

# Shapes of refused texts, by the code of the fault: the first pattern that matches the whole text, without letter case.
# All take linear time (docs/decisions/0008).
_M, _N, _YEAR = "(?:0?[0-9]|1[0-2])[/.-]", "[0-9]{1,2}[/.-]", "(?:[0-9]{4}|[0-9]{1,2})(?![0-9]).*"
_LOOKS = {
    "not_a_date": {
        DATE_PATTERN.pattern: "this day does not exist",
        _M + _M + _YEAR: "it looks like month/day/year or day/month/year",
        _M + _N + _YEAR: "it looks like month/day/year",
        _N + _M + _YEAR: "it looks like day/month/year",
        "[0-9]{4}[/.][0-9]{1,2}[/.][0-9]{1,2}(?![0-9]).*": "it looks like year/month/day",
        "[1-9][0-9]{4}(?:[.][0-9]+)?": "it looks like an Excel serial number",
        "[0-9]{8}": "it looks like a date without hyphens",
        "(?:.*[^a-z])?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*": "it looks like a date with the name of a month",
    },
    "malformed_zipcode": {
        "[0-9]+[.]0+": "it looks like a number with decimals",
        "[0-9]{3,4}(?:-?[0-9]{4})?": "it looks like a zip without its leading zeros",
    },
    "not_ten_digits": {
        "[0-9](?:[.,][0-9]+)?e[+]?[0-9]{1,2}": "it looks like a number that a spreadsheet has rounded",
        r".*[0-9]\D*(?:ext|x|#)\D*[0-9]{1,6}": "it looks like a number with an extension",
        "[+](?!1).*": "it looks like a number outside North America",
    },
    "malformed_email": {
        "[^@]*@[^@]*@.*": "it looks like several addresses",
        "[^<]*<.*>": "it looks like a name with an address",
        "[^@]{1,100}": "it has no @",
    },
    "not_allowed": {"[yn]|yes|no": "it looks like yes or no", "[a-z]|[0-9]{1,2}": "it looks like a code"},
}


@dataclass(slots=True)
class FieldContext:
    """The context of a reader: the record, today (`YYYY-MM-DD` in UTC), and the warnings so far."""

    today: str
    warnings: list[str] = field(default_factory=list)


def _text(value: object, rule: str = "must be a string") -> str:
    if type(value) is not str:
        raise Rejected("wrong_type", rule)
    return value


def day_exists(day: str) -> bool:
    """Whether the calendar has the day `YYYY-MM-DD`."""
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def _read_calendar_date(text: str) -> tuple[str, bool] | None:
    if DATE_PATTERN.fullmatch(text) is None or not day_exists(text[:10]):
        return None
    time = re.split("[Zz+-]", text[11:])[0]
    return text[:10], not time.strip("0:.,")


def _calendar_date(value: object) -> tuple[str, bool]:
    """The date as written, never moved to another time zone, and whether its time is midnight or absent. Raises Rejected."""
    text = _text(value)
    if len(text) != _SHORTEST_DATE:
        text = trimmed(text)
    # The cache keeps its keys, so nothing longer than a date may get into it.
    found = _read_calendar_date(text) if len(text) <= _LONGEST_DATE else None
    if found is None:
        raise Rejected("not_a_date", "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp")
    return found


def _read_dob(value: object, context: FieldContext) -> str:
    day, is_midnight = _calendar_date(value)
    if day > context.today:
        raise Rejected("in_the_future", "must not be in the future")
    if day < EARLIEST_DOB:
        raise Rejected("before_1900", "must not be before 1900")
    if not is_midnight:
        context.warnings.append("dob_not_midnight")
    return day


def parse_email(value: object) -> str:
    """The address, trimmed; only its syntax is checked. Raises Rejected."""
    email = _text(value)
    if len(email) <= _PLAIN_EMAIL_LENGTH and _PLAIN_EMAIL.fullmatch(email):
        return email
    email = trimmed(email)
    if len(email) <= EMAIL_LENGTH and "." in email.rpartition("@")[2] and ENCODED_WORD not in email:
        with suppress(ValueError):
            validate_email(email, check_deliverability=False, globally_deliverable=False)
            return email
    raise Rejected("malformed_email", "must be an e-mail address of at most 254 characters")


def _read_phone(value: object, _context: FieldContext) -> str:
    phone = _text(value)
    if len(phone) == 10 and phone.isascii() and phone.isdigit():
        return phone
    if not PHONE_PATTERN.fullmatch(trimmed(phone)):
        raise Rejected("not_ten_digits", "must have exactly 10 digits")
    return re.sub("[^0-9]", "", phone)[-10:]


def _read_zipcode(value: object, _context: FieldContext) -> str:
    zipcode = _text(value, "must be a string, so that leading zeros are kept")
    if len(zipcode) == 5 and zipcode.isascii() and zipcode.isdigit():
        return zipcode
    zipcode = trimmed(zipcode)
    if not ZIPCODE_PATTERN.fullmatch(zipcode):
        raise Rejected("malformed_zipcode", "must have 5 or 9 digits, or 5 and 4 with a hyphen")
    return zipcode


def _read_state(value: object, context: FieldContext) -> str:
    state = value if type(value) is str and value in STATE_CODES else parse_text(value, limit=255)
    code = STATE_CODES.get(state) or STATE_CODES.get(state.lower())
    if code is None:
        context.warnings.append("state_not_recognised")
        return state
    return code


def _read_relationship(value: object, context: FieldContext) -> str:
    if type(value) not in (str, int):
        raise Rejected("wrong_type", "must be a string or a whole number")
    if type(value) is int and not 0 <= value <= 99:
        raise Rejected("not_allowed", "as a number must be from 0 to 99")
    code = f"{value:02d}" if type(value) is int else parse_text(value, limit=255)
    if code not in HIPAA_RELATIONSHIPS:
        context.warnings.append("relationship_code_hipaa_unknown")
    return code


def _read_boolean(value: object, _context: FieldContext) -> bool:
    if type(value) is not bool:
        raise Rejected("wrong_type", "must be true or false, without quotes")
    return value


def _read_metadata(value: object, _context: FieldContext) -> dict[str, str]:
    """A flat object of strings, kept exactly as sent. Raises RejectedParts with the faults of its first 50 keys."""
    if type(value) is not dict:
        raise Rejected("wrong_type", "must be an object whose values are strings")
    rejected = []
    if len(value) > METADATA_KEYS:
        rejected.append(Rejected("too_many_keys", f"must have at most {METADATA_KEYS} keys"))
    for key, item in islice(value.items(), METADATA_KEYS):
        is_item = type(item) is str and len(item) <= METADATA_VALUE_LENGTH and item.isprintable()
        if is_item and 0 < len(key) <= METADATA_KEY_LENGTH and key.isprintable():
            continue
        if not key:
            rejected.append(Rejected("empty_key", "must not have an empty key"))
        for text, limit, what in ((key, METADATA_KEY_LENGTH, "keys "), (item, METADATA_VALUE_LENGTH, "")):
            try:
                if len(_text(text)) > limit:
                    raise Rejected("too_long", f"{what}must have at most {limit} characters")  # noqa: TRY301
                refuse_control_characters(text)
            except Rejected as error:
                rejected.append(Rejected(error.code, error.message, part=shown_name(key)))
    if rejected:
        raise RejectedParts(rejected)
    return value


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
    stored text. A plain text of at most `plain_length` characters is its own stored form. `from_text` makes the JSON value of a
    text cell: a text that does not convert stays as it is, for `read` to refuse; None where the text is the value.
    """

    read: Callable[[Any, FieldContext], Any]
    schema: dict[str, Any]
    length: int = 0
    storage: Storage = Storage.TEXT
    plain_length: int = 0
    from_text: Callable[[str], object] | None = None


def _text_kind(limit: int) -> FieldKind:
    schema = {"type": "string", "maxLength": limit}
    return FieldKind(lambda value, _: parse_text(value, limit=limit), schema, limit, plain_length=limit)


def _choice_kind(*words: str, booleans: bool = False) -> FieldKind:
    """One of the words in any letter case, stored as written here; with `booleans`, true and false stand for TRUE and FALSE."""
    by_folded = {written: word for word in words for written in (word, word.lower())}
    rule = f"must be {' or '.join(words)}" if len(words) == 2 else f"must be one of {', '.join(words)}"

    def read(value: object, _context: FieldContext) -> str:
        if type(value) is str and value in by_folded:
            return by_folded[value]
        if booleans and type(value) not in (str, bool):
            raise Rejected("wrong_type", f"{rule}, as a string or a boolean")
        text = parse_text(str(value) if booleans else value, limit=255)
        found = by_folded.get(text.lower())
        if found is None:
            raise Rejected("not_allowed", rule)
        return found

    # JSON Schema's patterns have no flag for letter case.
    any_case = "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in word) for word in words)
    schema = {"type": ["string", "boolean"] if booleans else "string", "pattern": f"^(?:{any_case})$"}
    return FieldKind(read, schema, max(map(len, words)))


def _pattern(rule: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{rule.pattern}$"}


def x12_date(text: str) -> str:
    """CCYYMMDD as YYYY-MM-DD; any other text as it is."""
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if len(text) == 8 and text.isdigit() else text


def _object_from_text(text: str) -> object:
    try:
        return parse_strictly(text)
    except NotStrict:
        return text


SHORT_TEXT, NAME = _text_kind(255), _text_kind(100)
DATE = FieldKind(lambda value, _: _calendar_date(value)[0], _pattern(DATE_PATTERN), 10, Storage.DATE)
DATE_OF_BIRTH = replace(DATE, read=_read_dob)
GENDER = _choice_kind(*GENDERS)
EMAIL = replace(_text_kind(EMAIL_LENGTH), plain_length=0, read=lambda value, _: parse_email(value))
PHONE = FieldKind(_read_phone, _pattern(PHONE_PATTERN), 10)
ZIPCODE = FieldKind(_read_zipcode, _pattern(ZIPCODE_PATTERN), 10)
STATE = replace(SHORT_TEXT, plain_length=0, read=_read_state)
TRUE_OR_FALSE = _choice_kind("TRUE", "FALSE", booleans=True)
SUBSCRIBER_RELATIONSHIP = _choice_kind("Primary", "Dependent")
HIPAA_RELATIONSHIP = FieldKind(
    _read_relationship,
    {"type": ["string", "integer"], "maxLength": 255, "minimum": 0, "maximum": 99},
    SHORT_TEXT.length,
    # Spreadsheets drop the zero of 01; a body may have the integer 1 instead.
    from_text=lambda text: int(text) if len(text) == 1 and "0" <= text <= "9" else text,
)
BOOLEAN = FieldKind(
    _read_boolean,
    {"type": "boolean"},
    storage=Storage.NONE,
    from_text=lambda text: {"true": True, "false": False}.get(text.lower(), text),
)
METADATA = FieldKind(
    _read_metadata,
    {
        "type": "object",
        "maxProperties": METADATA_KEYS,
        "propertyNames": {"minLength": 1, "maxLength": METADATA_KEY_LENGTH},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_LENGTH},
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

# An unusable optional value of a file is dropped with a warning; never the day on which access ends.
DROPPED = tuple(field.name for field in FIELDS.values() if not field.required and field.name != "expiry_date")

STORED_FIELDS = tuple(field.name for field in FIELDS.values() if field.kind.storage is not Storage.NONE)
# The columns of the members table that come from the fields. E-mail addresses are compared in their folded form. A member
# that was ended by absence keeps its earlier expiry_date (eligibility.decide).
STORED_COLUMNS = (*STORED_FIELDS, "email_folded", "expiry_before_absence")

# The unique fields, each with the column that is compared.
UNIQUE = {name: "email_folded" if name == "email" else name for name, each in FIELDS.items() if each.unique}

_LONGEST_ID = 255
_REQUIRED = frozenset(REQUIRED)


def parse_member(
    body: Mapping[str, object], *, today: str, strict: bool = False, lenient: bool = False
) -> MemberRecord:
    """Read every field of the body (docs/interface.md, Eligible members). Never raises; `today` is `YYYY-MM-DD`.

    Unknown fields are named in `ignored`, and are faults too when `strict`. Absent fields stay out of `given`,
    and so do fields of DROPPED that can't be used when `lenient`: they are warned of.
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
        except (Rejected, RejectedParts) as rejected:
            if lenient and name in DROPPED:
                [(_, _, message), *_] = _faults(name, rejected, value)
                context.warnings.append(f"{name}_dropped{WARNING_MARK}{message}")
            else:
                faults += _faults(name, rejected, value)
    if "external_id" not in body:
        faults.append(Fault("external_id", "required", "is required: it is the match key"))
    if strict:
        faults += unknown_faults(ignored)
    if "email" in given:
        given["email_folded"] = None if given["email"] is None else fold_email(given["email"])
    asked, key = bool(given.pop("invite_immediately", False)), given.get("external_id")
    return MemberRecord(key, given, asked, tuple(faults), tuple(context.warnings), tuple(ignored))


def _read(field: Field, value: Any, context: FieldContext) -> Any:
    """The stored form of a field; None clears it, and an empty object metadata. Raises Rejected, RejectedParts."""
    kind = field.kind
    if type(value) is str and len(value) <= kind.plain_length and is_plain(value):
        return value
    if value is None or (type(value) is str and not value[:1].isalnum() and not trimmed(value)):
        if field.required:
            raise Rejected("required", "must not be null or blank")
        return {} if kind is METADATA else None
    return kind.read(value, context)


def read_external_id(value: object) -> str | None:
    """The match key in its stored form; None when it is missing or not valid."""
    try:
        return parse_text(value, limit=_LONGEST_ID) or None if type(value) is str else None
    except Rejected:
        return None


def read_external_ids(values: Sequence[str | None]) -> Sequence[str | None]:
    """`read_external_id` of each. Plain ones, as nearly all are, are checked together."""
    if None not in values and all(values):
        text = "".join(values)  # type: ignore[arg-type]
        if text.isascii() and text.isprintable() and " " not in text and max(map(len, values)) <= _LONGEST_ID:  # type: ignore[arg-type]
            return values
    return [*map(read_external_id, values)]


def missing_on_create(record: MemberRecord, causes: Iterable[Fault] = ()) -> list[Fault]:
    """A fault for each required field that is absent and has no fault yet; `causes` stand for those of their fields."""
    if record.given.keys() >= _REQUIRED:
        return []
    at_fault = {fault.field for fault in record.faults}
    known = {cause.field: cause for cause in causes}
    return [
        known.get(name) or Fault(name, "required", "is required for a new member")
        for name in REQUIRED
        if name not in record.given and name not in at_fault
    ]


def check_dates(effective_date: str | None, expiry_date: str | None) -> Fault | None:
    """The fault of dates in the wrong order. Both days are inclusive, so equal dates are fine."""
    if effective_date is not None and expiry_date is not None and expiry_date < effective_date:
        return Fault("expiry_date", "expiry_before_effective", "must not be before effective_date")
    return None


def _faults(name: str, rejected: Rejected | RejectedParts, value: object) -> list[Fault]:
    parts = rejected.parts if isinstance(rejected, RejectedParts) else (rejected,)
    return [
        Fault(f"{name}.{part.part}" if part.part else name, part.code, part.message + _look(part.code, value))
        for part in parts
    ]


def _look(code: str, value: object) -> str:
    """The shape of the start of a refused text, after a semicolon; "" without a known shape."""
    start = value.strip()[:101] if isinstance(value, str) else ""
    looks = _LOOKS.get(code, {}).items()
    said = (said for look, said in looks if re.fullmatch(look, start, re.IGNORECASE | re.DOTALL))
    return "".join(f"; {each}" for each in islice(said, 1))
