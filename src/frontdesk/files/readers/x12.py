"""Rows of an 834: the members inside the envelopes of its interchanges (docs/834.md)."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date

from frontdesk.eligibility.fields import x12_date
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import REPEATED, FileHeader, FileMode, Format, Row, Unreadable
from frontdesk.files.readers.family_addresses import FamilyAddresses
from frontdesk.files.readers.source import Source
from frontdesk.files.readers.x12_apart import APART_LIMIT, LoopsApart
from frontdesk.files.readers.x12_envelope import ENVELOPES, Envelope
from frontdesk.files.readers.x12_household import Households
from frontdesk.files.readers.x12_keys import X12Keys
from frontdesk.files.readers.x12_loop import (
    MemberLoop,
    Segment,
    Transaction,
    element,
    read_loop,
)
from frontdesk.files.readers.x12_member import read_member
from frontdesk.files.readers.x12_segments import at_segment, read_segments
from frontdesk.files.readers.x12_shared import SharedNumbers

MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
MEMBER_SEGMENTS_LIMIT = 10_000
MEMBER_LOOPS_LIMIT = 100
_ENDS_A_MEMBER = ENVELOPES | {"INS"}


@dataclass(frozen=True, slots=True)
class X12Options:
    """How to read an 834. A `mode` goes before what the file says of itself; `secret` is the account's, for hashes.

    `apart` are the places, in ascending order, of the rows of members with others elsewhere in the file: they become one row.
    `shared` tells which numbers are nobody's own.
    """

    mode: FileMode | None = None
    secret: bytes = b""
    apart: Sequence[int] = ()
    shared: SharedNumbers | None = None


DEFAULT_OPTIONS = X12Options()


def read_x12(
    source: Source, mapping: FileMapping, options: X12Options = DEFAULT_OPTIONS
) -> tuple[FileHeader, Iterator[Row]]:
    """The header, from the first BGN, and the rows. Without a mode, all transactions must have the same BGN08.

    Raises Unreadable.
    """
    reader = _X12Reader(source, mapping, options)
    return reader.header(), reader.rows()


class _X12Reader:
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping, options: X12Options) -> None:
        self._source = source
        self._segments = read_segments(source, self._note)
        self._envelope = Envelope(self._note, refuses_counts=mapping.counts != "lenient")
        self._is_untidy = False
        self._mapping = mapping
        self._transaction: Transaction | None = None
        self._asked_mode = options.mode
        self._keys = X12Keys(mapping, options.secret, options.shared or SharedNumbers())
        self._apart = LoopsApart(options.apart)
        self._mode: FileMode | None = None
        self._addresses, self._households = FamilyAddresses(), Households()
        self._loops: list[MemberLoop] = []
        self._place = 0

    def _note(self) -> None:
        """The file is not as the book wants it; its last member is warned of it, once."""
        self._is_untidy = True

    def header(self) -> FileHeader:
        for number, segment in self._segments:
            self._outside(number, segment)
            if self._transaction is not None:
                return FileHeader(Format.X12, self._transaction.mode, self._transaction.file_date)
        raise Unreadable("no_rows", "The file has no transaction.")

    def rows(self) -> Iterator[Row]:
        with closing(self._apart):
            yield from self._until_the_last_member()
            for row in self._rest():
                if self._is_untidy:
                    row.warnings += ("untidy_file",)
                    self._is_untidy = False
                yield row

    def _until_the_last_member(self) -> Iterator[Row]:
        member: list[Segment] = []
        place, found = 0, False
        for number, segment in self._segments:
            tag = segment[0]
            if member and tag not in _ENDS_A_MEMBER:
                member.append(segment)
                if number - place >= MEMBER_SEGMENTS_LIMIT:
                    message = f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    raise at_segment(place, "line_too_long", message)
                continue
            if member and self._transaction is not None:
                yield from self._loop(place, self._read_loop(member, self._transaction))
            member = []
            if tag == "INS" and self._transaction is not None:
                self._source.found_item()
                self._envelope.check_in_transaction(number)
                found, place, member = True, number, [segment]
            else:
                self._outside(number, segment)
        self._envelope.check_closed()
        if not found:
            raise Unreadable("no_rows", "The file has no member (INS).")

    def _rest(self) -> Iterator[Row]:
        """The last member, those with loops apart, and the dependents that have waited for an address."""
        yield from self._flush()
        for place, loops in self._apart.members():
            yield from self._row(place, loops)
        yield from self._addresses.rest()

    def _read_loop(self, member: list[Segment], transaction: Transaction) -> MemberLoop:
        loop = read_loop(member, transaction)
        if loop.is_untidy:
            self._note()
        self._keys.name(loop)
        person = (loop.said("NM1", 4), loop.said("DMG", 2)) if loop.is_weak else ()
        loop.identity = "\0".join((loop.key, loop.family, loop.ins[1], *person))
        self._households.note(loop)
        return loop

    def _loop(self, place: int, loop: MemberLoop) -> Iterator[Row]:
        """Fold the loop with those of the same member just before it, unless it repeats one letter by letter."""
        loops = self._loops
        is_same = (
            loops and loop.key and loop.identity == loops[-1].identity and loop.action and loops[-1].action
        )
        if not is_same or loop == loops[-1] or len(loops) == MEMBER_LOOPS_LIMIT:
            yield from self._flush()
            self._place = place
        self._loops.append(loop)

    def _flush(self) -> Iterator[Row]:
        loops, self._loops = self._loops, []
        if loops and self._apart.takes(self._place):
            # Dependents need the address before all loops of their subscriber are there.
            row = read_member(self._place, loops, self._mapping, self._keys)
            self._addresses.note(row, loops[-1].family)
            self._apart.keep(self._place, loops)
        elif loops:
            yield from self._row(self._place, loops)

    def _row(self, place: int, loops: list[MemberLoop]) -> Iterator[Row]:
        row = read_member(place, loops, self._mapping, self._keys)
        if len(loops) > APART_LIMIT:
            row.faults += (REPEATED,)
        if any(loop.tells_shared for loop in loops):
            row.warnings += ("shared_reference",)
        home = next((loop.home for loop in loops if loop.home is not None), None)
        return self._addresses.take(row, loops[-1].family, home)

    def _outside(self, number: int, segment: Segment) -> None:
        """Take a segment that stands outside of members."""
        tag = segment[0]
        if tag in ENVELOPES:
            self._envelope.check(number, segment)
            if tag == "ST":
                self._transaction = None
            return
        if tag == "TA1" and not self._envelope.is_in_group:
            self._note()
            return
        self._envelope.check_in_transaction(number)
        if tag == "INS":
            raise at_segment(number, "wrong_order", "INS stands before BGN")
        if tag == "BGN":
            self._transaction = self._begin(number, segment)
        elif self._transaction is not None:
            if tag == "REF":
                self._transaction.references[element(segment, 1).upper()] = element(segment, 2)
            elif tag == "N1" and element(segment, 1).upper() == "IN":
                self._transaction.payor_name = element(segment, 2)

    def _begin(self, number: int, segment: Segment) -> Transaction:
        mode = self._asked_mode or self._said_mode(segment)
        if self._asked_mode is None and mode is FileMode.COMPARE and self._mapping.verify == "full":
            mode = FileMode.FULL  # what many senders call their full file
        if mode is None:
            message = "BGN08 must be 2 (change), 4 (compare) or RX (full), or be blank, unless the upload says the mode"
            raise at_segment(number, "unknown_purpose", message)
        if self._mode not in (None, mode):
            message = "BGN08 differs from that of the first transaction; send them as files of their own"
            raise at_segment(number, "mixed_purposes", message)
        self._mode = mode
        day = x12_date(element(segment, 3))
        if not day:
            self._note()
            day = self._envelope.day
        if not _is_date(day):
            # Members that are ended without a date of their own end on this day.
            raise at_segment(
                number, "wrong_date", "BGN03, the date of the file, must be a real date, CCYYMMDD"
            )
        return Transaction(mode, day)

    def _said_mode(self, segment: Segment) -> FileMode | None:
        """What BGN08 says, or an element before it where the sender has left some out. Without any, the file ends nobody by
        what it omits."""
        purpose = element(segment, 8).upper()
        if purpose:
            return MODES.get(purpose)
        self._note()
        early = (MODES.get(element(segment, position).upper()) for position in (7, 6))
        return next(filter(None, early), FileMode.CHANGE)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
