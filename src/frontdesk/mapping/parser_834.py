"""Parses what a mapping says of 834s: the way that names a member, what counts, and how the file is taken (docs/834.md)."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from frontdesk.errors import Fault, unknown_faults

SECTION_834, EVERY_LINE = "834", "all"
MOST_ALTERNATIVES, LONGEST_WAY = 100, 100  # each alternative is tried for each member
FIRST_NAME, DOB, SSN_WAY, PERSON_CODE = "first_name", "dob", "ssn", "person_code"

# The parts of a way are joined; of alternatives the first that is complete is taken.
Way = tuple[str, ...]
Alternatives = tuple[Way, ...]

_REF, _PLUS = r"REF\*[0-9A-Z]{2,3}", r" *\+ *"
# Not REF*1L and REF*38, which are the same for a group and for a whole file.
_OWN_REF = r"REF\*(?:1[0-9A-KM-Z]|3[0-79A-Z]|[024-9A-Z][0-9A-Z]|[0-9A-Z]{3})"
_WAY_PART = f"(?:{_REF}|NM109|{SSN_WAY}|{PERSON_CODE}|relationship|birth_sequence|{FIRST_NAME}|{DOB})"
_PARTS = re.compile(f"{_WAY_PART}(?:{_PLUS}{_WAY_PART})*")
_WAY = re.compile(f"(?:{_WAY_PART}{_PLUS})*(?:{_OWN_REF}|NM109|{SSN_WAY})(?:{_PLUS}{_WAY_PART})*")
_PLAN_PART = f"(?:{_REF}|NM109|{PERSON_CODE}|HD03|HD04)"
_SOURCES = re.compile(f"{_PLAN_PART}(?:{_PLUS}{_PLAN_PART})*")
REFERENCE, SOURCES, WAY = re.compile(_REF), _SOURCES, _WAY


class MemberWay(NamedTuple):
    """What an identifier is made from: the parts for subscribers, and those for dependents."""

    subscriber: Way
    dependent: Way

    def of(self, *, is_subscriber: bool) -> Way:
        return self.subscriber if is_subscriber else self.dependent


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


def _read_member_way(place: str, value: Any, faults: list[Fault]) -> MemberWay | None:
    if type(value) is str:
        way = _read_way(place, value, faults)
        return MemberWay(way, way)
    if isinstance(value, dict) and value.keys() == set(MemberWay._fields):
        return MemberWay(*(_read_way(f"{place}.{name}", value[name], faults) for name in MemberWay._fields))
    rule = "must be one way, or an object with the ways of subscriber and dependent"
    faults.append(Fault(place, "wrong_type", rule))
    return None


def _read_way(place: str, value: Any, faults: list[Fault]) -> Way:
    if type(value) is not str or len(value) > LONGEST_WAY or not _PARTS.fullmatch(value.strip()):
        rule = (
            "must name REF*.., NM109, ssn, person_code, relationship, birth_sequence, first_name or dob, joined by +, in at most "
            f"{LONGEST_WAY} characters"
        )
        faults.append(Fault(place, "not_allowed", rule))
        return ()
    way = tuple(part.strip() for part in value.split("+"))
    if not _WAY.fullmatch(value.strip()):
        rule = "must have a number of the member or of its family: a REF that is neither REF*1L nor REF*38, NM109 or ssn"
        faults.append(Fault(place, "not_allowed", rule))
    return way


def _read_reference(place: str, value: Any, faults: list[Fault]) -> str:
    word = value.strip() if type(value) is str else ""
    if not REFERENCE.fullmatch(word):
        faults.append(Fault(place, "not_allowed", "must be a reference such as REF*17"))
    return word


def _read_lines(place: str, value: Any, faults: list[Fault]) -> frozenset[str] | None:
    if value == EVERY_LINE:
        return None
    if isinstance(value, list) and value and all(type(item) is str and item.strip() for item in value):
        return frozenset(item.strip().upper() for item in value)
    faults.append(Fault(place, "wrong_type", 'must be "all" or an array of insurance line codes'))
    return None


def read_choice_of(words: tuple[str, ...], rule: str, place: str, value: Any, faults: list[Fault]) -> str:
    if value not in words:
        faults.append(Fault(place, "not_allowed", rule))
    return str(value)


def _choice_of(words: tuple[str, ...]) -> Callable[[str, Any, list[Fault]], str]:
    return partial(read_choice_of, words, f"must be {' or '.join(words)}, or be left out")


def _read_sources(place: str, value: Any, faults: list[Fault]) -> Alternatives:
    given = [value] if type(value) is str else value
    if (
        not isinstance(given, list)
        or not 1 <= len(given) <= MOST_ALTERNATIVES
        or not all(type(item) is str and len(item) <= LONGEST_WAY for item in given)
    ):
        rule = (
            f"must be a string of at most {LONGEST_WAY} characters, or an array of up to {MOST_ALTERNATIVES}"
        )
        faults.append(Fault(place, "wrong_type", rule))
        return ()
    alternatives = [item.strip() for item in given]
    if not all(map(_SOURCES.fullmatch, alternatives)):
        message = "must name REF*.., NM109, HD03, HD04 or person_code, joined by +"
        faults.append(Fault(place, "not_allowed", message))
    return tuple(tuple(part.strip() for part in item.split("+")) for item in alternatives)


VERIFY_WORDS, COUNTS_WORDS, FAMILY_WORDS = ("compare", "full"), ("strict", "lenient"), ("own", "subscriber")
_PARTS_834: dict[str, tuple[str, Callable[[str, Any, list[Fault]], Any]]] = {
    "identify": ("identify", _read_member_way),
    "member_id": ("member_id", _read_member_way),
    "person_code": ("person_code", _read_reference),
    "plan": ("plan", _read_sources),
    "coverages": ("lines", _read_lines),
    "family_coverage": ("family_coverage", _choice_of(FAMILY_WORDS)),
    "verify": ("verify", _choice_of(VERIFY_WORDS)),
    "counts": ("counts", _choice_of(COUNTS_WORDS)),
}
