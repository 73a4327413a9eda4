"""The identifiers that a file names, in few bytes a row."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

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
