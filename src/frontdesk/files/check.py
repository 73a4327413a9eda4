"""The first reading of a stored file, before anything of it is applied: is it readable, what does it name."""

from array import array
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id, read_external_ids
from frontdesk.eligibility.model import Action
from frontdesk.files import store
from frontdesk.files.claims import FileClaim
from frontdesk.files.identifiers import IdentifierIndex, PeopleIndex
from frontdesk.files.model import (
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
from frontdesk.files.named_members import MemberLookup, NamedMembers
from frontdesk.files.producer import GoOn, Producer
from frontdesk.files.readers import NumberIndex, SharedNumbers
from frontdesk.files.rows import open_rows, secret_of

DENSITY_ROWS = 10_000  # between two looks at the density
ROWS_PER_BYTE = 1  # of the file as it was sent


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier; `members` are the stored ones that the rows name. Of an 834 `apart` are the places of
    the rows of members with others elsewhere in the file, and `shared` the keys of numbers that several people carry.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    people: PeopleIndex
    unnamed: int
    members: NamedMembers
    apart: Sequence[int]
    shared: Sequence[int]

    def is_contradictory(self, key: str) -> bool:
        """Whether rows of this identifier differ. They can't all be meant, so none is applied; those of an 834 are folded."""
        return self.header.format is not Format.X12 and self.identifiers.is_contradictory(key)


def check_file(claim: FileClaim) -> CheckResult:
    """The result of the first reading. Raises Unreadable, Stopped, LostClaim."""
    check = _FileCheck(claim.db, claim.file)
    with Producer(check.read, claim.running) as producer:
        [result] = producer.items(lambda: claim.checkpoint(FileStep.CHECK, check.rows))
    return result


class _FileCheck:
    """The first reading of one file. `rows` is how far it is."""

    def __init__(self, db: Database, file: EligibilityFile) -> None:
        self._db, self._file = db, file
        self._secret = secret_of(db, file)
        self._members = MemberLookup(db, file)
        self._forget()
        self.rows = 0

    def _forget(self) -> None:
        self._identifiers, self._people = IdentifierIndex(), PeopleIndex(self._secret)
        self._unnamed = 0

    def read(self, go_on: GoOn) -> Generator[CheckResult]:
        """Yields the result. Reads once more where a number turns out to be shared."""
        file, self._go_on = self._file, go_on
        known = self._db.ask(lambda tx: store.find_shared_numbers(tx, file.account_id))
        while True:
            numbers = SharedNumbers(self._secret, known, NumberIndex())
            header, count = self._read_all(numbers), self.rows
            if not (found := numbers.found()):
                break
            known = numbers.known | found
            self._forget()
        self._shared = [*known]
        mode = header.mode or file.mode
        self._identifiers.finish()
        self._people.finish()
        apart: Sequence[int] = ()
        repeats = 0
        if header.format is Format.X12:
            apart, repeats = self._rows_apart()
        else:
            self._clear_equal()
        yield CheckResult(
            header,
            count - repeats,
            mode,
            self._day(header),
            self._identifiers,
            self._people,
            self._unnamed,
            self._members.finish(),
            apart,
            self._shared,
        )

    def _day(self, header: FileHeader) -> str:
        return header.file_date or self._file.created_at.date().isoformat()

    def _read_all(self, numbers: SharedNumbers) -> FileHeader:
        header, items = open_rows(self._db, self._file, self._go_on, shared=numbers)
        mode = header.mode or self._file.mode
        self._members.begin(self._day(header), mode)
        self.rows, looked = 0, 0
        for item in items:
            self.rows += count_rows(item)
            if self.rows >= looked + DENSITY_ROWS:
                looked = self.rows
                _check_density(self.rows, self._file.size_bytes)
            if isinstance(item, UnreadRows):
                self._note_unread(item)
            elif not item.skipped:
                self._note(item, mode)
        return header

    def _note_unread(self, rows: UnreadRows) -> None:
        keys, hashes = read_external_ids(rows.keys), map(hash, rows.texts)
        named = [key for key in keys if key is not None]
        self._unnamed += len(keys) - len(named)
        is_named = (key is not None for key in keys)
        self._members.add_unread(rows, keys)
        self._identifiers.add_all(named, hashes if len(named) == len(keys) else compress(hashes, is_named))

    def _note(self, row: Row, mode: FileMode) -> None:
        identifiers, key = self._identifiers, read_external_id(row.key)
        if key is None:
            self._unnamed += 1
        else:
            self._members.add(key, row)
            identifiers.add(row.identity or key, _hash_of(row))
            if mode is FileMode.FULL and (family := row.hints.family) is not None:
                if family.telling_key:
                    self._members.add(family.telling_key, replace(row, action=Action.END))
                self._people.add(key, family, is_category=row.hints.is_category)

    def _clear_equal(self) -> None:
        """Rows of one identifier that were written in different ways may say the same: read those."""
        read = IdentifierIndex()
        self._read_differing(lambda key, row: read.add(key, _hash_of(row)))
        read.finish()
        self._identifiers.differing &= read.differing

    def _rows_apart(self) -> tuple[Sequence[int], int]:
        """The places of the rows of an 834 of members with differing rows, and how many fewer rows they become."""
        places, members = array("Q"), set()

        def note(identity: str, row: Row) -> None:
            places.append(row.place)
            members.add(hash(identity))

        self._read_differing(note)
        return array("Q", sorted(places)), len(places) - len(members)

    def _read_differing(self, note: Callable[[str, Row], None]) -> None:
        """Give `note` each row of which others of the same person differ, with what tells the person. Reads the file only if
        there are any."""
        if not self._identifiers.differing:
            return
        numbers = SharedNumbers(self._secret, self._shared)
        _, items = open_rows(self._db, self._file, self._go_on, shared=numbers)
        for item in items:
            if isinstance(item, UnreadRows):
                for position, key in enumerate(read_external_ids(item.keys)):
                    if key is not None and self._identifiers.is_contradictory(key):
                        note(key, item.row(position))
                continue
            person = item.identity or read_external_id(item.key)
            if person is not None and self._identifiers.is_contradictory(person):
                note(person, item)


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
