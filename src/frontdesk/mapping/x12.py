"""Rows of an 834: the members inside the envelopes of its interchanges (docs/834.md)."""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from frontdesk.eligibility.fields import ZIPCODE_PATTERN, x12_date
from frontdesk.eligibility.row_context import fold_name
from frontdesk.errors import Fault
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.formats.source import Source
from frontdesk.formats.x12_envelope import ENVELOPES, Envelope
from frontdesk.formats.x12_loop import MemberLoop, Segment, Transaction, element, read_loop
from frontdesk.formats.x12_segments import at_segment, read_segments
from frontdesk.mapping.addresses import FamilyAddresses
from frontdesk.mapping.model import IDENTIFIER_SHARED, REPEATED, ROW_FAULTS, FileHeader, Row
from frontdesk.mapping.parser import NO_MAPPING, FileMapping
from frontdesk.mapping.suggest.identity import suggest_identity
from frontdesk.mapping.x12_access import family_levels
from frontdesk.mapping.x12_apart import APART_LIMIT, LoopsApart, PlacedLoop
from frontdesk.mapping.x12_identity import MemberNames
from frontdesk.mapping.x12_member import name_two_people, read_member

MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
MEMBER_SEGMENTS_LIMIT = 10_000
MEMBER_LOOPS_LIMIT = 100
_ENDS_A_MEMBER = ENVELOPES | {"INS"}


@dataclass(frozen=True, slots=True)
class X12Options:
    """How to read an 834. A `mode` goes before what the file says of itself; `secret` is the account's, for hashes.

    `apart` are the places, in ascending order, of the rows of members with others elsewhere in the file: they become one row.
    """

    mode: FileMode | None = None
    secret: bytes = b""
    apart: Sequence[int] = ()


DEFAULT_OPTIONS = X12Options()


def read_x12(
    source: Source, mapping: FileMapping, options: X12Options = DEFAULT_OPTIONS
) -> tuple[FileHeader, Iterator[Row]]:
    """The header, from the first BGN, and the rows. Without a mode, all transactions must have the same BGN08.

    Raises Unreadable.
    """
    reader = _X12Reader(source, mapping, options)
    return reader.header(), reader.rows()


def suggest_x12(source: Source, *, is_cut: bool = False) -> dict[str, Any]:
    """How the 834 may name its members (x12_suggest); `is_cut` says that the file may end within a member. Raises Unreadable."""
    reader = _X12Reader(source, NO_MAPPING, DEFAULT_OPTIONS)
    reader.header()
    return suggest_identity(reader.loops(is_cut=is_cut))


