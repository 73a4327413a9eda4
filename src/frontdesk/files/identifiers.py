"""What a file names: the identifiers of its rows, and the persons of an 834 by their families. Both in few bytes a row."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from frontdesk.eligibility.families import KeyStrength, family_digest, may_be_one_person, strength_of
from frontdesk.eligibility.first_names import fold_first_name, is_newborn_name
from frontdesk.eligibility.model import MemberAccess
from frontdesk.eligibility.row_hints import FamilyMember

_BUCKETS = 256  # looked through one at a time, which needs little memory besides the hashes themselves


class IdentifierIndex:
    """The identifiers of a file, and those that stand on differing rows, in 16 bytes a row.

    Identifiers and rows are kept as 64-bit hashes: two of a million identifiers agree by chance once in forty million
    files. Call `add` for every row, then `finish` once.
    """

    def __init__(self) -> None:
        self._keys = [array("q") for _ in range(_BUCKETS)]
        self._rows = [array("q") for _ in range(_BUCKETS)]
        self.differing: set[int] = set()

    def add(self, key: str, row_hash: int) -> None:
        self.add_all((key,), (row_hash,))

    def add_all(self, keys: Iterable[str], row_hashes: Iterable[int]) -> None:
        """`add` of many rows, in half of the time."""
        all_keys, all_rows = self._keys, self._rows
        for hashed, row_hash in zip(map(hash, keys), row_hashes, strict=True):
            bucket = hashed % _BUCKETS
            all_keys[bucket].append(hashed)
            all_rows[bucket].append(row_hash)

    def finish(self, *, keep_keys: bool = False) -> None:
        """Find the identifiers on differing rows. `contains` needs `keep_keys`; else their memory is freed."""
        for number, keys in enumerate(self._keys):
            if len(set(keys)) != len(keys):
                first: dict[int, int] = {}
                self.differing.update(
                    key
                    for key, row in zip(keys, self._rows[number], strict=True)
                    if first.setdefault(key, row) != row
                )
            self._keys[number] = array("q", sorted(keys) if keep_keys else ())
            self._rows[number] = array("q")

    def is_contradictory(self, key: str) -> bool:
        """True if rows of this identifier differ. They can't all be meant, so none of them is applied."""
        return bool(self.differing) and hash(key) in self.differing

    def contains(self, key: str) -> bool:
        hashed = hash(key)
        keys = self._keys[hashed % _BUCKETS]
        position = bisect_left(keys, hashed)
        return position < len(keys) and keys[position] == hashed


class PeopleIndex:
    """The persons that a full 834 names. A stored one of them is in the file, whatever identifier the file gives it."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._people = IdentifierIndex()

    def add(self, key: str, person: FamilyMember, *, is_category: bool = False) -> None:
        # A category of people says nothing against any stored identifier.
        strength = KeyStrength.RELATIONSHIP if is_category else strength_of(key, person.name)
        name = "" if is_newborn_name(person.first_name) else fold_first_name(person.first_name)
        self._people.add(_person(person.digest, name, person.dob, strength), 0)

    def finish(self) -> None:
        self._people.finish(keep_keys=True)

    def contains(self, member: MemberAccess) -> bool:
        if member.family_digest is None:
            return False
        own = self._strength_of(member.external_id, member.family_digest)
        # The file may call a child that has a name by then a newborn.
        names = {fold_first_name(member.first_name), ""}
        return any(
            may_be_one_person(strength, own)
            and self._people.contains(_person(member.family_digest, name, member.dob, strength))
            for strength in KeyStrength
            for name in names
        )

    def _strength_of(self, key: str, digest: str) -> KeyStrength:
        """The strength of a stored identifier. The name of its family is not stored, but it begins the key if it is in it."""
        parts = key.split("-")
        names = ("-".join(parts[:length]) for length in range(len(parts), 0, -1))
        found = next((name for name in names if family_digest(name, self._secret) == digest), None)
        return KeyStrength.OWN if found is None else strength_of(key, found)


def _person(digest: str, first_name: str, dob: str, strength: KeyStrength) -> str:
    return f"{digest} {first_name} {dob} {strength}"
