"""The kinds of fields: how a value is read, described in the schema, stored, and read from a file.

A reader gets a JSON value, never null or blank, and gives its stored form or raises Rejected; it
leaves warnings in the context.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any

from email_validator import validate_email

from frontdesk import codes
from frontdesk.eligibility.model import MemberWarning
from frontdesk.eligibility.placeholders import PLACEHOLDER_PHONES, is_placeholder_email
from frontdesk.text import (
    ENCODED_WORD,
    NotStrict,
    Rejected,
    RejectedParts,
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

_STATES = (
    ("AL", "Alabama"),
    ("AK", "Alaska"),
    ("AZ", "Arizona"),
    ("AR", "Arkansas"),
    ("CA", "California"),
    ("CO", "Colorado"),
    ("CT", "Connecticut"),
    ("DE", "Delaware"),
    ("DC", "District of Columbia"),
    ("FL", "Florida"),
    ("GA", "Georgia"),
    ("HI", "Hawaii"),
    ("ID", "Idaho"),
    ("IL", "Illinois"),
    ("IN", "Indiana"),
    ("IA", "Iowa"),
    ("KS", "Kansas"),
    ("KY", "Kentucky"),
    ("LA", "Louisiana"),
    ("ME", "Maine"),
    ("MD", "Maryland"),
    ("MA", "Massachusetts"),
    ("MI", "Michigan"),
    ("MN", "Minnesota"),
    ("MS", "Mississippi"),
    ("MO", "Missouri"),
    ("MT", "Montana"),
    ("NE", "Nebraska"),
    ("NV", "Nevada"),
    ("NH", "New Hampshire"),
    ("NJ", "New Jersey"),
    ("NM", "New Mexico"),
    ("NY", "New York"),
    ("NC", "North Carolina"),
    ("ND", "North Dakota"),
    ("OH", "Ohio"),
    ("OK", "Oklahoma"),
    ("OR", "Oregon"),
    ("PA", "Pennsylvania"),
    ("RI", "Rhode Island"),
    ("SC", "South Carolina"),
    ("SD", "South Dakota"),
    ("TN", "Tennessee"),
    ("TX", "Texas"),
    ("UT", "Utah"),
    ("VT", "Vermont"),
    ("VA", "Virginia"),
    ("WA", "Washington"),
    ("WV", "West Virginia"),
    ("WI", "Wisconsin"),
    ("WY", "Wyoming"),
    ("AS", "American Samoa"),
    ("GU", "Guam"),
    ("MP", "Northern Mariana Islands"),
    ("PR", "Puerto Rico"),
    ("VI", "Virgin Islands"),
    ("VI", "U.S. Virgin Islands"),
    ("FM", "Federated States of Micronesia"),
    ("MH", "Marshall Islands"),
    ("PW", "Palau"),
    ("AA", "Armed Forces Americas"),
    ("AE", "Armed Forces Europe"),
    ("AP", "Armed Forces Pacific"),
)

# The individual relationship codes of the HIPAA 834 implementation guide (data element 1069).
HIPAA_RELATIONSHIPS = {
    "01": "Spouse",
    "03": "Father or Mother",
    "04": "Grandfather or Grandmother",
    "05": "Grandson or Granddaughter",
    "06": "Uncle or Aunt",
    "07": "Nephew or Niece",
    "08": "Cousin",
    "09": "Adopted Child",
    "10": "Foster Child",
    "11": "Son-in-law or Daughter-in-law",
    "12": "Brother-in-law or Sister-in-law",
    "13": "Mother-in-law or Father-in-law",
    "14": "Brother or Sister",
    "15": "Ward",
    "16": "Stepparent",
    "17": "Stepson or Stepdaughter",
    "18": "Self",
    "19": "Child",
    "23": "Sponsored Dependent",
    "24": "Dependent of a Minor Dependent",
    "25": "Ex-spouse",
    "26": "Guardian",
    "31": "Court Appointed Guardian",
    "38": "Collateral Dependent",
    "48": "Stepfather",
    "49": "Stepmother",
    "53": "Life Partner",
    "60": "Annuitant",
    "D2": "Trustee",
    "G8": "Other Relationship",
    "G9": "Other Relative",
}


STATE_CODES = {
    name: code
    for code, meaning in _STATES
    for each in (meaning, code)
    for name in (each, each.lower())
}

EARLIEST_DOB = "1900-01-01"
EMAIL_LENGTH = 254
IDENTIFIER_LENGTH = 255
METADATA_KEYS = 50
METADATA_KEY_LENGTH = 40
METADATA_VALUE_LENGTH = 500
_SHORTEST_DATE = len("2026-01-01")
_LONGEST_DATE = len("2026-01-01T00:00:00.000000000+00:00")

# Each rule stands once: it is the schema's pattern and the reader's.
DATE_PATTERN = re.compile(
    "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
# Parts of a class of characters: the dashes of Unicode (general category Pd, and the minus sign),
# its spaces (Zs), and invisible characters that word processors and address books add.
_DASHES = (
    r"\u2010-\u2015\u2212\u058a\u05be\u1400\u1806\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d\u301c\u3030"
    r"\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d"
)
_SPACES = r"\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_UNSEEN = r"\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_BETWEEN_DIGITS = rf"[ ().\/{_DASHES}{_SPACES}{_UNSEEN}\-]"
# Ten digits, as docs/interface.md has them. With signs between them the first one is 2 to 9, perhaps
# behind a 1 or +1: other countries group their numbers, too. And what stands for no number.
_NO_PHONE = (
    f"(?:0{_BETWEEN_DIGITS}*){{10}}|(?:1{_BETWEEN_DIGITS}*){{10}}"
    f"|{''.join(f'{digit}{_BETWEEN_DIGITS}*' for digit in '1234567890')}"
)
PHONE_PATTERN = re.compile(
    f"{_BETWEEN_DIGITS}*(?:(?:[+]{_BETWEEN_DIGITS}*1{_BETWEEN_DIGITS}*|1{_BETWEEN_DIGITS}*)?"
    f"(?:[2-9]{_BETWEEN_DIGITS}*(?:[0-9]{_BETWEEN_DIGITS}*){{9}}|{_NO_PHONE})|[01][0-9]{{9}})"
)
ZIPCODE_PATTERN = re.compile(f"[0-9]{{5}}[ {_DASHES}{_SPACES}{_UNSEEN}\\-]{{0,3}}(?:[0-9]{{4}})?")
_STORED_ZIPCODE = re.compile("[0-9]{5}(?:-?[0-9]{4})?")
_NO_DIGITS = re.compile("[^0-9]+")
# In an identifier: with one of them it looks like that of another member, and is none. The fillers
# of Hangul, the blank of Braille and the selectors of variants are invisible too.
_LOOK_ALIKE = re.compile(
    rf"[{_DASHES}{_SPACES}{_UNSEEN}\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164"
    r"\ufe00-\ufe0f\uffa0\ufffd\u02d7\u2043\U000e0000-\U000e0fff]"
)
_PLAIN_CHARACTERS = (
    "must not have invisible characters, nor other dashes and spaces than hyphen and space: it "
    "would look like another identifier; send it with plain ones, or without them"
)
# A part of what email-validator accepts, for which its 60 µs are saved. The library decides about
# everything else.
_PLAIN_EMAIL = re.compile(
    r"[A-Za-z0-9_]+(?:[.+-][A-Za-z0-9_]+)*@(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]{2,24}"
)
_PLAIN_EMAIL_LENGTH = 64
LABEL_LENGTH = 63
DOMAIN_LENGTH = 253
# Ends of domains to which no mail can be sent: names for special use (RFC 6761, 7686, 9476), and
# names of private networks (RFC 6762, appendix G), which nobody is given. A relay refuses such a
# mail, or hands it to a machine of its own network.
UNMAILABLE_ENDS = frozenset(
    (
        *("alt", "arpa", "invalid", "local", "localhost", "onion", "test"),
        *("corp", "home", "internal", "intranet", "lan", "localdomain", "mail", "private"),
    )
)
# Begins the ASCII form of a label, which has at least a character for each of its letters.
_PUNYCODE_MARK = "xn--"


class Placeholder(Exception):
    """The value stands for none, so the field is absent."""


@dataclass(slots=True)
class FieldContext:
    """The context of a reader: the latest day that it may be where the member lives, and the
    warnings so far.
    """

    today: str
    warnings: list[MemberWarning] = field(default_factory=list)


def _text(value: object, rule: str = "must be a string") -> str:
    if type(value) is not str:
        raise Rejected(codes.faults.WRONG_TYPE, rule)
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
    """The date as written, never moved to another time zone, and whether its time is midnight or
    absent. Raises Rejected.
    """
    text = _text(value)
    if len(text) != _SHORTEST_DATE:
        text = trimmed(text)
    # The cache keeps its keys, so nothing longer than a date may get into it.
    found = _read_calendar_date(text) if len(text) <= _LONGEST_DATE else None
    if found is None:
        raise Rejected(
            codes.faults.NOT_A_DATE, "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"
        )
    return found


def _day_reader(not_midnight: codes.Code) -> Callable[[object, FieldContext], str]:
    """Reads a day. Of a timestamp the date as written counts; `not_midnight` warns that it may be
    another day where the sender is.
    """

    def read(value: object, context: FieldContext) -> str:
        day, is_midnight = _calendar_date(value)
        if not is_midnight:
            context.warnings.append(MemberWarning.of(not_midnight))
        return day

    return read


def _read_dob(value: object, context: FieldContext) -> str:
    day, is_midnight = _calendar_date(value)
    if day > context.today:
        raise Rejected(codes.faults.IN_THE_FUTURE, "must not be in the future")
    if day < EARLIEST_DOB:
        raise Rejected(codes.faults.BEFORE_1900, "must not be before 1900")
    if not is_midnight:
        context.warnings.append(MemberWarning.of(codes.warnings.DOB_NOT_MIDNIGHT))
    return day


def _may_be_domain(domain: str) -> bool:
    """Whether the domain has a dot, and its ASCII form stays within the lengths of RFC 1035,
    section 2.3.4. Converting a domain takes milliseconds when its labels are long, or many; what is
    certain to be too long is not converted.
    """
    labels = domain.split(".")
    lengths = [len(each) if each.isascii() else len(_PUNYCODE_MARK) + len(each) for each in labels]
    return (
        len(labels) > 1
        and max(lengths) <= LABEL_LENGTH
        and sum(lengths) + len(labels) - 1 <= DOMAIN_LENGTH
    )


def _malformed_email() -> Rejected:
    rule = "must be an e-mail address of at most 254 characters, in a domain that can have mail"
    return Rejected(codes.faults.MALFORMED_EMAIL, rule)


def parse_email(value: object) -> str:
    """The address, trimmed. Its syntax is checked, and whether its domain can have mail; nobody is
    asked. Raises Rejected.
    """
    email = _text(value)
    if len(email) <= _PLAIN_EMAIL_LENGTH and _PLAIN_EMAIL.fullmatch(email):
        if email.rpartition(".")[2].lower() in UNMAILABLE_ENDS:
            raise _malformed_email()
        return email
    email = trimmed(email)
    if (
        len(email) <= EMAIL_LENGTH
        and ENCODED_WORD not in email
        and _may_be_domain(email.rpartition("@")[2])
    ):
        with suppress(ValueError):
            # Whatever the case, the library refuses an end that is a number, and some of
            # UNMAILABLE_ENDS.
            domain = validate_email(email, check_deliverability=False).ascii_domain
            # Some relays give an address with a pipe to a program.
            if domain.rpartition(".")[2] not in UNMAILABLE_ENDS and "|" not in email:
                return email
    raise _malformed_email()


def _read_email(value: object, _context: FieldContext) -> str:
    email = parse_email(value)
    if is_placeholder_email(email):
        raise Placeholder
    return email


def _read_phone(value: object, _context: FieldContext) -> str:
    phone = _text(value)
    if not (len(phone) == 10 and phone.isascii() and phone.isdigit()):
        if not PHONE_PATTERN.fullmatch(trimmed(phone)):
            raise Rejected(codes.faults.NOT_TEN_DIGITS, "must have exactly 10 digits")
        phone = _NO_DIGITS.sub("", phone)[-10:]
    if phone in PLACEHOLDER_PHONES:
        raise Placeholder
    return phone


def _read_zipcode(value: object, _context: FieldContext) -> str:
    """Digits as they were sent, with a hyphen for any dash or space between them."""
    zipcode = _text(value, "must be a string, so that leading zeros are kept")
    if len(zipcode) == 5 and zipcode.isascii() and zipcode.isdigit():
        return zipcode
    zipcode = trimmed(zipcode)
    if _STORED_ZIPCODE.fullmatch(zipcode):
        return zipcode
    if not ZIPCODE_PATTERN.fullmatch(zipcode):
        raise Rejected(
            codes.faults.MALFORMED_ZIPCODE, "must have 5 or 9 digits, or 5 and 4 with a hyphen"
        )
    digits = _NO_DIGITS.sub("", zipcode)
    return f"{digits[:5]}-{digits[5:]}" if len(digits) > 5 else digits


def _read_state(value: object, context: FieldContext) -> str:
    state = value if type(value) is str and value in STATE_CODES else parse_text(value, limit=255)
    code = STATE_CODES.get(state) or STATE_CODES.get(state.lower())
    if code is None:
        context.warnings.append(MemberWarning.of(codes.warnings.STATE_NOT_RECOGNISED))
        return state
    return code


def _read_relationship(value: object, context: FieldContext) -> str:
    if type(value) is float and value in range(100):  # JSON Schema takes 1.0 for an integer
        value = int(value)
    if type(value) not in (str, int):
        raise Rejected(codes.faults.WRONG_TYPE, "must be a string or a whole number")
    if type(value) is int and not 0 <= value <= 99:
        raise Rejected(codes.faults.NOT_ALLOWED, "as a number must be from 0 to 99")
    code = f"{value:02d}" if type(value) is int else parse_text(value, limit=255)
    if code not in HIPAA_RELATIONSHIPS:
        context.warnings.append(MemberWarning.of(codes.warnings.RELATIONSHIP_CODE_HIPAA_UNKNOWN))
    return code


def parse_identifier(value: object) -> str:
    """The identifier in its stored form. Raises Rejected, also for characters with which it would
    look like another identifier.
    """
    text = parse_text(value, limit=IDENTIFIER_LENGTH)
    if not text.isascii() and _LOOK_ALIKE.search(text):
        raise Rejected(codes.faults.LOOKALIKE_CHARACTER, _PLAIN_CHARACTERS)
    return text


def _read_boolean(value: object, _context: FieldContext) -> bool:
    if type(value) is not bool:
        raise Rejected(codes.faults.WRONG_TYPE, "must be true or false, without quotes")
    return value


def _read_metadata(value: object, _context: FieldContext) -> dict[str, str]:
    """A flat object of strings, kept exactly as sent. Raises RejectedParts with the faults of its
    first 50 keys.
    """
    if type(value) is not dict:
        raise Rejected(codes.faults.WRONG_TYPE, "must be an object whose values are strings")
    rejected = []
    if len(value) > METADATA_KEYS:
        rejected.append(
            Rejected(codes.faults.TOO_MANY_KEYS, f"must have at most {METADATA_KEYS} keys")
        )
    for key, item in islice(value.items(), METADATA_KEYS):
        is_item = type(item) is str and len(item) <= METADATA_VALUE_LENGTH and item.isprintable()
        if is_item and 0 < len(key) <= METADATA_KEY_LENGTH and key.isprintable():
            continue
        if not key:
            rejected.append(Rejected(codes.faults.EMPTY_KEY, "must not have an empty key"))
        for text, limit, what in (
            (key, METADATA_KEY_LENGTH, "keys "),
            (item, METADATA_VALUE_LENGTH, ""),
        ):
            try:
                if len(_text(text)) > limit:
                    rule = f"{what}must have at most {limit} characters"
                    raise Rejected(codes.faults.TOO_LONG, rule)  # noqa: TRY301
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

    `read` turns a JSON value (never null or blank) into its stored form and may leave warnings in
    the context; it raises Rejected or RejectedParts. `schema` is the JSON Schema of a trimmed value
    that is not blank, `stored` that of a stored value. `length` is the longest stored text. A plain
    text of at most `plain_length` characters is its own stored form. `from_text` makes the JSON
    value of a text cell: a text that does not convert stays as it is, for `read` to refuse; None
    where the text is the value.
    """

    read: Callable[[Any, FieldContext], Any]
    schema: dict[str, Any]
    length: int = 0
    storage: Storage = Storage.TEXT
    plain_length: int = 0
    from_text: Callable[[str], object] | None = None
    stored: dict[str, Any] = field(default_factory=lambda: {"type": "string"})


