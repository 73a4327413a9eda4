"""Recognises a person among the stored members of its family, whatever its identifier in an 834 (docs/decisions/0086).

A newborn is stored under a key made from its family and gets a number of its own later; a change file may omit that number. The
person is the member of the family with the same first name and date of birth.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Any

from frontdesk.config import Uniqueness
from frontdesk.eligibility.first_names import fold_first_name, is_newborn_name
from frontdesk.eligibility.model import MemberRecord, StoredMember, Submission
from frontdesk.eligibility.row_hints import FamilyMember, RowHints
from frontdesk.eligibility.unique_keys import KeyHolders, scope_of


class KeyStrength(IntEnum):
    """How much an identifier tells, the least first: only a person code and a number of its own tell one person for good."""

    RELATIONSHIP = 0
    BIRTH_SEQUENCE = 1
    SUBSCRIBER = 2
    PERSON_CODE = 3
    OWN = 4


def family_digest(name: str, secret: bytes) -> str:
    """What stands for a family in the database. `secret` is the account's, so accounts share no family."""
    return blake2b(name.encode(), key=secret, digest_size=16).hexdigest()


def strength_of(key: str, family: str) -> KeyStrength:
    """The strength of an identifier, where `family` is the name of its family."""
    if key == family:
        return KeyStrength.SUBSCRIBER
    if not key.startswith(f"{family}-"):
        return KeyStrength.OWN
    return {"R": KeyStrength.RELATIONSHIP, "B": KeyStrength.BIRTH_SEQUENCE}.get(
        key[len(family) + 1 :][:1], KeyStrength.PERSON_CODE
    )


def may_be_one_person(first: KeyStrength, second: KeyStrength) -> bool:
    """Whether one person may have both identifiers. Two numbers or two person codes are two persons."""
    return first is not second or first < KeyStrength.SUBSCRIBER


def family_keys(
    submissions: Sequence[Submission], uniqueness: Uniqueness, known: Mapping[str, StoredMember]
) -> dict[int, dict[str, set[str]]]:
    """What finds the families of the members that their identifiers do not tell, by uniqueness scope and column.

    `known` are stored members by their identifiers.
    """
    keys: dict[int, dict[str, set[str]]] = {}
    for submission in submissions:
        record, account_id = submission.record, submission.account_id
        hints = record.hints
        stored = known.get(record.external_id or "")
        if hints and hints.family and (stored is None or not is_found(stored, hints, account_id=account_id)):
            scope = scope_of(account_id, uniqueness)
            of_scope = keys.setdefault(scope, {"family_digest": set(), "external_id": set()})
            of_scope["family_digest"].update(filter(None, (hints.family.digest,)))
            of_scope["external_id"].update(_other_keys(hints.family))
    return keys


class Families:
    """The members of a chunk by family, kept up to date while its records are decided."""

    def __init__(self, members: Iterable[StoredMember]) -> None:
        self._members: dict[str, list[StoredMember]] = {}
        for member in members:
            self.hold(member)

    def hold(self, member: StoredMember) -> None:
        digest = member.values["family_digest"]
        if digest is not None:
            of_family = self._members.setdefault(digest, [])
            if not any(member is other for other in of_family):
                of_family.append(member)

    def persons(
        self,
        family: FamilyMember,
        key: str,
        holders: KeyHolders,
        account_id: int,
        scope: int,
        *,
        is_category: bool = False,
    ) -> Sequence[StoredMember]:
        """The stored members that may be the person of the row with this key.

        A category changes, and its member stays the same, unless REF*0F is that of a group with many subscribers.
        """
        own = _strength_in(key, family)
        known = [*self._members.get(family.digest, ())]
        for other in _other_keys(family):
            if (holder := holders.find(other, scope)) is not None and not any(
                holder is each for each in known
            ):
                known.append(holder)
        known = [member for member in known if member.values["account_id"] == account_id]
        subscribers = [each for each in known if each.values["subscriber_relationship"] == "Primary"]
        if not (is_category and len(subscribers) <= 1):
            known = [
                member
                for member in known
                if _may_have_both(_strength_in(str(member.values["external_id"]), family), own, family)
            ]
        same = [member for member in known if is_same_person(member, family)]
        return same or [member for member in known if is_newborn_of(member, family)]

    def has_other_name(self, family: FamilyMember, account_id: int) -> bool:
        """Whether a stored identifier of the family has its other name."""
        return any(
            member.values["account_id"] == account_id
            and str(member.values["external_id"]).startswith(family.other_name)
            for member in self._members.get(family.digest, ())
        )

    def subscriber(self, family: FamilyMember, account_id: int) -> dict[str, Any] | None:
        """The values of the family's stored subscriber that has an address."""
        for member in self._members.get(family.digest, ()):
            values = member.values
            if values["account_id"] == account_id and values["subscriber_relationship"] == "Primary":
                return values
        return None


