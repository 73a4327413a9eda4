"""Names the member of an 834's loop by the way that the account's mapping says (docs/834.md, Who a row is).

Names and birth dates stand in an identifier only as a short keyed digest, and so does a social security number.
"""

import hmac
import re
from hashlib import blake2b

from frontdesk.eligibility.model import PersonSaid
from frontdesk.eligibility.row_context import fold_name
from frontdesk.formats.x12_loop import MemberLoop
from frontdesk.mapping.parser import DOB, FIRST_NAME, PERSON_CODE, SSN_WAY, Alternatives, FileMapping, Way
from frontdesk.mapping.x12_access import Coverage
from frontdesk.text import looks_like_ssn

LONGEST_PERSON_CODE = 3  # a longer REF*17 says something about a group of people
SSN_QUALIFIER = "34"
_NINE_DIGITS = re.compile("[0-9]{9}")
_SSN_PREFIX, _SSN_LETTERS = "ssn1-", 20  # 80 bits, since a whole account may be called by them
_PERSON_BYTES = 4  # in one family


class MemberNames:
    """Makes the identifiers of one file's members. `secret` is the account's, so that the digests of its files agree, and no
    other's."""

    def __init__(self, mapping: FileMapping, secret: bytes) -> None:
        self._mapping, self._secret = mapping, secret
        self._last_family = ("", "")  # the number of the member before, and its digest

    def external_id(self, loop: MemberLoop) -> str:
        """The identifier; "" where the loop lacks a part of the way."""
        ways = self._mapping.identify
        return self._made(ways.of(is_subscriber=loop.is_subscriber), loop) if ways else ""

    def former_id(self, loop: MemberLoop) -> str:
        """The identifier before a correction; "" where that is the same."""
        ways = self._mapping.identify
        way = ways.of(is_subscriber=loop.is_subscriber) if ways and loop.is_corrected else ()
        if FIRST_NAME not in way and DOB not in way:
            return ""
        former = self._made(way, loop, is_former=True)
        return former if former != loop.key else ""

    def member_id(self, loop: MemberLoop) -> str:
        ways = self._mapping.member_id
        return self._made(ways.of(is_subscriber=loop.is_subscriber), loop) if ways else loop.key

    def plan(self, loop: MemberLoop, coverage: Coverage) -> str:
        """What the member calls its plan: the first alternative that is complete. A reference of the coverage goes first."""
        alternatives: Alternatives = self._mapping.plan
        for sources in alternatives:
            found = [self._plan_part(source, loop, coverage) for source in sources]
            if all(found):
                return "-".join(found)
        return ""

    def person(self, loop: MemberLoop) -> PersonSaid:
        """Who the loop is about, for the person check."""
        return PersonSaid(
            first_name=loop.element("NM1", 4),
            last_name=loop.element("NM1", 3),
            dob=loop.dob,
            role="Primary" if loop.is_subscriber else "Dependent",
            family=self.family_digest(loop.family),
            sequence=loop.ins[17].strip(),
            former_first_name=loop.former_first_name,
            former_last_name=loop.former_last_name,
            former_dob=loop.former_dob,
        )

    def family_digest(self, family: str) -> str:
        """Stands for the family in the database; "" without one. Accounts share no family."""
        if self._last_family[0] != family:
            digest = blake2b(family.encode(), key=self._secret, digest_size=16).hexdigest() if family else ""
            self._last_family = family, digest
        return self._last_family[1]

    def _made(self, way: Way, loop: MemberLoop, *, is_former: bool = False) -> str:
        parts: list[str] = []
        of_person: list[str] = []
        for part in way:
            found = self._part(part, loop, is_former=is_former)
            if not found:
                return ""
            (of_person if part in (FIRST_NAME, DOB) else parts).append(found)
        if of_person:
            digest = blake2b(" ".join(of_person).encode(), key=self._secret, digest_size=_PERSON_BYTES)
            parts.append(digest.hexdigest())
        return "-".join(parts)

    def _part(self, part: str, loop: MemberLoop, *, is_former: bool) -> str:
        if part == FIRST_NAME:
            return fold_name((is_former and loop.former_first_name) or loop.element("NM1", 4))
        if part == DOB:
            return (is_former and loop.former_dob) or loop.dob
        if part == SSN_WAY:
            number = _ssn_of(loop)
            return number if self._mapping.ssn == "plain" else self._hashed(number)
        if part == "relationship":
            return "R" + code if (code := loop.ins[2].strip()) else ""
        if part == "birth_sequence":
            return "B" + number if (number := loop.ins[17].strip()) else ""
        if part == PERSON_CODE:
            code = loop.own.references.get(self._mapping.person_code[4:], "")
            return code if len(code) <= LONGEST_PERSON_CODE else ""
        if part == "NM109":
            number = loop.element("NM1", 9)
            is_ssn = loop.element("NM1", 8) == SSN_QUALIFIER
        else:
            number, is_ssn = loop.own.references.get(part[4:], ""), part == "REF*SY"
        is_hidden = (is_ssn or looks_like_ssn(number)) and self._mapping.ssn != "plain"
        return self._hashed(number) if is_hidden else number

    def _plan_part(self, source: str, loop: MemberLoop, coverage: Coverage) -> str:
        if source == "HD03":
            return coverage.line
        if source == "HD04":
            return coverage.description
        if source.startswith("REF*") and source[4:] in coverage.references:
            return coverage.references[source[4:]]
        return self._part(source, loop, is_former=False)

    def _hashed(self, number: str) -> str:
        """The digest of a social security number; "" for what stands for none, such as 999999999."""
        digits = number.replace("-", "").replace(" ", "")
        if not _NINE_DIGITS.fullmatch(digits) or len(set(digits)) == 1:
            return ""
        return _SSN_PREFIX + hmac.digest(self._secret, digits.encode(), "sha256").hex()[:_SSN_LETTERS]


def _ssn_of(loop: MemberLoop) -> str:
    """The social security number that the loop says is its member's: NM109 with NM108 = 34, else REF*SY."""
    if loop.element("NM1", 8) == SSN_QUALIFIER and (number := loop.element("NM1", 9)):
        return number
    return loop.own.references.get("SY", "")
