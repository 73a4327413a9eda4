"""Rows of an 834: the segments of its interchanges, the envelopes around them, the members inside (docs/834.md).

Segments are split by the delimiters that each ISA declares, and counted from the first ISA of the file, which is 1.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date

from frontdesk.eligibility.fields import x12_date
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import FileHeader, FileMode, Format, Row, Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.x12_family import FamilyAddresses
from frontdesk.files.readers.x12_member import (
    MemberLoop,
    Segment,
    Transaction,
    element,
    read_loop,
    read_member,
)

MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
MEMBER_SEGMENTS_LIMIT = 10_000
MEMBER_LOOPS_LIMIT = 100
ISA_LENGTH = 106
_FILLER = " \t\r\n\x1a\0"  # what old systems put around an interchange
_BLANK = ("", " ", "\t")
_LAST_SEGMENT = re.compile(r"IEA[^0-9A-Za-z][0-9]{1,5}[^0-9A-Za-z][0-9]{9}")
_ISA_WIDTHS = [3, 2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1]

GUIDE = "005010X220"

# Each tag: the level at which it may stand, and the level to which it leads.
_LEVELS = {"ISA": (0, 1), "GS": (1, 2), "ST": (2, 3), "SE": (3, 2), "GE": (2, 1), "IEA": (1, 0)}
_INTERCHANGE, _TRANSACTION = 1, 3
_OPENS = {"ISA": 13, "GS": 6, "ST": 2}  # the element with the control number
_WHAT_IS_COUNTED = {"SE": "segments", "GE": "transactions", "IEA": "groups"}
ENVELOPES = frozenset(_LEVELS)
_ENDS_A_MEMBER = ENVELOPES | {"INS"}


def read_x12(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header, from the first BGN, and the rows. All transactions must have the same BGN08. Raises Unreadable."""
    reader = _X12Reader(source, mapping)
    return reader.header(), reader.rows()


class _X12Reader:
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._segments = read_segments(source, self._note)
        self._envelope = Envelope(self._note if mapping.counts == "lenient" else None)
        self._is_untidy = False
        self._mapping = mapping
        self._transaction: Transaction | None = None
        self._mode: FileMode | None = None
        self._addresses = FamilyAddresses()
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
        member: list[Segment] = []
        place, found = 0, False
        for number, segment in self._segments:
            tag = segment[0]
            if member and tag not in _ENDS_A_MEMBER:
                member.append(segment)
                if len(member) > MEMBER_SEGMENTS_LIMIT:
                    message = f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    raise _at(place, "line_too_long", message)
                continue
            if member and self._transaction is not None:
                yield from self._loop(place, read_loop(member, self._transaction, self._mapping))
            member = []
            if tag == "INS" and self._transaction is not None:
                self._envelope.check_in_transaction(number)
                found, place, member = True, number, [segment]
            else:
                self._outside(number, segment)
        self._envelope.check_closed()
        if not found:
            raise Unreadable("no_rows", "The file has no member (INS).")
        yield from self._flush(is_last=True)
        yield from self._addresses.rest()

    def _loop(self, place: int, loop: MemberLoop) -> Iterator[Row]:
        """Fold the loop with those of the same member just before it, unless it repeats one letter by letter."""
        loops = self._loops
        is_same = loops and loop.key and loop.key == loops[-1].key and loop.action and loops[-1].action
        if not is_same or loop == loops[-1] or len(loops) == MEMBER_LOOPS_LIMIT:
            yield from self._flush()
            self._place = place
        self._loops.append(loop)

    def _flush(self, *, is_last: bool = False) -> Iterator[Row]:
        if loops := self._loops:
            self._loops = []
            row = read_member(self._place, loops, self._mapping)
            if is_last and self._is_untidy:
                row.warnings += ("untidy_file",)
            yield from self._addresses.take(row, loops[-1].family)

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
            raise _at(number, "wrong_order", "INS stands before BGN")
        if tag == "BGN":
            self._transaction = self._begin(number, segment)
        elif self._transaction is not None:
            if tag == "REF":
                self._transaction.references[element(segment, 1)] = element(segment, 2)
            elif tag == "N1" and element(segment, 1) == "IN":
                self._transaction.payor_name = element(segment, 2)

    def _begin(self, number: int, segment: Segment) -> Transaction:
        mode = MODES.get(element(segment, 8))
        if mode is FileMode.COMPARE and self._mapping.verify == "full":
            mode = FileMode.FULL  # what many senders call their full file
        if mode is None:
            raise _at(number, "unknown_purpose", "BGN08 must be 2 (change), 4 (compare) or RX (full)")
        if self._mode not in (None, mode):
            message = "BGN08 differs from that of the first transaction; send them as files of their own"
            raise _at(number, "mixed_purposes", message)
        self._mode = mode
        day = x12_date(element(segment, 3))
        if not _is_date(day):
            # Members that are ended without a date of their own end on this day.
            raise _at(number, "wrong_date", "BGN03, the date of the file, must be a real date, CCYYMMDD")
        return Transaction(mode, day)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _at(number: int, code: str, message: str) -> Unreadable:
    return Unreadable(code, message, place=number, unit="Segment")


