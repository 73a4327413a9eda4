"""Which identifiers a file names, and which of them with differing rows, in 16 bytes a row; it knows no row.

Rows that repeat one another are one member; rows of one identifier that differ can't both be meant, so none is applied.
Identifiers and rows are kept as 64-bit hashes: two of a million identifiers agree by chance once in forty million files.
"""

from array import array
from bisect import bisect_left
from itertools import pairwise

_BUCKETS = 256  # sorted one at a time, so that sorting needs little besides the hashes themselves
_MASK = (1 << 64) - 1


class IdentifierIndex:
    """Take every row with `add`, then `settle` once, then ask."""

    def __init__(self) -> None:
        self._keys = [array("Q") for _ in range(_BUCKETS)]
        self._rows = [array("Q") for _ in range(_BUCKETS)]
        self._differing: set[int] = set()

    def add(self, key: str, row_hash: int) -> None:
        hashed = hash(key) & _MASK
        bucket = hashed % _BUCKETS
        self._keys[bucket].append(hashed)
        self._rows[bucket].append(row_hash & _MASK)

    def settle(self, *, keep_keys: bool) -> None:
        """Find what differs; forget the rest, except what `names` needs when `keep_keys`."""
        for number, keys in enumerate(self._keys):
            if len(set(keys)) != len(keys):
                pairs = sorted(zip(keys, self._rows[number], strict=True))
                self._differing.update(
                    key
                    for (key, row), (other, next_row) in pairwise(pairs)
                    if key == other and row != next_row
                )
            self._keys[number] = array("Q", sorted(keys)) if keep_keys else array("Q")
            self._rows[number] = array("Q")

    def differ(self, key: str) -> bool:
        """Whether the file has differing rows of this identifier."""
        return bool(self._differing) and hash(key) & _MASK in self._differing

    def names(self, key: str) -> bool:
        """Whether the file has a row of this identifier."""
        hashed = hash(key) & _MASK
        keys = self._keys[hashed % _BUCKETS]
        place = bisect_left(keys, hashed)
        return place < len(keys) and keys[place] == hashed
