"""Rows of an 834: the members of its interchanges, groups and transactions (docs/834.md)."""

from collections.abc import Iterator
from datetime import date

from frontdesk.eligibility.kinds import x12_date
from frontdesk.files.model import FileHeader, FileMapping, FileMode, Format, Row, Unreadable
from frontdesk.files.readers.source import Source
from frontdesk.files.readers.x12_member import MemberReader, Transaction
from frontdesk.files.readers.x12_segments import ENVELOPES, Envelope, Segment, element, read_segments

MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
MEMBER_SEGMENTS_LIMIT = 10_000
_ENDS_A_MEMBER = ENVELOPES | {"INS"}


def read_x12(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header, from the first BGN, and the rows. All transactions must have the same BGN08. Raises Unreadable."""
    reader = _X12Reader(source, mapping)
    return reader.header(), reader.rows()


class _X12Reader:
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._segments = read_segments(source)
        self._envelope = Envelope()
        self._reader = MemberReader(mapping)
        self._transaction: Transaction | None = None
        self._mode: FileMode | None = None

    def header(self) -> FileHeader:
        for number, segment in self._segments:
            self._outside(number, segment)
            if self._transaction is not None:
                return FileHeader(Format.X12, self._transaction.mode, self._transaction.file_date)
        raise Unreadable("no_rows", "The file has no transaction.")

    def rows(self) -> Iterator[Row]:
        member: list[Segment] = []
        place, found, read = 0, False, self._reader.read
        for number, segment in self._segments:
            tag = segment[0]
            if member and tag not in _ENDS_A_MEMBER:
                member.append(segment)
                if len(member) > MEMBER_SEGMENTS_LIMIT:
                    message = f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    raise Unreadable("line_too_long", message, place=place, unit="Segment")
                continue
            if member and self._transaction is not None:
                yield read(place, member, self._transaction)
            member = []
            if tag == "INS" and self._transaction is not None:
                self._envelope.check_in_transaction(number)
                found, place, member = True, number, [segment]
            else:
                self._outside(number, segment)
        self._envelope.check_closed()
        if not found:
            raise Unreadable("no_rows", "The file has no member (INS).")

    def _outside(self, number: int, segment: Segment) -> None:
        """Take a segment that stands outside of members."""
        tag = segment[0]
        if tag in ENVELOPES:
            self._envelope.check(number, segment)
            if tag == "ST":
                self._transaction = None
            return
        self._envelope.check_in_transaction(number)
        if tag == "INS":
            raise Unreadable("wrong_order", "INS stands before BGN", place=number, unit="Segment")
        if tag == "BGN":
            self._transaction = self._begin(number, segment)
        elif self._transaction is not None:
            if tag == "REF":
                self._transaction.references[element(segment, 1)] = element(segment, 2)
            elif tag == "N1" and element(segment, 1) == "IN":
                self._transaction.payor_name = element(segment, 2)

    def _begin(self, number: int, segment: Segment) -> Transaction:
        mode = MODES.get(element(segment, 8))
        if mode is None:
            message = "BGN08 must be 2 (change), 4 (compare) or RX (full)"
            raise Unreadable("unknown_purpose", message, place=number, unit="Segment")
        if self._mode not in (None, mode):
            message = "BGN08 differs from that of the first transaction; send them as files of their own"
            raise Unreadable("mixed_purposes", message, place=number, unit="Segment")
        self._mode = mode
        day = x12_date(element(segment, 3))
        if not _is_date(day):
            # Members that are ended without a date of their own end on this day.
            message = "BGN03, the date of the file, must be a real date, CCYYMMDD"
            raise Unreadable("wrong_date", message, place=number, unit="Segment")
        return Transaction(mode, day)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
