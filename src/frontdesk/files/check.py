"""The first reading of a stored file, before anything of it is applied: is it readable, what does it name."""

from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id, read_external_ids
from frontdesk.eligibility.model import Action, MemberAccess
from frontdesk.files.claims import FileClaim
from frontdesk.files.identifiers import IdentifierIndex
from frontdesk.files.model import (
    NOTHING_YET,
    EligibilityFile,
    FileHeader,
    FileMode,
    FileStep,
    Format,
    Row,
    Unreadable,
    UnreadRows,
    count_rows,
)
from frontdesk.files.moves import MoveFinder
from frontdesk.files.overtime import Overtime
from frontdesk.files.rows import open_rows
from frontdesk.files.steps import yielding

CHECKPOINT_ROWS = 10_000
ROWS_PER_BYTE = 1  # of the file as it was sent


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier; `moving` are the ids of the members that would leave another plan. Of an 834 `apart` are the places of
    the rows of members with others elsewhere in the file.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    unnamed: int
    moving: Sequence[int]
    apart: Sequence[int]

    def names(self, member: MemberAccess) -> bool:
        """Whether the member stands in the full file."""
        return self.identifiers.contains(member.external_id)

    def is_contradictory(self, key: str) -> bool:
        """Whether rows of this identifier differ. They can't all be meant, so none is applied; those of an 834 are folded."""
        return self.header.format is not Format.X12 and self.identifiers.is_contradictory(key)


class FileCheck:
    """The first reading of one file. It can be paused, and go on in a later turn."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        self._moves = MoveFinder(db, file)
        self._identifiers, self._unnamed = IdentifierIndex(), 0
        self._reading = self._read()
        self._result: CheckResult | None = None

    def finish(self, claim: FileClaim) -> CheckResult:
        """The result, once the file was read to its end. Raises Unreadable; Stopped, after which it can go on."""
        while self._result is None:
            try:
                rows = next(self._reading)
            except StopIteration as end:
                self._result = end.value
            else:
                claim.checkpoint(FileStep.CHECK, rows)
        return self._result

    def close(self) -> None:
        self._reading.close()

    def _read(self) -> Generator[int, None, CheckResult]:
        """Yields the number of rows so far, now and then."""
        file = self._file
        header, count = yield from self._read_all()
        mode = header.mode or file.mode
        self._identifiers.finish(keep_keys=mode is FileMode.FULL)
        apart: Sequence[int] = ()
        repeats = 0
        if header.format is Format.X12:
            apart, repeats = yield from self._rows_apart()
        else:
            yield from self._clear_equal()
        return CheckResult(
            header,
            count - repeats,
            mode,
            self._day(header),
            self._identifiers,
            self._unnamed,
            self._moves.finish() if mode is not FileMode.COMPARE else (),
            apart,
        )

    def _day(self, header: FileHeader) -> str:
        return header.file_date or self._file.created_at.date().isoformat()

    def _read_all(self) -> Generator[int, None, tuple[FileHeader, int]]:
        """The header and how many rows there are."""
        header, items = yield from yielding(0, open_rows(self._db, self._file))
        self._moves.begin(self._day(header))
        count, told, slow = 0, CHECKPOINT_ROWS, Overtime()
        for item in items:
            count += count_rows(item)
            if count >= told or item is NOTHING_YET or slow.has_begun():
                told = count + CHECKPOINT_ROWS
                _check_density(count, self._file.size_bytes)
                yield count
            if item is NOTHING_YET:
                continue
            if isinstance(item, UnreadRows):
                self._note_unread(item)
            elif not item.skipped:
                self._note(item)
        return header, count

    def _note_unread(self, rows: UnreadRows) -> None:
        keys, hashes = read_external_ids(rows.keys), map(hash, rows.texts)
        named = [key for key in keys if key is not None]
        self._unnamed += len(keys) - len(named)
        is_named = (key is not None for key in keys)
        self._moves.add(named)
        self._identifiers.add_all(named, hashes if len(named) == len(keys) else compress(hashes, is_named))

    def _note(self, row: Row) -> None:
        identifiers, key = self._identifiers, read_external_id(row.key)
        if key is None:
            self._unnamed += 1
        else:
            if row.action is Action.ENROL and not row.faults:
                self._moves.add((key,), row.plan)
            identifiers.add(key, _hash_of(row))
            if row.context.former_id:
                identifiers.add(row.context.former_id, hash(row.context.former_id))

    def _clear_equal(self) -> Iterator[int]:
        """Rows of one identifier that were written in different ways may say the same: read those."""
        read = IdentifierIndex()
        yield from self._read_differing(lambda key, row: read.add(key, _hash_of(row)))
        read.finish(keep_keys=False)
        self._identifiers.differing &= read.differing

    def _rows_apart(self) -> Generator[int, None, tuple[Sequence[int], int]]:
        """The places of the rows of an 834 of members with differing rows, and how many fewer rows they become."""
        places, members = array("Q"), set()

        def note(key: str, row: Row) -> None:
            places.append(row.place)
            members.add(hash(key))

        yield from self._read_differing(note)
        return array("Q", sorted(places)), len(places) - len(members)

    def _read_differing(self, note: Callable[[str, Row], None]) -> Iterator[int]:
        """Give `note` each row of which others of the same member differ, with its identifier. Reads the file only if
        there are any. Yields as `_read` does."""
        if not self._identifiers.differing:
            return
        count, told, slow = 0, 0, Overtime()
        _, items = yield from yielding(0, open_rows(self._db, self._file))
        for item in items:
            if count >= told or item is NOTHING_YET or slow.has_begun():
                told = count + CHECKPOINT_ROWS
                yield count
            if item is NOTHING_YET:
                continue
            if isinstance(item, UnreadRows):
                for position, key in enumerate(read_external_ids(item.keys)):
                    if key is not None and self._identifiers.is_contradictory(key):
                        note(key, item.row(position))
                count += len(item)
                continue
            key = read_external_id(item.key)
            if key is not None and self._identifiers.is_contradictory(key):
                note(key, item)
            count += 1


def _check_density(rows: int, size_bytes: int) -> None:
    """A million members in a row of identifiers alone, compressed, take two bytes each."""
    if rows > size_bytes * ROWS_PER_BYTE:
        message = (
            f"The file has more than {ROWS_PER_BYTE} row for each byte of its size: no list of members does."
        )
        raise Unreadable("zip_bomb", message)


def _hash_of(row: Row) -> int:
    """Equal for rows that say the same, whatever the order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != (), row.context.person))