def _other_keys(family: FamilyMember) -> Sequence[str]:
    """Identifiers by which the person may be stored: those of older defaults, which kept no family, and one of its own."""
    older = f"{family.name}-{family.code}" if family.code else family.name
    return [*filter(None, (older, family.telling_key, family.open_key, family.hidden_key))]


def _strength_in(key: str, family: FamilyMember) -> KeyStrength:
    strength = strength_of(key, family.name)
    return (
        strength_of(key, family.other_name) if strength is KeyStrength.OWN and family.other_name else strength
    )


def _may_have_both(kept: KeyStrength, own: KeyStrength, family: FamilyMember) -> bool:
    """Whether the member with one identifier may be the person with the other. Newborns with birth sequences are twins."""
    if kept is own is KeyStrength.BIRTH_SEQUENCE and is_newborn_name(family.first_name):
        return False
    return may_be_one_person(kept, own)


def is_newborn_of(member: StoredMember, family: FamilyMember) -> bool:
    """Whether one of the two has the name of a newborn and the other its own, with one date of birth."""
    stored = str(member.values["first_name"])
    return (
        bool(family.first_name and family.dob)
        and member.values["dob"] == family.dob
        and is_newborn_name(stored) is not is_newborn_name(family.first_name)
    )


def is_same_person(member: StoredMember, family: FamilyMember) -> bool:
    return _agreements(member, family) == (True, True)


def is_found(stored: StoredMember, hints: RowHints, *, account_id: int) -> bool:
    """Whether the member that has the row's identifier is its person, as far as both tell.

    Of another family, or as a subscriber instead of a dependent, only first name and date of birth together tell the person.
    Another account's member takes the identifier, unless the row has one of its own and is clearly another person's.
    """
    family = hints.family
    if family is None:
        return True
    if stored.values["account_id"] != account_id:
        return not (family.telling_key and is_stranger(stored, family))
    first_name, born = _agreements(stored, family)
    if hints.is_weak_key or (first_name and born):
        return False not in (first_name, born)
    if _is_in_other_family(stored, family) or _has_other_role(stored, family):
        return False
    if is_newborn_name(family.first_name) or is_newborn_name(str(stored.values["first_name"])):
        return born is not False
    return bool(first_name or born) or (first_name is None and born is None)


def is_stranger(member: StoredMember, family: FamilyMember) -> bool:
    """Whether the member is clearly another person: both first name and date of birth are another's, or one of them and the role
    in the same family."""
    agreements = _agreements(member, family)
    if None in agreements or all(agreements):
        return False
    has_other_role = _has_other_role(member, family) and not _is_in_other_family(member, family)
    return has_other_role or not any(agreements)


def _is_in_other_family(member: StoredMember, family: FamilyMember) -> bool:
    return bool(family.digest) and member.values["family_digest"] not in (None, family.digest)


def _has_other_role(member: StoredMember, family: FamilyMember) -> bool:
    return (member.values["subscriber_relationship"] or family.role) != family.role


def _agreements(member: StoredMember, family: FamilyMember) -> tuple[bool | None, bool | None]:
    """Whether first name and date of birth are the member's; None where the row does not carry it."""
    names = [fold_first_name(name) for name in (family.first_name, family.former_name) if name]
    stored = fold_first_name(str(member.values["first_name"]))
    return stored in names if names else None, member.values["dob"] == family.dob if family.dob else None


def keeps_its_key(record: MemberRecord, family: FamilyMember, stored: StoredMember) -> bool:
    """Whether the stored identifier tells more than that of the row."""
    row, kept = record.external_id or "", str(stored.values["external_id"])
    return _strength_in(kept, family) > _strength_in(row, family)
