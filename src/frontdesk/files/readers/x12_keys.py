"""Identifiers of a member of an 834, made from its references as the mapping says (docs/834.md, Identifiers)."""

import hmac
from collections.abc import Callable

from frontdesk.eligibility.families import family_digest, fold_first_name
from frontdesk.eligibility.row_hints import FamilyMember
from frontdesk.files.mapping import (
    BIRTH_SEQUENCE,
    DEFAULT_KEY,
    OWN,
    PERSON_CODE,
    RELATIONSHIP,
    SUBSCRIBER,
    FileMapping,
)
from frontdesk.files.mapping_834 import Alternatives
from frontdesk.files.readers.x12_access import NO_COVERAGE, Coverage
from frontdesk.files.readers.x12_loop import PADDING, MemberLoop

_LONGEST_PERSON_CODE = 3  # a REF*17 that is longer says something about a group of people
_SSN, _SSN_DIGITS = "34", 9
_OWN_NAMES = {"MI", "ZZ", "II"}
_HASHED, _HASH_LETTERS = "ssn1-", 20  # 80 bits
_PERSON_LETTERS = 8


class X12Keys:
    """Makes the identifiers of one file's members. `secret` is the account's: the hashes of its files agree, and no other's."""

    def __init__(self, mapping: FileMapping, secret: bytes) -> None:
        self._mapping, self._secret = mapping, secret
        self._has_one_key = mapping.member_id == mapping.external_id
        self._last = ("", "")  # the family of the member before, and its digest
        self._is_default = mapping.external_id is DEFAULT_KEY
        self._of_member: dict[str, Callable[[MemberLoop], str]] = {
            "NM109": self._name_reference,
            "REF*0F": self.family_name,
            OWN: self._own_reference,
            PERSON_CODE: self._person_code,
            BIRTH_SEQUENCE: _birth_sequence,
            RELATIONSHIP: _relationship,
            SUBSCRIBER: self._subscriber,
        }

    def external_id(self, loop: MemberLoop) -> str:
        return self._first(self._mapping.external_id, loop)

    def member_id(self, loop: MemberLoop) -> str:
        return loop.key if self._has_one_key else self._first(self._mapping.member_id, loop)

    def plan(self, loop: MemberLoop, coverage: Coverage) -> str:
        """What the member calls its plan. A reference of the coverage goes before the member's own."""
        return self._first(self._mapping.plan, loop, coverage)

    def is_weak(self, loop: MemberLoop) -> bool:
        """Whether the key names the family and the relationship only, which two children share."""
        return (
            self._is_default
            and "-R" in loop.key
            and loop.key == f"{self.family_name(loop)}-{_relationship(loop)}"
        )

    def may_be_shared(self, loop: MemberLoop) -> bool:
        """Whether the key is a reference that senders also use for a group of people: REF*17, a category, and REF*ZZ."""
        references, key = loop.own.references, loop.key
        is_such = key in (references.get("17"), references.get("ZZ")) and self._is_default
        return bool(key) and is_such and key != references.get("23")

    def is_ssn(self, loop: MemberLoop, number: str) -> bool:
        """Whether the identifier was made from a social security number, which never replaces a stored one."""
        if not self._mapping.ssn or not number:
            return False
        kind = loop.person.get("NM1", PADDING)[8].strip()
        return kind == _SSN and number == self._name_reference(loop)

    def family_name(self, loop: MemberLoop) -> str:
        """REF*0F as identifiers carry it. Where numbers are hashed, so is one that looks like a social security number."""
        family = loop.family
        if self._mapping.ssn != "hashed":
            return family
        digits = family.replace("-", "")
        return self._hashed(family) if len(digits) == _SSN_DIGITS and digits.isdigit() else family

    def family_member(self, loop: MemberLoop, *, first_name: str, dob: str) -> FamilyMember | None:
        """What recognises the member among the stored members of its family; None without a REF*0F."""
        name = self.family_name(loop)
        if not name:
            return None
        if self._last[0] != name:
            self._last = name, family_digest(name, self._secret)
        code = self._person_code(loop) if self._is_default else ""
        telling = ""
        if loop.is_weak or loop.may_be_shared:
            person = fold_first_name(first_name) + dob
            telling = f"{loop.key}-{family_digest(person, self._secret)[:_PERSON_LETTERS]}"
        return FamilyMember(self._last[1], name, first_name, dob, code, telling)

    def _hashed(self, number: str) -> str:
        digits = number.replace("-", "").replace(" ", "")
        return _HASHED + hmac.digest(self._secret, digits.encode(), "sha256").hex()[:_HASH_LETTERS]

    def _first(self, alternatives: Alternatives, loop: MemberLoop, coverage: Coverage = NO_COVERAGE) -> str:
        """The joined parts of the first alternative that is complete, else ""."""
        for sources in alternatives:
            found = [self._source(source, loop, coverage) for source in sources]
            if all(found):
                return "-".join(found)
        return ""

    def _source(self, source: str, loop: MemberLoop, coverage: Coverage) -> str:
        if source == "HD03":
            return coverage.line
        if source == "HD04":
            return coverage.description
        if own := self._of_member.get(source):
            return own(loop)
        qualifier = source[4:]
        return coverage.references.get(qualifier) or loop.own.references.get(qualifier, "")

    def _person_code(self, loop: MemberLoop) -> str:
        code = loop.own.references.get(self._mapping.person_code[4:], "")
        return code if len(code) <= _LONGEST_PERSON_CODE else ""

    def _subscriber(self, loop: MemberLoop) -> str:
        return self.family_name(loop) if loop.is_subscriber else ""

    def _name_reference(self, loop: MemberLoop) -> str:
        """NM109; a social security number only where the mapping says so, and how."""
        name = loop.person.get("NM1", PADDING)
        number = name[9].strip()
        if not number or name[8].strip() != _SSN:
            return number
        if self._mapping.ssn == "plain":
            return number
        return self._hashed(number) if self._mapping.ssn == "hashed" else ""

    def _own_reference(self, loop: MemberLoop) -> str:
        """The member's own number. A short one is a person code, one without a digit a category, REF*0F is the family's."""
        kind = loop.person.get("NM1", PADDING)[8].strip()
        name = self._name_reference(loop) if kind in _OWN_NAMES or kind == _SSN else ""
        references = loop.own.references
        for found in (references.get("23", ""), name, references.get("ZZ", ""), references.get("17", "")):
            if len(found) > _LONGEST_PERSON_CODE and found != loop.family and any(map(str.isdigit, found)):
                return found
        return ""


def _birth_sequence(loop: MemberLoop) -> str:
    return "B" + number if (number := loop.ins[17].strip()) else ""


def _relationship(loop: MemberLoop) -> str:
    return "R" + code if (code := loop.ins[2].strip()) else ""
