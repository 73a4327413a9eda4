"""The first reading of a stored file, before anything of it is applied: is it readable, what does it name."""

from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id, read_external_ids
from frontdesk.eligibility.model import Action, MemberAccess
from frontdesk.files import store
from frontdesk.files.claims import FileClaim
from frontdesk.files.identifiers import IdentifierIndex, PeopleIndex
from frontdesk.files.mapping import PLAIN, parse_mapping
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
from frontdesk.files.readers import NumberIndex, SharedNumbers
from frontdesk.files.rows import open_rows, secret_of
from frontdesk.files.steps import yielding
from frontdesk.text import are_mostly_ssns

CHECKPOINT_ROWS = 10_000
SAMPLED_ROWS = 200  # whose identifiers are looked at
_STORED = (
    "Most values of {0} look like social security numbers, which would be stored and shown as they are. Make {0} from another "
    'column. If these are no social security numbers, or are to be stored as they are, say "ssn": "plain" in the mapping.'
)
ROWS_PER_BYTE = 1  # of the file as it was sent


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier; `moving` are the ids of the members that would leave another plan. Of an 834 `apart` are the places of
    the rows of members with others elsewhere in the file, and `shared` the keys of numbers that several people carry.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    people: PeopleIndex
    unnamed: int
    moving: Sequence[int]
    apart: Sequence[int]
    shared: Sequence[int]

    def names(self, member: MemberAccess) -> bool:
        """Whether the member stands in the full file."""
        return self.identifiers.contains(member.external_id) or self.people.contains(member)

    def is_contradictory(self, key: str) -> bool:
        """Whether rows of this identifier differ. They can't all be meant, so none is applied; those of an 834 are folded."""
        return self.header.format is not Format.X12 and self.identifiers.is_contradictory(key)


class FileCheck:
    """The first reading of one file. It can be paused, and go on in a later turn."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        self._secret = secret_of(db, file)
        self._moves = MoveFinder(db, file)
        self._forget()
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

    def _forget(self) -> None:
        self._identifiers, self._people = IdentifierIndex(), PeopleIndex(self._secret)
        self._unnamed = 0
        self._sample: list[Row] = []

    def _read(self) -> Generator[int, None, CheckResult]:
        """Yields the number of rows so far, now and then. Reads once more where a number turns out to be shared."""
        file = self._file
        known = self._db.ask(lambda tx: store.find_shared_numbers(tx, file.account_id))
        while True:
            numbers = SharedNumbers(self._secret, known, NumberIndex())
            header, count = yield from self._read_all(numbers)
            if header.format is not Format.X12:
                self._check_ssns()
            if not (found := numbers.found()):
                break
            known = numbers.known | found
            self._forget()
        self._shared = [*known]
        mode = header.mode or file.mode
        self._identifiers.finish(keep_keys=mode is FileMode.FULL)
        self._people.finish()
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
            self._people,
            self._unnamed,
            self._moves.finish() if mode is not FileMode.COMPARE else (),
            apart,
            self._shared,
        )

    def _day(self, header: FileHeader) -> str:
        return header.file_date or self._file.created_at.date().isoformat()

    def _read_all(self, numbers: SharedNumbers) -> Generator[int, None, tuple[FileHeader, int]]:
        """The header and how many rows there are."""
        header, items = yield from yielding(0, open_rows(self._db, self._file, shared=numbers))
        mode = header.mode or self._file.mode
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
                self._sample += islice(item.rows(), SAMPLED_ROWS - len(self._sample))
                self._note_unread(item)
            elif not item.skipped:
                if len(self._sample) < SAMPLED_ROWS:
                    self._sample.append(item)
                self._note(item, mode)
        return header, count

    def _check_ssns(self) -> None:
        """Raises Unreadable for a table whose identifiers look like social security numbers, unless its mapping wants them."""
        if parse_mapping(self._file.mapping or {}).ssn == PLAIN:
            return
        for name in ("external_id", "member_id"):
            values = [
                text for row in self._sample if isinstance(text := row.values.get(name), str) and text.strip()
            ]
            if values and are_mostly_ssns([text.strip() for text in values]):
                raise Unreadable("looks_like_ssn", _STORED.format(name))

    def _note_unread(self, rows: UnreadRows) -> None:
        keys, hashes = read_external_ids(rows.keys), map(hash, rows.texts)
        named = [key for key in keys if key is not None]
        self._unnamed += len(keys) - len(named)
        is_named = (key is not None for key in keys)
        self._moves.add(named)
        self._identifiers.add_all(named, hashes if len(named) == len(keys) else compress(hashes, is_named))

    def _note(self, row: Row, mode: FileMode) -> None:
        identifiers, key = self._identifiers, read_external_id(row.key)
        if key is None:
            self._unnamed += 1
        else:
            if row.action is Action.ENROL and not row.faults:
                self._moves.add((key,), row.plan)
            identifiers.add(row.identity or key, _hash_of(row))
            if mode is FileMode.FULL and (family := row.hints.family) is not None:
                identifiers.add_all((key, family.telling_key), (0, 0))
                self._people.add(key, family, is_category=row.hints.is_category)

    def _clear_equal(self) -> Iterator[int]:
        """Rows of one identifier that were written in different ways may say the same: read those."""
        read = IdentifierIndex()
        yield from self._read_differing(lambda key, row: read.add(key, _hash_of(row)))
        read.finish(keep_keys=False)
        self._identifiers.differing &= read.differing

    def _rows_apart(self) -> Generator[int, None, tuple[Sequence[int], int]]:
        """The places of the rows of an 834 of members with differing rows, and how many fewer rows they become."""
        places, members = array("Q"), set()

        def note(identity: str, row: Row) -> None:
            places.append(row.place)
            members.add(hash(identity))

        yield from self._read_differing(note)
        return array("Q", sorted(places)), len(places) - len(members)

    def _read_differing(self, note: Callable[[str, Row], None]) -> Iterator[int]:
        """Give `note` each row of which others of the same person differ, with what tells the person. Reads the file only if
        there are any. Yields as `_read` does."""
        if not self._identifiers.differing:
            return
        count, told, slow = 0, 0, Overtime()
        numbers = SharedNumbers(self._secret, self._shared)
        _, items = yield from yielding(0, open_rows(self._db, self._file, shared=numbers))
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
            person = item.identity or read_external_id(item.key)
            if person is not None and self._identifiers.is_contradictory(person):
                note(person, item)
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
    return hash((values, row.action, row.plan, row.faults != ()))
