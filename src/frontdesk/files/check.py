"""The first reading of a stored file, before anything of it is applied: is it readable, what does it name."""

from array import array
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import compress, islice

from frontdesk.db import Database
from frontdesk.eligibility import read_external_id, read_external_ids
from frontdesk.files.claims import FileClaim
from frontdesk.files.identifiers import IdentifierIndex
from frontdesk.files.mapping import PLAIN, parse_mapping
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
from frontdesk.files.rows import open_rows
from frontdesk.text import are_mostly_ssns

DENSITY_ROWS = 10_000  # between two looks at the density
SAMPLED_ROWS = 200  # whose identifiers are looked at
_STORED = (
    "Most values of {0} look like social security numbers, which would be stored and shown as they are. Make {0} from another "
    'column. If these are no social security numbers, or are to be stored as they are, say "ssn": "plain" in the mapping.'
)
ROWS_PER_BYTE = 1  # of the file as it was sent


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier; `members` are the stored ones that the rows name. Of an 834 `apart` are the places of the rows of members
    with others elsewhere in the file.
    """

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    unnamed: int
    members: NamedMembers
    apart: Sequence[int]

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
        self._members = MemberLookup(db, file)
        self._identifiers, self._unnamed = IdentifierIndex(), 0
        self._sample: list[Row] = []
        self.rows = 0

    def read(self, go_on: GoOn) -> Generator[CheckResult]:
        """Yields the result."""
        file, self._go_on = self._file, go_on
        header, count = self._read_all(), self.rows
        if header.format is not Format.X12:
            self._check_ssns()
        mode = header.mode or file.mode
        self._identifiers.finish()
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
            self._unnamed,
            self._members.finish(),
            apart,
        )

    def _day(self, header: FileHeader) -> str:
        return header.file_date or self._file.created_at.date().isoformat()

    def _read_all(self) -> FileHeader:
        header, items = open_rows(self._db, self._file, self._go_on)
        self._members.begin(self._day(header), header.mode or self._file.mode)
        self.rows, looked = 0, 0
        for item in items:
            self.rows += count_rows(item)
            if self.rows >= looked + DENSITY_ROWS:
                looked = self.rows
                _check_density(self.rows, self._file.size_bytes)
            if isinstance(item, UnreadRows):
                self._sample += islice(item.rows(), SAMPLED_ROWS - len(self._sample))
                self._note_unread(item)
            elif not item.skipped:
                if len(self._sample) < SAMPLED_ROWS:
                    self._sample.append(item)
                self._note(item)
        return header

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
        self._members.add_unread(rows, keys)
        self._identifiers.add_all(named, hashes if len(named) == len(keys) else compress(hashes, is_named))

    def _note(self, row: Row) -> None:
        identifiers, key = self._identifiers, read_external_id(row.key)
        if key is None:
            self._unnamed += 1
        else:
            self._members.add(key, row)
            identifiers.add(key, _hash_of(row))
            if row.context.former_id:
                self._members.add(row.context.former_id, row)

    def _clear_equal(self) -> None:
        """Rows of one identifier that were written in different ways may say the same: read those."""
        read = IdentifierIndex()
        self._read_differing(lambda key, row: read.add(key, _hash_of(row)))
        read.finish()
        self._identifiers.differing &= read.differing

    def _rows_apart(self) -> tuple[Sequence[int], int]:
        """The places of the rows of an 834 of members with differing rows, and how many fewer rows they become."""
        places, members = array("Q"), set()

        def note(key: str, row: Row) -> None:
            places.append(row.place)
            members.add(hash(key))

        self._read_differing(note)
        return array("Q", sorted(places)), len(places) - len(members)

    def _read_differing(self, note: Callable[[str, Row], None]) -> None:
        """Give `note` each row of which others of the same member differ, with its identifier. Reads the file only if there are
        any."""
        if not self._identifiers.differing:
            return
        _, items = open_rows(self._db, self._file, self._go_on)
        for item in items:
            if isinstance(item, UnreadRows):
                for position, key in enumerate(read_external_ids(item.keys)):
                    if key is not None and self._identifiers.is_contradictory(key):
                        note(key, item.row(position))
                continue
            key = read_external_id(item.key)
            if key is not None and self._identifiers.is_contradictory(key):
                note(key, item)


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