def _text_kind(limit: int) -> FieldKind:
    schema = {"type": "string", "maxLength": limit}
    return FieldKind(
        lambda value, _: parse_text(value, limit=limit), schema, limit, plain_length=limit
    )


def _choice_kind(*words: str, booleans: bool = False) -> FieldKind:
    """One of the words in any letter case, stored as written here; with `booleans`, true and false
    stand for TRUE and FALSE.
    """
    by_folded = {written: word for word in words for written in (word, word.lower())}
    rule = (
        f"must be {' or '.join(words)}" if len(words) == 2 else f"must be one of {', '.join(words)}"
    )

    def read(value: object, _context: FieldContext) -> str:
        if type(value) is str and value in by_folded:
            return by_folded[value]
        if booleans and type(value) not in (str, bool):
            raise Rejected(codes.faults.WRONG_TYPE, f"{rule}, as a string or a boolean")
        text = parse_text(str(value) if booleans else value, limit=255)
        found = by_folded.get(text.lower())
        if found is None:
            raise Rejected(codes.faults.NOT_ALLOWED, rule)
        return found

    # JSON Schema's patterns have no flag for letter case.
    any_case = "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in word) for word in words)
    schema = {
        "type": ["string", "boolean"] if booleans else "string",
        "pattern": f"^(?:{any_case})$",
    }
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


SHORT_TEXT = _text_kind(255)
IDENTIFIER = replace(SHORT_TEXT, read=lambda value, _: parse_identifier(value))
NAME = _text_kind(100)
FIRST_DAY = FieldKind(
    _day_reader(codes.warnings.EFFECTIVE_DATE_NOT_MIDNIGHT),
    _pattern(DATE_PATTERN),
    10,
    Storage.DATE,
    stored={"type": "string", "format": "date"},
)
LAST_DAY = replace(FIRST_DAY, read=_day_reader(codes.warnings.EXPIRY_DATE_NOT_MIDNIGHT))
DATE_OF_BIRTH = replace(FIRST_DAY, read=_read_dob)
GENDER = replace(_choice_kind(*GENDERS), stored={"type": "string", "enum": [*GENDERS]})
EMAIL = replace(_text_kind(EMAIL_LENGTH), plain_length=0, read=_read_email)
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
    stored={"type": "object", "additionalProperties": {"type": "string"}},
)
