"""Numbers of an 834 that several people carry: those of a family, a group, a class or a plan (docs/decisions/0124)."""

from array import array
from collections.abc import Iterable
from hashlib import blake2b

from frontdesk.eligibility.first_names import fold_first_name, is_newborn_name
from frontdesk.files.readers.x12_loop import MemberLoop

SOURCES = ("23", "NM109")
# A reference with more shared numbers in a file is no member's own at all: a card for each family, say.
SHARED_LIMIT = 1000
_ALL, _SOME = "*", "?"
_BUCKETS = 64  # looked through one at a time
# A person in 64 bits: hashes of first name, date of birth, and place in the family. Zero stands for what is not told.
_PART, _CONTEXT_BITS, _DAY_BITS = (1 << 20) - 1, 20, 20
_NAME = (1 << 24) - 1


class SharedNumbers:
    """Tells which numbers are shared. `known` are the keys of those that are known already, `secret` is the account's.

    With an index the file is searched for more. The report tells of each of them once.
    """

    def __init__(
        self, secret: bytes = b"", known: Iterable[int] = (), index: "NumberIndex | None" = None
    ) -> None:
        self.known = frozenset(known)
        self._secret, self._index = secret, index
        self._told: set[int] = set()
        self._whole = {source: self._key(source, _ALL) in self.known for source in SOURCES}
        self._some = {source for source in SOURCES if self._key(source, _SOME) in self.known}

    def carries(self, source: str, number: str, loop: MemberLoop) -> bool:
        """Whether others carry the number too. Call it for what would be the number of the loop's own."""
        key = self.note(source, number, loop)
        if key not in self.known:
            return False
        loop.has_shared_number = True
        if key not in self._told and len(self._told) < SHARED_LIMIT:
            self._told.add(key)
            loop.tells_shared = True
        return True

    def note(self, source: str, number: str, loop: MemberLoop) -> int:
        """Search for others that carry the number. Returns its key."""
        if self._index is None and not self.known:
            return 0
        key = self._key(source, _ALL if self._whole[source] else number)
        if self._index is not None and key not in self.known:
            self._index.add(source, key, loop)
        return key

    def has_some_of(self, source: str) -> bool:
        """Whether numbers of this reference are shared: other numbers of it may be too, in files to come."""
        return source in self._some

    def found(self) -> frozenset[int]:
        """The keys of those that the file has shown and that were not known. Call it once, at the end of the file."""
        found: set[int] = set()
        for source in SOURCES if self._index is not None else ():
            keys = self._index.shared(source) if self._index is not None else set()
            if keys:
                found |= keys if len(keys) <= SHARED_LIMIT else {self._key(source, _ALL)}
                found.add(self._key(source, _SOME))
        return frozenset(found)

    def _key(self, source: str, number: str) -> int:
        digest = blake2b(f"{source} {number}".encode(), key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


class NumberIndex:
    """Who carries which number, in 16 bytes a loop."""

    def __init__(self) -> None:
        self._keys = {source: [array("q") for _ in range(_BUCKETS)] for source in SOURCES}
        self._people = {source: [array("Q") for _ in range(_BUCKETS)] for source in SOURCES}

    def add(self, source: str, key: int, loop: MemberLoop) -> None:
        bucket = key % _BUCKETS
        self._keys[source][bucket].append(key)
        self._people[source][bucket].append(_person(loop))

    def shared(self, source: str) -> set[int]:
        """The keys that two people carry."""
        found: set[int] = set()
        for keys, people in zip(self._keys[source], self._people[source], strict=True):
            if len(set(keys)) != len(keys):
                first: dict[int, int] = {}
                found.update(
                    key
                    for key, person in zip(keys, people, strict=True)
                    if _are_two(first.setdefault(key, person), person)
                )
        return found


def _person(loop: MemberLoop) -> int:
    first_name, born = loop.said("NM1", 4), loop.said("DMG", 2)
    name = hash(fold_first_name(first_name)) & _NAME or 1
    if not first_name or is_newborn_name(first_name):
        name = 0
    day = born and (hash(born) & _PART or 1)
    context = hash((loop.family, loop.ins[1], loop.ins[2], loop.ins[17])) & _PART
    return (name << _DAY_BITS | (day or 0)) << _CONTEXT_BITS | context


def _are_two(one: int, other: int) -> bool:
    """Whether first name and date of birth are another's, or one of them, and the place in the family."""
    if one == other:
        return False
    differing = [
        bool(first and second and first != second)
        for first, second in (
            (one >> _DAY_BITS + _CONTEXT_BITS, other >> _DAY_BITS + _CONTEXT_BITS),
            (one >> _CONTEXT_BITS & _PART, other >> _CONTEXT_BITS & _PART),
            (one & _PART or 1, other & _PART or 1),
        )
    ]
    return sum(differing) > 1
