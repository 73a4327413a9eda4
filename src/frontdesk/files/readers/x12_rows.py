"""Rows of an 834: walks interchanges, groups and transactions and cuts them into members; what a member says is x12_member's."""

from collections.abc import Iterator
from datetime import date

from frontdesk.eligibility.kinds import x12_date
from frontdesk.files.model import FileHeader, FileMapping, FileMode, Format, Row, Unreadable
from frontdesk.files.readers.source import Source
from frontdesk.files.readers.x12_envelope import ENVELOPES, Envelope, element
from frontdesk.files.readers.x12_member import MemberReader, Transaction
from frontdesk.files.readers.x12_segments import Segment, read_segments

PURPOSES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
MOST_SEGMENTS_OF_A_MEMBER = 10_000
_ENDS_A_MEMBER = ENVELOPES | {"INS"}


def read_x12(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The head, from the first transaction's BGN, and the rows. Every transaction must have the same purpose."""
    walk = _Walk(source, mapping)
    return walk.head(), walk.rows()


class _Walk:
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._segments = read_segments(source)
        self._envelope = Envelope()
        self._reader = MemberReader(mapping)
        self._transaction: Transaction | None = None
        self._purpose: FileMode | None = None

    def head(self) -> FileHeader:
        for number, segment in self._segments:
            self._step(number, segment)
            if self._transaction is not None:
                return FileHeader(Format.X12, self._transaction.purpose, self._transaction.file_date)
        raise Unreadable("no_rows", "The file has no transaction.")

    def rows(self) -> Iterator[Row]:
        member: list[Segment] = []
        place, found, read = 0, False, self._reader.read
        for number, segment in self._segments:
            tag = segment[0]
            if member and tag not in _ENDS_A_MEMBER:
                member.append(segment)
                if len(member) > MOST_SEGMENTS_OF_A_MEMBER:
                    message = f"a member of more than {MOST_SEGMENTS_OF_A_MEMBER:,} segments begins here"
                    raise Unreadable("line_too_long", message, place=place, unit="Segment")
                continue
            if member and self._transaction is not None:
                yield read(place, member, self._transaction)
            member = []
            if tag == "INS" and self._transaction is not None:
                self._envelope.must_be_in_transaction(number)
                found, place, member = True, number, [segment]
            else:
                self._step(number, segment)
        self._envelope.must_be_closed()
        if not found:
            raise Unreadable("no_rows", "The file has no member (INS).")

    def _step(self, number: int, segment: Segment) -> None:
        """What stands outside of members."""
        tag = segment[0]
        if tag in ENVELOPES:
            self._envelope.step(number, segment)
            if tag == "ST":
                self._transaction = None
            return
        self._envelope.must_be_in_transaction(number)
        if tag == "INS":
            raise Unreadable("wrong_order", "INS stands before BGN", place=number, unit="Segment")
        if tag == "BGN":
            self._transaction = self._begun(number, segment)
        elif self._transaction is not None:
            if tag == "REF":
                self._transaction.references[element(segment, 1)] = element(segment, 2)
            elif tag == "N1" and element(segment, 1) == "IN":
                self._transaction.payor_name = element(segment, 2)

    def _begun(self, number: int, segment: Segment) -> Transaction:
        purpose = PURPOSES.get(element(segment, 8))
        if purpose is None:
            message = "BGN08 must be 2 (change), 4 (compare) or RX (full)"
            raise Unreadable("unknown_purpose", message, place=number, unit="Segment")
        if self._purpose not in (None, purpose):
            message = "BGN08 differs from that of the first transaction; send them as files of their own"
            raise Unreadable("mixed_purposes", message, place=number, unit="Segment")
        self._purpose = purpose
        day = x12_date(element(segment, 3))
        if not _is_date(day):
            # It is the last day of members who are ended without a date of their own.
            message = "BGN03, the date of the file, must be a real date, CCYYMMDD"
            raise Unreadable("wrong_date", message, place=number, unit="Segment")
        return Transaction(purpose, day)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