def read_segments(source: Source, note: Callable[[], None] = lambda: None) -> Iterator[tuple[int, Segment]]:
    """Every segment with its number. Line breaks between segments are ignored, and so are space, blank segments and a missing
    last terminator, which `note` is told of. Raises Unreadable.
    """
    text, number = _more(source, "", 1), 0
    while text:
        separator, terminator = _delimiters(text, number + 1)
        breaks = [character for character in "\r\n" if character != terminator]
        while text:
            for character in breaks:
                text = text.replace(character, "")
            *pieces, rest = text.split(terminator)
            for at, piece in enumerate(pieces):
                if piece[:1] in _BLANK:
                    note()
                    piece = piece.lstrip()  # noqa: PLW2901 - the segment begins there
                    if not piece:
                        continue
                number += 1
                if not piece.isascii():
                    source.check(piece, place=number, unit="Segment")
                yield number, piece.split(separator)
                if piece.startswith("IEA"):
                    # What follows may declare other delimiters.
                    rest = terminator.join((*pieces[at + 1 :], rest))
                    break
            else:
                text = _following(source, rest, number + 1, terminator, note)
                continue
            text = _more(source, rest, number + 1)
            break


def _following(source: Source, rest: str, number: int, terminator: str, note: Callable[[], None]) -> str:
    """The begun segment and the next block of the file. There must be one, since the IEA is yet to come."""
    _bound(rest, number)
    block = source.block()
    if not block and _LAST_SEGMENT.fullmatch(rest.strip(_FILLER)):
        note()
        return rest.rstrip(_FILLER) + terminator
    if not block:
        raise _at(number, "cut_off", "the file ends here, before its IEA")
    return rest + block


def _more(source: Source, rest: str, number: int) -> str:
    """The rest, long enough for an ISA if the file is; "" if only filler is left."""
    while len(text := rest.lstrip(_FILLER)) < ISA_LENGTH and (block := source.block()):
        _bound(rest, number)
        rest += block
    return text


def _bound(rest: str, number: int) -> None:
    if len(rest) > LONGEST_LINE:
        raise _at(number, "line_too_long", f"longer than {LONGEST_LINE:,} characters, which no segment needs")


def _delimiters(text: str, number: int) -> tuple[str, str]:
    """The element separator and the segment terminator, at fixed places of the ISA."""
    if not text.startswith("ISA"):
        raise _at(number, "not_x12", "an ISA segment is expected here")
    if len(text) < ISA_LENGTH:
        raise _at(number, "cut_off", "the file ends within the ISA")
    separator, terminator = text[3], text[ISA_LENGTH - 1]
    widths = [len(element) for element in text[: ISA_LENGTH - 1].split(separator)]
    if widths != _ISA_WIDTHS or terminator == separator or terminator.isalnum() or separator.isalnum():
        message = "the ISA is damaged: it must have 16 elements of fixed length and a terminator"
        raise _at(number, "not_x12", message)
    return separator, terminator


class Envelope:
    """Checks that ISA/IEA, GS/GE and ST/SE stand in order and agree in counts and control numbers."""

    def __init__(self, on_wrong_count: Callable[[], None] | None = None) -> None:
        """A wrong count is refused, or told to `on_wrong_count`."""
        self._on_wrong_count = on_wrong_count
        self._level = 0
        self._control = ["", "", "", ""]  # the control number that opened each level
        self._count = [0, 0, 0, 0]  # how many were opened inside each level
        self._began_at = 0

    def check(self, number: int, segment: Segment) -> None:
        """Check one segment of an envelope. Raises Unreadable with its number."""
        tag = segment[0]
        level, next_level = _LEVELS[tag]
        if level != self._level:
            raise _at(number, "wrong_order", f"{tag} has no place here")
        if tag in _OPENS:
            self._open(number, segment, next_level)
        else:
            self._close(number, segment)
        self._level = next_level

    @property
    def is_in_group(self) -> bool:
        return self._level > _INTERCHANGE

    def check_in_transaction(self, number: int) -> None:
        if self._level != _TRANSACTION:
            raise _at(number, "wrong_order", "stands outside of any transaction (ST to SE)")

    def check_closed(self) -> None:
        if self._level:
            raise Unreadable("cut_off", "The file ends before its IEA.")

    def _open(self, number: int, segment: Segment, level: int) -> None:
        tag = segment[0]
        self._control[level] = element(segment, _OPENS[tag])
        self._count[level] = 0
        self._count[level - 1] += 1
        self._began_at = number
        if tag == "ST":
            is_ours = element(segment, 1) == "834" and (element(segment, 3) or GUIDE).startswith(GUIDE)
        else:
            is_ours = tag == "ISA" or element(segment, 8).startswith(GUIDE)
        if not is_ours:
            raise _at(number, "wrong_version", "not an 834 of version 005010X220A1")

    def _close(self, number: int, segment: Segment) -> None:
        tag = segment[0]
        counted = number - self._began_at + 1 if tag == "SE" else self._count[self._level]
        is_wrong = _whole_number(element(segment, 1)) != counted
        if is_wrong and self._on_wrong_count is not None:
            self._on_wrong_count()
        elif is_wrong:
            raise _at(
                number,
                "wrong_count",
                f"{tag}01 is not the number of {_WHAT_IS_COUNTED[tag]}, which is {counted}",
            )
        if element(segment, 2).lstrip("0") != self._control[self._level].lstrip("0"):
            raise _at(number, "wrong_count", f"{tag}02 is not the control number that was opened")


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
