"""How an 834 names its members, their families and their plans (docs/834.md, Identifiers).

Names and birth dates stand in an identifier only as a short keyed digest, and so does a social
security number.
"""

import hmac
import re
from functools import lru_cache, partial

from frontdesk.eligibility import field_kinds
from frontdesk.eligibility.model import StatedPerson
from frontdesk.eligibility.persons import fold_name
from frontdesk.formats.x12_loop import LONGEST_PERSON_CODE, SSN_QUALIFIER, Level, MemberLoop
from frontdesk.mapping.digests import person_digest
from frontdesk.mapping.parser import (
    DOB,
    FIRST_NAME,
    PERSON_CODE,
    PLAIN,
    SSN_WAY,
    FileMapping,
    MemberWay,
)
from frontdesk.text import looks_like_ssn

_NINE_DIGITS = re.compile("[0-9]{9}")
# 80 bits, since a whole account may be called by them
_SSN_PREFIX = "ssn1-"
_SSN_LETTERS = 20
# a person in its family, a family in the database
_FAMILY_BYTES = 16


class MemberNames:
    """Makes the identifiers of one file's members. `secret` is the account's: digests agree over
    its files, and with no other account's.
    """

    def __init__(self, mapping: FileMapping, secret: bytes) -> None:
        self.mapping = mapping
        self._secret = secret
        digest = partial(person_digest, secret=secret, size=_FAMILY_BYTES)
        self._family_digest = lru_cache(1)(digest)

    def external_id(self, loop: MemberLoop) -> str:
        """The identifier; "" where the loop lacks a part of the way."""
        return self._made(self.mapping.identify, loop)

    def former_id(self, loop: MemberLoop) -> str:
        """The identifier before a correction; "" where that is the same."""
        former = (
            self._made(self.mapping.identify, loop, is_former=True) if loop.is_corrected else ""
        )
        return former if former != loop.key else ""

    def member_id(self, loop: MemberLoop) -> str:
        return self._made(self.mapping.member_id, loop) if self.mapping.member_id else loop.key

    def plan(self, loop: MemberLoop, level: Level | None) -> str:
        """The member's name of its plan by a coverage, if it has one: the first complete
        alternative. A reference of the coverage has priority.
        """
        of_coverage = {"HD03": "", "HD04": ""}
        if level is not None:
            of_coverage = {"HD03": level.hd[3] or "?", "HD04": level.hd[4].strip()}
            of_coverage |= {f"REF*{name}": number for name, number in level.references.items()}
        for sources in self.mapping.plan:
            found = [
                of_coverage[each] if each in of_coverage else self._part(each, loop)
                for each in sources
            ]
            if all(found):
                return "-".join(found)
        return ""

    def has_plan(self, name: str | None) -> bool:
        """Whether the mapping knows the name of a plan; it knows all if it translates none."""
        return not name or not self.mapping.plans or bool(self.mapping.plans.get(name))

    def plan_named(self, name: str | None) -> str | None:
        """The external_id of the plan with the name; None without one."""
        return (self.mapping.plans.get(name) if self.mapping.plans else name) if name else None

    def person(self, loop: MemberLoop) -> StatedPerson:
        """The person of the loop, for the person check."""
        role = "Primary" if loop.is_subscriber else "Dependent"
        family = loop.family and self._family_digest(loop.family)  # accounts share no family
        first_name, last_name, dob, sex = loop.named(loop.person)
        person = StatedPerson(
            first_name=first_name,
            last_name=last_name,
            dob=dob,
            gender=field_kinds.X12_GENDERS.get(sex, ""),
            role=role,
            family=family,
            sequence=loop.ins[17],
        )
        if not loop.former:
            return person
        first_name, last_name, dob, sex = loop.named(loop.former)
        return person._replace(
            former_first_name=first_name,
            former_last_name=last_name,
            former_dob=dob,
            former_gender=field_kinds.X12_GENDERS.get(sex, ""),
        )

    def _made(self, ways: MemberWay | None, loop: MemberLoop, *, is_former: bool = False) -> str:
        parts: list[str] = []
        of_person: list[str] = []
        for part in ways.of(is_subscriber=loop.is_subscriber) if ways else ():
            found = self._part(part, loop, is_former=is_former)
            if not found:
                return ""
            (of_person if part in (FIRST_NAME, DOB) else parts).append(found)
        if of_person:
            parts.append(person_digest(" ".join(of_person), self._secret))
        return "-".join(parts)

    def _part(self, part: str, loop: MemberLoop, *, is_former: bool = False) -> str:
        if part == FIRST_NAME:
            return fold_name((is_former and loop.named(loop.former)[0]) or loop.element("NM1", 4))
        if part == DOB:
            return (is_former and loop.named(loop.former)[2]) or loop.dob
        if part == "relationship":
            return loop.ins[2] and f"R{loop.ins[2]}"
        if part == "birth_sequence":
            return loop.ins[17] and f"B{loop.ins[17]}"
        if part == PERSON_CODE:
            code = loop.own.references.get(self.mapping.person_code[4:], "")
            return code if len(code) <= LONGEST_PERSON_CODE else ""
        of_name = loop.element("NM1", 9)
        has_ssn = loop.element("NM1", 8) == SSN_QUALIFIER
        if part == SSN_WAY:
            part = "NM109" if has_ssn and of_name else "REF*SY"
        number = of_name if part == "NM109" else loop.own.references.get(part[4:], "")
        is_ssn = part == "REF*SY" or (part == "NM109" and has_ssn) or looks_like_ssn(number)
        return self._hashed(number) if is_ssn and self.mapping.ssn != PLAIN else number

    def _hashed(self, number: str) -> str:
        """The digest of a social security number; "" for a placeholder, such as 999999999."""
        digits = number.replace("-", "").replace(" ", "")
        if not _NINE_DIGITS.fullmatch(digits) or len(set(digits)) == 1:
            return ""
        return (
            _SSN_PREFIX + hmac.digest(self._secret, digits.encode(), "sha256").hex()[:_SSN_LETTERS]
        )
