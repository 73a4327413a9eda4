"""The first reading of a file, before anything is applied: can it be read to its end, and which identifiers does it name?"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id
from frontdesk.files.claims import FileClaim
from frontdesk.files.content import open_content
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import NO_MAPPING, EligibilityFile, FileHeader, FileMode, FileStep, Row
from frontdesk.files.readers import open_file

CHECKPOINT_ROWS = 10_000

_BUCKETS = 256  # sorted one at a time, so that sorting needs little memory besides the hashes themselves
_MASK = (1 << 64) - 1


class IdentifierIndex:
    """The identifiers of a file, and those that stand on differing rows, in 16 bytes a row.

    Identifiers and rows are kept as 64-bit hashes: two of a million identifiers agree by chance once in forty million
    files. Call `add` for every row, then `finish` once.
    """

    def __init__(self) -> None:
        self._keys = [array("Q") for _ in range(_BUCKETS)]
        self._rows = [array("Q") for _ in range(_BUCKETS)]
        self._differing: set[int] = set()

    def add(self, key: str, row_hash: int) -> None:
        hashed = hash(key) & _MASK
        bucket = hashed % _BUCKETS
        self._keys[bucket].append(hashed)
        self._rows[bucket].append(row_hash & _MASK)

    def finish(self, *, keep_keys: bool) -> None:
        """Find the identifiers on differing rows. `contains` needs `keep_keys`; else their memory is freed."""
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

    def is_contradictory(self, key: str) -> bool:
        """True if rows of this identifier differ. They can't all be meant, so none of them is applied."""
        return bool(self._differing) and hash(key) & _MASK in self._differing

    def contains(self, key: str) -> bool:
        hashed = hash(key) & _MASK
        keys = self._keys[hashed % _BUCKETS]
        position = bisect_left(keys, hashed)
        return position < len(keys) and keys[position] == hashed


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier."""

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    unnamed: int


def open_rows(db: Database, file: EligibilityFile) -> tuple[FileHeader, Iterator[Row]]:
    """The stored file's header and rows, from its beginning. Raises Unreadable, here or from the rows."""
    return open_file(
        open_content(db, file.id),
        format=file.format,
        encoding=file.encoding or "utf-8",
        mapping=NO_MAPPING if file.mapping is None else parse_mapping(file.mapping),
    )


def check_file(claim: FileClaim) -> CheckResult:
    """Read the whole file once. Raises Unreadable, Stopped."""
    header, rows = open_rows(claim.db, claim.file)
    identifiers = IdentifierIndex()
    count = unnamed = 0
    for row in rows:
        count += 1
        if count % CHECKPOINT_ROWS == 0:
            claim.checkpoint(FileStep.CHECK, count)
        key = read_external_id(row.values)
        if key is None:
            unnamed += 1
        else:
            identifiers.add(key, _hash_of(row))
    mode = header.mode or claim.file.mode
    identifiers.finish(keep_keys=mode is FileMode.FULL)
    day = header.file_date or claim.file.created_at.date().isoformat()
    return CheckResult(header, count, mode, day, identifiers, unnamed)


def _hash_of(row: Row) -> int:
    """Equal for rows that say the same, whatever the order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != ()))
