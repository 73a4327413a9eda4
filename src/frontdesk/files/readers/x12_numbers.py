"""Tells which references of an 834 are social security numbers, and which a member's own number (docs/834.md, Identifiers)."""

import re

from frontdesk.files.readers.x12_loop import PADDING, MemberLoop
from frontdesk.files.readers.x12_shared import SharedNumbers

LONGEST_PERSON_CODE = 3  # a REF*17 that is longer says something about a group of people
SSN, _SSN_DIGITS = "34", 9
_SSN_LENGTHS = {_SSN_DIGITS, _SSN_DIGITS + 2}  # with hyphens
_LIKE_SSN = re.compile(rf"(?<![0-9A-Za-z])(?:[0-9][- ]?){{{_SSN_DIGITS - 1}}}[0-9](?![0-9A-Za-z])")
_NUMBER = re.compile(rf"[0-9A-Za-z][0-9A-Za-z._/#-]{{{LONGEST_PERSON_CODE},}}")
_OWN_NAMES = {"MI", "ZZ", "II", SSN}


def ssn_digits(text: str) -> str:
    """The digits of what looks like a social security number, else ""."""
    if len(text) not in _SSN_LENGTHS:
        return ""
    digits = text.replace("-", "")
    return digits if len(digits) == _SSN_DIGITS and digits.isascii() and digits.isdigit() else ""


def holds_ssn(key: str) -> bool:
    """Whether a part of the identifier looks like a social security number."""
    return _LIKE_SSN.search(key) is not None


def own_ssns(loop: MemberLoop) -> tuple[str, ...]:
    """The social security numbers that the loop says are its member's: NM109 with NM108 = 34, and REF*SY."""
    name = loop.person.get("NM1", PADDING)
    if name[8].strip() != SSN and "SY" not in loop.own.references:
        return ()
    said = (name[9] if name[8].strip() == SSN else "", loop.own.references.get("SY", ""))
    return tuple(filter(None, map(ssn_digits, map(str.strip, said))))


class FamilyNumbers:
    """Notices, loop by loop in the order of the file, that REF*0F is the subscriber's social security number.

    Dependents follow their subscriber. Where the file does not show the subscriber, it is taken as the file does elsewhere.
    """

    def __init__(self) -> None:
        self._is_usual = False
        self._last = (
            "",
            False,
        )  # the number of the last subscriber, and whether it is a social security number

    def is_ssn(self, loop: MemberLoop, own: tuple[str, ...]) -> bool:
        digits = ssn_digits(loop.family)
        if not digits:
            return False
        if digits in own:
            self._is_usual = True
        found = digits in own or (self._is_usual and not (own and loop.is_subscriber))
        if loop.is_subscriber:
            self._last = digits, found
        return self._last[1] if digits == self._last[0] else found


class OwnNumbers:
    """Finds the number of a member's own, which nobody else carries."""

    def __init__(self, shared: SharedNumbers) -> None:
        self._shared = shared

    def find(self, loop: MemberLoop, name_reference: str) -> str:
        """The number as the file has it, or "". Call it for each loop, in the order of the file.

        One of three characters or fewer tells little, one without a digit or with other signs is a category or a list, REF*0F is
        the family's, and what a plan is called is no person's. REF*ZZ and REF*17 are categories of people with many senders.
        """
        name = name_reference if loop.said("NM1", 8).upper() in _OWN_NAMES else ""
        own = ""
        for source, found in (("23", loop.own.references.get("23", "")), ("NM109", name)):
            if len(found) <= LONGEST_PERSON_CODE or found == loop.family:
                continue
            if not _NUMBER.fullmatch(found) or not any(map(str.isdigit, found)) or _is_plan(found, loop):
                continue
            if loop.own_source:
                # The subscriber of a family whose card it is may have a number of its own.
                self._shared.note(source, found, loop)
            elif not self._shared.carries(source, found, loop):
                loop.own_source, own = source, found
        return own


def _is_plan(number: str, loop: MemberLoop) -> bool:
    """Whether the number is what the loop calls a plan (HD04)."""
    return any(number == level.hd[4].strip() for level in loop.coverages)


def birth_sequence(loop: MemberLoop) -> str:
    return "B" + number if (number := loop.ins[17].strip()) else ""


def relationship(loop: MemberLoop) -> str:
    return "R" + code if (code := loop.ins[2].strip()) else ""
