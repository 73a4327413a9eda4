"""Input of callers: texts in NFC, trimmed, without control characters, and JSON that all parsers
read in the same way.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from hashlib import blake2b
from itertools import chain
from typing import Any, Self
from urllib.parse import quote

import idna

from frontdesk import codes
from frontdesk.codes import Code

# Printable ASCII without a space at either end is already in the form that the rule asks for.
is_plain = re.compile(r"[!-~](?:[ -~]*[!-~])?").fullmatch
# No character is more than four in any form of Unicode: one and the three marks that it takes up.
_LONGEST_DECOMPOSITION = 4
# Trimmed at the ends: white space as Unicode has it (Python counts four control characters more)
# and invisible characters. Inside a name, joiners tell letters apart.
_ASCII_SPACE = " \t\n\v\f\r"
_PYTHONS_SPACE = "\x1c\x1d\x1e\x1f"
# Where Unicode has such characters: a look at all of it takes 0.1 s.
_BLOCKS = (
    range(0x0900),
    range(0x1680, 0x1681),
    range(0x1800, 0x1810),
    range(0x2000, 0x2070),
    range(0x3000, 0x3001),
    range(0xFE00, 0x10000),
    range(0x110B0, 0x110D0),
    range(0x13430, 0x13440),
    range(0x1BCA0, 0x1BCB0),
    range(0x1D170, 0x1D180),
    range(0xE0000, 0xE0080),
)
_TRIMMED = "".join(
    each
    for each in map(chr, chain.from_iterable(_BLOCKS))
    if (each.isspace() and each not in _PYTHONS_SPACE) or unicodedata.category(each) == "Cf"
)
# controls, lone surrogates, line and paragraph separators
_REFUSED_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Unicode's property Bidi_Control: these show a text in another order than it is stored in (UTS 39,
# section 3.1). Names and identifiers have none; a mail's template in Arabic may.
_BIDI_CONTROLS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)

# The start of an encoded word (RFC 2047). A mail program decodes it, line ends and all, so it may
# not stand in a header: in an address or a sender's name.
ENCODED_WORD = "=?"

HOST_LENGTH = 253  # of a name in the DNS
_HOST_LABEL = re.compile("[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")

_NO_CONTROLS = "must not contain control characters"


class Rejected(Exception):
    """A value breaks a rule. `message` states the rule and never the value; `part` names the place
    inside the field.
    """

    def __init__(self, code: Code, message: str, *, part: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.part = part


class RejectedParts(Exception):
    """Several places inside one value break rules; each of the `parts` names its own."""

    def __init__(self, parts: Sequence[Rejected]) -> None:
        super().__init__("parts")
        self.parts = tuple(parts)


def parse_text(value: object, *, limit: int) -> str:
    """The text in the form it is stored in; "" when nothing but space is left. Raises Rejected.

    >>> parse_text("  Robin ", limit=10)
    'Robin'
    >>> parse_text("Robin", limit=3)
    Traceback (most recent call last):
        ...
    frontdesk.text.Rejected: too_long
    """
    if type(value) is not str:
        raise Rejected(codes.faults.WRONG_TYPE, "must be a string")
    if not is_plain(value):
        value = trimmed(value)
        if len(value) > limit and _stays_too_long(value, limit):
            raise _too_long(limit)
        value = unicodedata.normalize("NFC", value)
        refuse_control_characters(value)
        if not _BIDI_CONTROLS.isdisjoint(value):
            raise Rejected(codes.faults.CONTROL_CHARACTER, _NO_CONTROLS)
    if len(value) > limit:
        raise _too_long(limit)
    return value


def trimmed(value: str) -> str:
    """Without white space and invisible characters (U+200B, U+FEFF, …) at either end.

    >>> trimmed("  Robin Sample ")
    'Robin Sample'
    """
    if value.isascii():
        return value.strip(_ASCII_SPACE)
    return value.strip(_TRIMMED)


def _stays_too_long(value: str, limit: int) -> bool:
    """Whether no normalisation brings the text below the limit. Normalising a long run of combining
    marks takes quadratic time, which could be seconds.
    """
    if len(value) > _LONGEST_DECOMPOSITION * limit:
        return True
    run = staying = 0
    for character in value:
        run = run + 1 if unicodedata.combining(character) else 0
        staying += run >= _LONGEST_DECOMPOSITION
    return staying > limit


def _too_long(limit: int) -> Rejected:
    return Rejected(codes.faults.TOO_LONG, f"must have at most {limit} characters")


def refuse_control_characters(value: str) -> None:
    """Raises Rejected for characters that people can't read or a database can't store (U+0000, lone
    surrogates, …).

    >>> refuse_control_characters(chr(0))
    Traceback (most recent call last):
        ...
    frontdesk.text.Rejected: control_character
    """
    if not value.isprintable() and any(
        unicodedata.category(c) in _REFUSED_CATEGORIES for c in value
    ):
        raise Rejected(codes.faults.CONTROL_CHARACTER, _NO_CONTROLS)


def fold_email(email: str) -> str:
    """The compared form of an address: the same for all spellings of one mailbox.

    The local part is composed (NFC), the domain is an IDNA A-label as UTS 46 makes it, both in
    lower case. email-validator writes the recipient of a mail with the same package; otherwise a
    suppressed address could be mailed under another spelling of its domain. Never made by a
    database: its lower() differs.

    >>> fold_email("Robin@Example.com")
    'robin@example.com'
    >>> fold_email("Robin@Bücher.example")
    'robin@xn--bcher-kva.example'
    """
    if email.isascii():
        return email.lower()
    local, at, domain = email.rpartition("@")
    return f"{unicodedata.normalize('NFC', local).lower()}{at}{_fold_domain(domain)}"


def _fold_domain(domain: str) -> str:
    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:  # no mail can be sent there
        return unicodedata.normalize("NFKC", domain).lower()


def is_host_name(text: str) -> bool:
    """Whether the text is a name as the DNS has it (RFC 1123), with the underscores that services
    use.

    The labels are split first. One pattern for the whole name would have to guess where a label
    ends, and a name that is wrong at its end would take exponential time.

    >>> is_host_name("mail.example.com")
    True
    >>> is_host_name("-mail.example.com")
    False
    """
    if len(text) > HOST_LENGTH:
        return False
    labels = text.removesuffix(".").split(".")
    return all(_HOST_LABEL.fullmatch(label) for label in labels)


# With hyphens or spaces any area counts, also those of taxpayers' numbers; nine digits alone have
# to be in the ranges that the Social Security Administration issues: no area 000, 666 or 9xx, no
# group 00, no serial number 0000.
_SSN = re.compile(
    "[0-9]{3}([- ])[0-9]{2}\\1[0-9]{4}|(?!000|666|9)[0-9]{3}(?!00)[0-9]{2}(?!0000)[0-9]{4}"
)

SSN_LENGTHS = (9, 11)


def looks_like_ssn(text: str) -> bool:
    """True if the text looks like a social security number, as do nine of ten random numbers of
    nine digits.

    >>> looks_like_ssn("123-45-6789")
    True
    >>> looks_like_ssn("000456789")
    False
    """
    return _SSN.fullmatch(text) is not None


def are_mostly_ssns(texts: Sequence[str]) -> bool:
    """Whether more than half of the texts look like social security numbers.

    >>> are_mostly_ssns(["123-45-6789", "123-45-6780", "E-7"])
    True
    """
    return sum(map(looks_like_ssn, texts)) * 2 > len(texts)


# Letters and signs that have no shape, beside those of the categories of invisible characters.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")
_INVISIBLE = _REFUSED_CATEGORIES | {"Cf"}
ISOLATE = "\u2068"
END_OF_ISOLATE = "\u2069"


def visible(text: str) -> str:
    """The text as a page may show it: each character that people can't see, or that would turn the
    letters around it, stands as its number. Joiners stay between letters of other scripts.

    >>> visible("list" + chr(0x202E) + "vsc.csv")
    'list[U+202E]vsc.csv'
    """
    if text.isascii() and text.isprintable():
        return text
    before = ""
    shown = []
    for character in text:
        is_joiner = character in _JOINERS and before > "\x7f"
        is_hidden = character in _BLANKS or unicodedata.category(character) in _INVISIBLE
        shown.append(f"[U+{ord(character):04X}]" if is_hidden and not is_joiner else character)
        before = character
    return "".join(shown)


def isolated(text: str) -> str:
    """The visible text for a sentence or a title, where its letters turn no others around: an
    Arabic name would swap what stands beside it.

    >>> isolated("Robin")
    'Robin'
    """
    text = visible(text)
    return text if text.isascii() else f"{ISOLATE}{text}{END_OF_ISOLATE}"


SHOWN_NAMES = 20
SHOWN_LENGTH = 40


def shown_name(name: str) -> str:
    """A name that a caller chose, fit to be shown: percent-encoded and shortened. Show at most
    SHOWN_NAMES of them.

    >>> shown_name("Zip code")
    'Zip%20code'
    """
    return quote(name[:SHOWN_LENGTH].encode("utf-8", "replace"), safe="")


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that resembles `name`: equal except for signs and letter case, or similar.
    None for a longer name than is shown, since comparing takes quadratic time.

    >>> nearest_name("Zip-Code", ["zipcode", "city"])
    'zipcode'
    >>> nearest_name("shoe", ["zipcode", "city"]) is None
    True
    """
    if len(name) > SHOWN_LENGTH:
        return None
    by_folded = {_without_signs(each): each for each in known}
    nearest = get_close_matches(_without_signs(name), by_folded, n=1, cutoff=0.8)
    return by_folded[nearest[0]] if nearest else None