class MappingNeeded(Exception):
    """The account's mapping does not say how an 834 names its members. `suggestion` is one, with its reasons, as JSON."""

    def __init__(self, suggestion: dict[str, Any]) -> None:
        super().__init__()
        self.suggestion = suggestion


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
        self._names = MemberNames(mapping, options.secret)
        self._apart = LoopsApart(options.apart)
        self._mode: FileMode | None = None
        self._addresses = FamilyAddresses()
        self._subscriber: MemberLoop | None = None  # the last one
        self._loops: list[PlacedLoop] = []

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
        if self._mapping.identify is None:
            raise MappingNeeded(suggest_identity(self.loops()))
        with closing(self._apart):
            for place, loop in self._members():
                yield from self._loop(place, loop)
            for row in self._rest():
                if self._is_untidy:
                    row.warnings += ("untidy_file",)
                    self._is_untidy = False
                yield row

    def loops(self, *, is_cut: bool = False) -> Iterator[MemberLoop]:
        """The INS loops; with `is_cut`, up to where the file breaks off."""
        with suppress(*([Unreadable] if is_cut else [])):
            for _, loop in self._members():
                yield loop

    def _members(self) -> Iterator[PlacedLoop]:
        """Each INS loop with its place."""
        member: list[Segment] = []
        place, has_members = 0, False
        for number, segment in self._segments:
            tag = segment[0]
            if member and tag not in _ENDS_A_MEMBER:
                member.append(segment)
                if number - place >= MEMBER_SEGMENTS_LIMIT:
                    message = f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    raise at_segment(place, "line_too_long", message)
                continue
            if member and self._transaction is not None:
                yield place, self._read_loop(member, self._transaction)
            member = []
            if tag == "INS" and self._transaction is not None:
                self._envelope.check_in_transaction(number)
                has_members, place, member = True, number, [segment]
            else:
                self._outside(number, segment)
        self._envelope.check_closed()
        if not has_members:
            raise Unreadable("no_rows", "The file has no member (INS).")

    def _rest(self) -> Iterator[Row]:
        """The last member, those with loops apart, and the dependents that have waited for an address."""
        yield from self._flush()
        for loops in self._apart.members():
            yield from self._rows_of(loops)
        yield from self._addresses.rest()

    def _read_loop(self, member: list[Segment], transaction: Transaction) -> MemberLoop:
        loop = read_loop(member, transaction)
        if loop.is_untidy:
            self._note()
        loop.key = self._names.external_id(loop)
        if loop.is_subscriber:
            self._subscriber = loop
        elif (subscriber := self._subscriber_of(loop)) is not None:
            self._take_from_subscriber(loop, subscriber)
        return loop

    def _subscriber_of(self, dependent: MemberLoop) -> MemberLoop | None:
        """The subscriber before a dependent, if both have one REF*0F or one last name."""
        subscriber = self._subscriber
        if subscriber is None or subscriber.transaction is not dependent.transaction:
            return None
        last_name = fold_name(dependent.element("NM1", 3))
        is_same_name = bool(last_name) and last_name == fold_name(subscriber.element("NM1", 3))
        is_same_family = bool(dependent.family) and dependent.family == subscriber.family
        return subscriber if is_same_family or is_same_name else None

    def _take_from_subscriber(self, loop: MemberLoop, subscriber: MemberLoop) -> None:
        """Give a dependent without an address that of the subscriber before it; without a coverage, those of a family."""
        address = subscriber.address()
        if not loop.element("N4", 3) and ZIPCODE_PATTERN.fullmatch(str(address.get("zipcode", ""))):
            loop.address_before = address
        if not loop.coverages:
            levels = family_levels(loop, subscriber, self._mapping)
            if self._mapping.family_coverage == "subscriber":
                loop.coverages = levels
            loop.covered_by = levels[0].hd[5].strip() if levels else ""

    def _loop(self, place: int, loop: MemberLoop) -> Iterator[Row]:
        """Fold the loop with those of the same member just before it, unless it repeats one letter by letter."""
        loops = self._loops
        is_same = loops and loop.key and loop.key == loops[-1][1].key and loop.action and loops[-1][1].action
        if not is_same or loop == loops[-1][1] or len(loops) == MEMBER_LOOPS_LIMIT:
            yield from self._flush()
        self._loops.append((place, loop))
        for position in loop.nested:
            fault = Fault("INS", "nested_dependent", ROW_FAULTS["nested_dependent"])
            yield Row(place + position, {}, faults=(fault,))

    def _flush(self) -> Iterator[Row]:
        loops, self._loops = self._loops, []
        if loops and self._apart.takes(loops[0][0]):
            # Dependents need the address before all loops of their subscriber are there.
            (place, _), (_, last) = loops[0], loops[-1]
            row = read_member(place, [loop for _, loop in loops], self._mapping, self._names)
            self._addresses.note(row, last.family)
            self._apart.keep(loops)
        elif loops:
            yield from self._rows_of(loops)

    def _rows_of(self, placed: list[PlacedLoop]) -> Iterator[Row]:
        """The row of a member; of two people with one identifier, a refused row for each loop."""
        place, last = placed[0][0], placed[-1][1]
        loops = [loop for _, loop in placed]
        if len(loops) > 1 and name_two_people(loops, self._names):
            for at, loop in placed:
                yield Row(at, {"external_id": loop.key}, faults=(IDENTIFIER_SHARED,))
            return
        row = read_member(place, loops, self._mapping, self._names)
        if len(loops) > APART_LIMIT:
            row.faults += (REPEATED,)
        yield from self._addresses.take(row, last.family, last.address_before)

    def _outside(self, number: int, segment: Segment) -> None:
        """Take a segment that stands outside of members."""
        tag = segment[0]
        if tag in ENVELOPES:
            self._envelope.check(number, segment)
            if tag in ("ST", "GS"):
                self._transaction = None
            return
        if tag == "TA1" and not self._envelope.is_in_group:
            self._note()
            return
        self._envelope.check_in_transaction(number)
        if self._envelope.is_foreign:
            return
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
            message = (
                "BGN08 differs from that of the first transaction: send them as files of their own, or say the mode "
                "with the upload"
            )
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
