"""Parses what a mapping says of 834s: what identifiers and plans are made from, and the section `834` (docs/834.md)."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from frontdesk.errors import Fault, unknown_faults

# The ways to make an identifier of an 834: the parts of a way are joined, the first way with all its parts is taken.
Alternatives = tuple[tuple[str, ...], ...]
SECTION_834, EVERY_LINE = "834", "all"
MOST_ALTERNATIVES, LONGEST_ALTERNATIVE = 100, 100  # each is tried for each member
SSN_WORDS, VERIFY_WORDS, COUNTS_WORDS = ("hashed", "plain"), ("compare", "full"), ("strict", "lenient")

_REF, _PERSON, _PLUS = r"REF\*[0-9A-Z]{2,3}", "NM109|person_code", r" *\+ *"
# Not REF*0F, 1L or 38, which are the same for a family, for a group, for a whole file.
_OWN_REF = r"REF\*(?:0[0-9A-EG-Z]|1[0-9A-KM-Z]|3[0-79A-Z]|[24-9A-Z][0-9A-Z]|[0-9A-Z]{3})"
_KEY_PART, _PART = f"(?:{_REF}|{_PERSON})", f"(?:{_REF}|{_PERSON}|HD03|HD04)"
REFERENCE = re.compile(_REF)
SOURCES = re.compile(f"{_PART}(?:{_PLUS}{_PART})*")
# An identifier needs a part that is the member's own.
KEY_SOURCES = re.compile(f"(?:{_KEY_PART}{_PLUS})*(?:{_OWN_REF}|{_PERSON})(?:{_PLUS}{_KEY_PART})*")


def read_834(body: Any, faults: list[Fault]) -> dict[str, Any]:
    """What the account says of its 834s, by the name that it has in FileMapping."""
    if not isinstance(body, dict):
        faults.append(Fault(SECTION_834, "wrong_type", "must be an object"))
        return {}
    faults += unknown_faults(f"{SECTION_834}.{name}" for name in body if name not in _PARTS_834)
    return {
        known: read(f"{SECTION_834}.{name}", body[name], faults)
        for name, (known, read) in _PARTS_834.items()
        if name in body
    }


def read_reference(place: str, value: Any, faults: list[Fault]) -> str:
    word = _read_word(place, value, faults)
    if not REFERENCE.fullmatch(word):
        faults.append(Fault(place, "not_allowed", "must be a reference such as REF*17"))
    return word


def read_lines(place: str, value: Any, faults: list[Fault]) -> frozenset[str] | None:
    if value == EVERY_LINE:
        return None
    if isinstance(value, list) and value and all(type(item) is str and item.strip() for item in value):
        return frozenset(item.strip().upper() for item in value)
    faults.append(Fault(place, "wrong_type", 'must be "all" or an array of insurance line codes'))
    return None


def _read_choice_of(words: tuple[str, ...], place: str, value: Any, faults: list[Fault]) -> str:
    if value not in words:
        faults.append(Fault(place, "not_allowed", f"must be {' or '.join(words)}, or be left out"))
    return str(value)


def read_sources(
    place: str, value: Any, faults: list[Fault], *, sources: re.Pattern[str] = SOURCES
) -> Alternatives:
    given = [value] if type(value) is str else value
    if (
        not isinstance(given, list)
        or not 1 <= len(given) <= MOST_ALTERNATIVES
        or not all(type(item) is str and len(item) <= LONGEST_ALTERNATIVE for item in given)
    ):
        rule = f"must be a string of at most {LONGEST_ALTERNATIVE} characters, or an array of up to {MOST_ALTERNATIVES}"
        faults.append(Fault(place, "wrong_type", rule))
        return ()
    alternatives = [item.strip() for item in given]
    if not all(map(SOURCES.fullmatch, alternatives)):
        message = "must name REF*.., NM109, HD03, HD04 or person_code, joined by +"
        faults.append(Fault(place, "not_allowed", message))
    elif not all(map(sources.fullmatch, alternatives)):
        message = "must not be made from a coverage (HD), nor from REF*0F, REF*1L or REF*38 alone: members share them"
        faults.append(Fault(place, "not_allowed", message))
    return tuple(tuple(part.strip() for part in item.split("+")) for item in alternatives)


def _read_word(place: str, value: Any, faults: list[Fault]) -> str:
    if type(value) is str and value.strip():
        return value.strip()
    faults.append(Fault(place, "wrong_type", "must be a string that is not blank"))
    return ""


read_key = partial(read_sources, sources=KEY_SOURCES)
_PARTS_834: dict[str, tuple[str, Callable[[str, Any, list[Fault]], Any]]] = {
    "coverages": ("lines", read_lines),
    "ssn": ("ssn", partial(_read_choice_of, SSN_WORDS)),
    "verify": ("verify", partial(_read_choice_of, VERIFY_WORDS)),
    "counts": ("counts", partial(_read_choice_of, COUNTS_WORDS)),
}