def _without_signs(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


# Python's own bound depends on the depth of the caller's stack; this one is the same everywhere.
LARGEST_DEPTH = 100

_TOO_DEEP = "is nested too deeply"
# Only such an escape can be half of a surrogate pair: UTF-8 has none.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotStrict(Exception):
    """The text is not JSON, or two parsers could read it differently. The message continues "the
    body" or "the line" and quotes nothing of the text but a key. `place` is where the parser gave
    up, in words, if that is one place.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


def parse_strictly(text: str) -> Any:
    """The JSON value in `text`. Raises NotStrict for text that is not JSON, a BOM, NaN, a number
    that overflows, duplicate keys at any depth, half of a surrogate pair, and more than 100 levels.

    >>> parse_strictly('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_strictly('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    frontdesk.text.NotStrict: has the key a twice
    """
    try:
        value = _DECODER.decode(text)
        # Only texts with so many brackets can be too deep; all others skip the walk.
        if text.count("{") + text.count("[") > LARGEST_DEPTH and _is_too_deep(value):
            raise NotStrict(_TOO_DEEP)
        if "\\u" in text and _SURROGATE_ESCAPE.search(text) is not None:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NotStrict(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise NotStrict("has half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise NotStrict("is not valid JSON", f"line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise NotStrict("is not valid JSON") from None
    return value


def _is_too_deep(value: object) -> bool:
    """Opens level by level: a hostile text could exhaust a recursion."""
    level: list[Any] = [value]
    for _ in range(LARGEST_DEPTH):
        nested = (item for item in level if type(item) in (dict, list))
        opened = (item.values() if type(item) is dict else item for item in nested)
        level = list(chain.from_iterable(opened))
    return any(type(item) in (dict, list) for item in level)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotStrict(f"has the key {shown_name(twice)} twice")
    return built


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotStrict("has a number that is too large")
    return number


def _constant(_name: str) -> float:
    raise NotStrict("has NaN or Infinity, which are not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_constant
)


def count_text(count: int, noun: str) -> str:
    """A number of things, for people.

    >>> count_text(1, "visit"), count_text(1200, "visit")
    ('1 visit', '1,200 visits')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def wire_time(moment: datetime) -> str:
    """A time as the interface writes it: UTC, whole seconds, `2016-09-28T23:33:32Z`.

    >>> wire_time(datetime(2026, 11, 20, 12, 30, 0, 5, tzinfo=UTC))
    '2026-11-20T12:30:00Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def stored_time(moment: datetime) -> str:
    """A time as the databases take it: UTC, microseconds, always 27 characters so that text sorts
    like time.

    >>> stored_time(datetime(2026, 11, 20, 12, 30, 0, 5, tzinfo=UTC))
    '2026-11-20T12:30:00.000005Z'
    """
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return in_utc.isoformat(timespec="microseconds")[:26] + "Z"


def keyed_hash(text: str, hasher: blake2b) -> str:
    """The hash in hexadecimal digits, by a copy of a keyed hasher: a new hasher for each text would
    take twice as long.

    >>> keyed_hash("robin@example.com", blake2b(key=b"secret", digest_size=4))
    'd4f3f0ea'
    """
    hashed = hasher.copy()
    hashed.update(text.encode())
    return hashed.hexdigest()


class DescribedEnum(StrEnum):
    """Stored words, each with the sentence that people read: `WORD = "word", "A sentence."`."""

    description: str

    def __new__(cls, word: str, description: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.description = description
        return member
