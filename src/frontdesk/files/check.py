"""The first reading of a file, before anything of it is applied: can it be read to its end, what does it say of itself,
which identifiers does it repeat. It writes nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id
from frontdesk.files.claims import FileClaim
from frontdesk.files.content import open_content
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import NO_MAPPING, EligibilityFile, FileHeader, FileMode, Row
from frontdesk.files.readers import open_file
from frontdesk.files.repeats import IdentifierIndex

BREATH_ROWS = 10_000  # how many rows may pass between two looks at the lease and at the wish to stop


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is what the file says of itself, else what was asked for; `unnamed` counts the
    rows whose identifier can't be read."""

    head: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    repeats: IdentifierIndex
    unnamed: int


def open_rows(db: Database, file: EligibilityFile) -> tuple[FileHeader, Iterator[Row]]:
    """The file from its beginning, read as it was asked for. Raises Unreadable, here or from the rows."""
    return open_file(
        open_content(db, file.id),
        format=file.format,
        encoding=file.encoding or "utf-8",
        mapping=NO_MAPPING if file.mapping is None else parse_mapping(file.mapping),
    )


def check(claim: FileClaim, breathe: Callable[[int], None]) -> CheckResult:
    """Read the whole file once. `breathe(rows)` is called now and then. Raises Unreadable."""
    head, rows = open_rows(claim.db, claim.file)
    repeats = IdentifierIndex()
    count = unnamed = 0
    for row in rows:
        count += 1
        if count % BREATH_ROWS == 0:
            breathe(count)
        key = read_external_id(row.values)
        if key is None:
            unnamed += 1
        else:
            repeats.add(key, _hash_of(row))
    mode = head.mode or claim.file.mode
    repeats.settle(keep_keys=mode is FileMode.FULL)
    day = head.file_date or claim.file.created_at.date().isoformat()
    return CheckResult(head, count, mode, day, repeats, unnamed)


def _hash_of(row: Row) -> int:
    """Equal for rows that say the same, in whatever order."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != ()))
