"""Identifiers of a member of an 834, made from its references as the mapping says (docs/834.md, Identifiers)."""

import hmac
from collections.abc import Callable

from frontdesk.eligibility.families import family_digest
from frontdesk.eligibility.first_names import fold_first_name
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
from frontdesk.files.readers.x12_numbers import (
    LONGEST_PERSON_CODE,
    SSN,
    FamilyNumbers,
    OwnNumbers,
    birth_sequence,
    holds_ssn,
    own_ssns,
    relationship,
    ssn_digits,
)
from frontdesk.files.readers.x12_shared import SharedNumbers

_HASHED, _HASH_LETTERS = "ssn1-", 20  # 80 bits
_PERSON_LETTERS = 8


class X12Keys:
    """Makes the identifiers of one file's members. `secret` is the account's: the hashes of its files agree, and no other's."""

    def __init__(self, mapping: FileMapping, secret: bytes, shared: SharedNumbers) -> None:
        self._mapping, self._secret, self._shared = mapping, secret, shared
        self._last = ("", "")  # the family of the member before, and its digest
        self._families, self._own_numbers = FamilyNumbers(), OwnNumbers(shared)
        self._is_default = mapping.external_id is DEFAULT_KEY
        self._needs_own = self._is_default or mapping.member_id is DEFAULT_KEY
        self._of_member: dict[str, Callable[[MemberLoop], str]] = {
            "NM109": self._name_reference,
            "REF*0F": self.family_name,
            OWN: self._own_reference,
            PERSON_CODE: self._person_code,
            BIRTH_SEQUENCE: birth_sequence,
            RELATIONSHIP: relationship,
            SUBSCRIBER: self._subscriber,
        }

    def name(self, loop: MemberLoop) -> None:
        """Give the loop its key, and what it takes to know whether that is another's. Call it in the order of the file."""
        if self._mapping.ssn != "plain":
            own = own_ssns(loop)
            loop.ssns = (*own, ssn_digits(loop.family)) if self._families.is_ssn(loop, own) else own
        if self._needs_own:
            loop.own_number = self._own_numbers.find(loop, self._name_reference(loop))
        loop.key = self._first(self._mapping.external_id, loop)
        loop.may_be_shared = self._is_default and bool(loop.key) and loop.key == loop.own_number
        loop.other_key = self._other_key(loop)
        loop.is_weak = self._is_weak(loop)
        loop.is_category = self._is_category(loop)

    def member_id(self, loop: MemberLoop) -> str:
        is_same = self._mapping.member_id == self._mapping.external_id
        return loop.key if is_same else self._first(self._mapping.member_id, loop)

    def plan(self, loop: MemberLoop, coverage: Coverage) -> str:
        """What the member calls its plan. A reference of the coverage goes before the member's own."""
        return self._first(self._mapping.plan, loop, coverage)

    def _is_weak(self, loop: MemberLoop) -> bool:
        """Whether the key names the family and the relationship only, which two children share."""
        return (
            self._is_default
            and "-R" in loop.key
            and loop.key == f"{self.family_name(loop)}-{relationship(loop)}"
        )

    def _is_category(self, loop: MemberLoop) -> bool:
        """Whether the key is a reference that this sender has used for several people."""
        return loop.may_be_shared and self._shared.has_some_of(loop.own_source)

    def is_ssn(self, loop: MemberLoop, number: str) -> bool:
        """Whether the identifier was made from a social security number, which never replaces a stored one."""
        if number.startswith(_HASHED):
            return True
        if not self._mapping.ssn or not number:
            return False
        kind = loop.person.get("NM1", PADDING)[8].strip()
        return kind == SSN and number == self._name_reference(loop)

    def hides(self, loop: MemberLoop) -> bool:
        """Whether the key must not be shown, since it looks like a social security number."""
        return self._mapping.ssn != "plain" and holds_ssn(loop.key)

    def family_name(self, loop: MemberLoop) -> str:
        """REF*0F as identifiers carry it. Where numbers are hashed, so is one that looks like a social security number."""
        family = loop.family
        if self._mapping.ssn == "hashed" and ssn_digits(family):
            return self._hashed(family)
        return self._hidden(family, loop)

    def family_member(self, loop: MemberLoop, *, first_name: str, dob: str) -> FamilyMember:
        """What recognises the member among the stored members of its family, and beside the one that has its key."""
        name = self.family_name(loop)
        if self._last[0] != name:
            # A file may show, and another may not, that REF*0F is such a number: the digest must be the same.
            told = name if self._mapping.ssn == "hashed" else loop.family
            self._last = name, family_digest(told, self._secret) if name else ""
        code = self._person_code(loop) if self._is_default and name else ""
        telling = ""
        if loop.is_weak or loop.may_be_shared:
            person = fold_first_name(first_name) + dob
            telling = f"{loop.key}-{family_digest(person, self._secret)[:_PERSON_LETTERS]}"
        return FamilyMember(
            digest=self._last[1],
            name=name,
            first_name=first_name,
            dob=dob,
            code=code,
            telling_key=telling,
            open_key=loop.other_key if _HASHED in loop.key else "",
            hidden_key="" if _HASHED in loop.key else loop.other_key,
            other_name=self._other_name(loop, name),
            is_subscriber=loop.is_subscriber,
            former_name=loop.former_name,
        )

    def _other_name(self, loop: MemberLoop, name: str) -> str:
        """The name of the family where its number is known to be, or not to be, a social security number."""
        if self._mapping.ssn or not ssn_digits(loop.family):
            return ""
        return self._hashed(loop.family) if name == loop.family else loop.family

    def _other_key(self, loop: MemberLoop) -> str:
        """The key as another file may have made it, which shows less or more of what is a social security number; or ""."""
        if self._mapping.ssn == "plain":
            return ""
        known, digits = loop.ssns, ssn_digits(loop.family)
        if not known and not digits:
            return ""
        loop.ssns = () if _HASHED in loop.key else (digits,) if digits else known
        other = self._first(self._mapping.external_id, loop) if loop.ssns != known else ""
        loop.ssns = known
        return other if other != loop.key else ""

    def _hidden(self, number: str, loop: MemberLoop) -> str:
        """The number, hashed if it is a social security number."""
        return self._hashed(number) if loop.ssns and ssn_digits(number) in loop.ssns else number

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
        return code if len(code) <= LONGEST_PERSON_CODE else ""

    def _subscriber(self, loop: MemberLoop) -> str:
        return self.family_name(loop) if loop.is_subscriber else ""

    def _name_reference(self, loop: MemberLoop) -> str:
        """NM109; a social security number only where the mapping says so, and how."""
        name = loop.person.get("NM1", PADDING)
        number = name[9].strip()
        if not number or name[8].strip() != SSN:
            return self._hidden(number, loop)
        if self._mapping.ssn == "plain":
            return number
        return self._hashed(number) if self._mapping.ssn == "hashed" else ""

    def _own_reference(self, loop: MemberLoop) -> str:
        return self._hidden(loop.own_number, loop)
