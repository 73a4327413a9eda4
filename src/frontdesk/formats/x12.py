"""An 834 as it is written: segments, the envelopes around its transactions, and the families of INS
loops inside (docs/834.md).

Segments are counted from the first ISA of the file, which is 1. A family is a subscriber's loop
(INS*Y) with the loops of the following dependents. A tidy family is returned as text, so that an
unchanged family need not be split.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.eligibility.field_kinds import day_exists, x12_date
from frontdesk.formats.model import FileMode, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source, is_readable
from frontdesk.formats.x12_loop import MemberLoop, Segment, Transaction, element, read_loop

ISA_LENGTH = 106
_ISA_WIDTHS = [3, 2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1]  # without ISA16
LONGEST_SENDER = 15  # characters of GS02, by the guide
_FILLER = " \t\r\n\x1a\0"  # around interchanges of old systems
_LAST_SEGMENT = re.compile(r"IEA[^0-9A-Za-z][0-9]{1,5}[^0-9A-Za-z][0-9]{9}", re.IGNORECASE)
# Before one of these, the end of a line is the end of a segment.
_TAGS = "GS|ST|BGN|REF|DTP|N1|INS|NM1|PER|N3|N4|DMG|HD|SE|GE|IEA"
# The segments of a member. Another one ends a family, or is untidy.
_MEMBER_TAGS = "INS|REF|DTP|NM1|PER|N3|N4|DMG|HD|EC|ICM|AMT|HLH|LUI|DSB|IDC|LX|COB|PLA|LS|LE"
MEMBER_SEGMENTS_LIMIT = 10_000

# The earlier guide has the same rules for all segments that are read here.
KIND = "BE"
GUIDE = "005010X220"
OLDER_GUIDE = "004010X095"
_VERSIONS = {"005010", "004010"}

# Each tag: the level at which it may stand, and the level to which it leads.
_LEVELS = {"ISA": (0, 1), "GS": (1, 2), "ST": (2, 3), "SE": (3, 2), "GE": (2, 1), "IEA": (1, 0)}
_INTERCHANGE = 1
_TEST = "T"
_TRANSACTION = 3
_OPENS = {"ISA": 13, "GS": 6, "ST": 2}  # the element with the control number
_WHAT_IS_COUNTED = {"SE": "segments", "GE": "transactions", "IEA": "groups"}
_SEND_AGAIN = "The sender has to send the file again"
_LENIENT = 'If the sender always does so, say so in the mapping: {"834": {"counts": "lenient"}}'

MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}

PlacedLoop = tuple[int, MemberLoop]  # with the number of its INS


def at_segment(number: int, code: Code, message: str = "") -> Unreadable:
    return Unreadable(code, message, place=number, unit="Segment")


class FamilyText(NamedTuple):
    """The segments of a family, without the last terminator."""

    text: str
    separator: str
    terminator: str


# With its number; the first one of a tidy family stands for all of them.
NumberedSegment = tuple[int, Segment, FamilyText | None]


@dataclass(frozen=True, slots=True)
class Family:
    """A family inside its transaction; `place` is the number of its first segment, `ordinal` that of
    its first INS in the transaction.
    """

    place: int
    segments: FamilyText
    transaction: Transaction
    ordinal: int

    def __len__(self) -> int:
        text, separator, terminator = self.segments
        return text.count(f"{terminator}INS{separator}") + 1

    def places(self) -> list[int]:
        """The number of each INS."""
        text, separator, terminator = self.segments
        before_last = text.split(f"{terminator}INS{separator}")[:-1]
        return [
            *accumulate((loop.count(terminator) + 1 for loop in before_last), initial=self.place)
        ]

    def loops(self) -> Iterator[PlacedLoop]:
        text, separator, terminator = self.segments
        begin = f"INS{separator}"
        loops = text.removeprefix(begin).split(terminator + begin)
        placed = zip(self.places(), loops, strict=True)
        for ordinal, (place, text_of_loop) in enumerate(placed, self.ordinal):
            whole = begin + text_of_loop
            segments = [segment.split(separator) for segment in whole.split(terminator)]
            loop = read_loop(segments, self.transaction)
            loop.ordinal = ordinal
            yield place, loop


class SegmentReader:
    """Every segment with its number; a tidy family as one text, with the number of its first
    segment.

    Line breaks between segments are ignored, and so are space, blank segments, a missing terminator
    at the end of a line or of the file, tags in small letters and an ISA that has lost its padding,
    which `note` is told of. Raises Unreadable.
    """

    def __init__(self, source: Source, note: Callable[[str], None] = lambda _what: None) -> None:
        self._source = source
        self._note = note
        self._number = 0

    def __iter__(self) -> Iterator[NumberedSegment]:
        text = ""
        while text := self._more(text):
            self._separator, self._terminator = self._delimiters(text)
            text = yield from self._interchange(text)

    def _interchange(self, text: str) -> Generator[NumberedSegment, None, str]:
        """The segments up to the IEA; returns what follows, which may declare other delimiters."""
        separator = self._separator
        terminator = self._terminator
        family_begin = re.compile(f"{re.escape(terminator)}(?=INS{re.escape(separator)}Y)")
        self._stray = re.compile(
            f"{re.escape(terminator)}(?!(?:{_MEMBER_TAGS}){re.escape(separator)})"
        )
        while True:
            # The begun segment waits for the next block: what follows a line break tells whether it
            # ends there.
            whole, _, begun = text.rpartition(terminator)
            *parts, last = family_begin.split(self._without_breaks(whole))
            # it may go on in the next block
            given = [*parts, last]
            is_held = self._is_family(last)
            for at, part in enumerate(parts if is_held else given):
                if at < len(parts) and self._is_family(part):
                    yield self._number + 1, ["INS"], FamilyText(part, separator, terminator)
                    self._number += part.count(terminator) + 1
                elif (rest := (yield from self._segments(part))) is not None:
                    return terminator.join((*rest, *given[at + 1 :], begun))
            block = self._block(begun)
            if not block and _LAST_SEGMENT.fullmatch(begun.strip(_FILLER)):
                self._note("no terminator at its end")
                begun = begun.rstrip(_FILLER)
                block = terminator
            if not block:
                yield from self._segments(last if is_held else "")
                raise at_segment(
                    self._number + 1, codes.files.CUT_OFF, "the file ends here, before its IEA"
                )
            text = f"{last}{terminator}{begun}{block}" if is_held else begun + block

    def _is_family(self, part: str) -> bool:
        """True if it has only tidy segments of members, the first of them a subscriber's INS."""
        return (
            part.startswith(f"INS{self._separator}Y")
            and len(part) < LONGEST_LINE
            and self._stray.search(part) is None
            and is_readable(part)
        )

    def _segments(self, part: str) -> Generator[NumberedSegment, None, list[str] | None]:
        """Returns what follows an IEA; None without one."""
        pieces = part.split(self._terminator) if part else []
        for at, piece in enumerate(pieces):
            if not piece or piece[0] <= " ":
                self._note("space or blank segments between segments")
                piece = piece.lstrip()  # noqa: PLW2901 - the segment begins there
                if not piece:
                    continue
            self._number += 1
            if not piece.isascii():
                self._source.check(piece, place=self._number, unit="Segment")
            elements = piece.split(self._separator)
            if not elements[0].isupper():
                self._note("tags in small letters")
                elements[0] = elements[0].upper()
            yield self._number, elements, None
            if elements[0] == "IEA":
                return pieces[at + 1 :]
        return None

    def _more(self, rest: str) -> str:
        """The rest, long enough for an ISA if the file is; "" if only filler and blank segments are
        left.
        """
        filler = _FILLER + (self._terminator if self._number else "")
        while len(text := rest.lstrip(filler)) < ISA_LENGTH and (block := self._block(rest)):
            rest += block
        return text

    def _block(self, begun: str) -> str:
        """The next block of the file, behind a begun segment."""
        if len(begun) > LONGEST_LINE:
            message = f"longer than {LONGEST_LINE:,} characters, which no segment needs"
            raise at_segment(self._number + 1, codes.files.LINE_TOO_LONG, message)
        return self._source.block()

    def _without_breaks(self, text: str) -> str:
        """The text without line breaks, of which those after a segment without an end and before
        the tag of another one become a terminator.
        """
        separator = self._separator
        terminator = self._terminator
        breaks = "\r\n".replace(terminator, "")
        for line_end in (breaks, breaks[-1]):
            text = text.replace(terminator + line_end, terminator)
        text = text.lstrip(breaks)  # behind the terminator before it
        if any(map(text.__contains__, breaks)):
            before = rf"(?<=[^ \t\r\n{re.escape(terminator)}])"
            tag = rf"(?:{_TAGS}){re.escape(separator)}"
            missing = rf"{before}[ \t]*[{breaks}][ \t{breaks}]*(?={tag})"
            text, count = re.subn(missing, lambda _: terminator, text)
            if count:
                self._note("lines without a terminator")
            text = text.translate(dict.fromkeys(map(ord, breaks)))
        return text

    def _delimiters(self, text: str) -> tuple[str, str]:
        """The element separator and the segment terminator, at fixed places of the ISA. Where it
        has lost or gained spaces, GS must follow.
        """
        number = self._number + 1
        if text[:3].upper() != "ISA":
            message = "an ISA segment is expected here: send the file as it was written"
            raise at_segment(number, codes.files.NOT_X12, message)
        if len(text) < ISA_LENGTH:
            raise at_segment(number, codes.files.CUT_OFF, "the file ends within the ISA")
        separator = text[3]
        *fixed, rest = text[: 2 * ISA_LENGTH].split(separator, len(_ISA_WIDTHS))
        last = rest[:1]
        terminator = rest[1:2]
        is_padded = [len(each) for each in fixed] == _ISA_WIDTHS
        if not is_padded:
            self._note("an ISA without its padding")
        fits = len(fixed) == len(_ISA_WIDTHS) and all(
            len(each.strip()) <= width for each, width in zip(fixed, _ISA_WIDTHS, strict=True)
        )
        is_followed = (
            rest[2:].lstrip(_FILLER).upper().startswith(("GS" + separator, "TA1" + separator))
        )
        are_visible = " " not in (separator, last, terminator)
        are_signs = separator not in (last, terminator) and not any(
            map(str.isalnum, (separator, terminator))
        )
        if not are_signs or not (is_padded or (fits and is_followed and are_visible)):
            message = (
                "the ISA is damaged: it must have 16 elements of fixed length, filled up with "
                "spaces, and a terminator; send the file as it was written, not as the text of a "
                "mail"
            )
            raise at_segment(number, codes.files.NOT_X12, message)
        return separator, terminator


class Envelope:
    """Checks that ISA/IEA, GS/GE and ST/SE stand in order and agree in counts and control numbers."""

    def __init__(self, note: Callable[[str], None], *, refuses_counts: bool = True) -> None:
        """A wrong count is refused or reported to `note`; an older version is reported."""
        self._note = note
        self._refuses_counts = refuses_counts
        self.level = 0
        self._control = ["", "", "", ""]  # the control number that opened each level
        self._count = [0, 0, 0, 0]  # how many were opened inside each level
        self._began_at = 0
        self.day = ""  # on which the group was made, as YYYY-MM-DD
        self.sender = ""  # GS02 of the first group of 834s
        self.usage = ""  # ISA15: P for production, T for a test
        self.is_foreign = False  # the group is of another kind, such as acknowledgements (999)

    def check(self, number: int, segment: Segment) -> None:
        """Check one segment of an envelope. Raises Unreadable with its number."""
        tag = segment[0]
        level, next_level = _LEVELS[tag]
        if level != self.level:
            raise at_segment(number, codes.files.WRONG_ORDER, f"{tag} has no place here")
        self.level = next_level
        if tag not in _OPENS:
            self._check_end(number, segment, level)
            return
        self._control[next_level] = element(segment, _OPENS[tag])
        self._count[next_level] = 0
        self._count[level] += 1
        self._began_at = number
        if tag == "ISA":
            self._check_usage(number, segment)
        else:
            self._check_version(number, segment)

    def check_in_transaction(self, number: int) -> None:
        if self.level != _TRANSACTION:
            raise at_segment(
                number, codes.files.WRONG_ORDER, "stands outside of any transaction (ST to SE)"
            )

    def _check_usage(self, number: int, segment: Segment) -> None:
        usage = element(segment, 15).upper()
        if self.usage not in ("", usage):
            message = (
                "ISA15 differs among the interchanges of the file: send them as separate files"
            )
            raise at_segment(number, codes.files.MIXED_PURPOSES, message)
        self.usage = usage

    def _check_version(self, number: int, segment: Segment) -> None:
        """A group may name the version only, or be of another kind; a transaction names the guide,
        or nothing.
        """
        if segment[0] == "GS":
            what = "GS08"
            version = element(segment, 8).upper()
            is_ours = version.startswith((GUIDE, OLDER_GUIDE))
            self.day = x12_date(element(segment, 4))
            self.is_foreign = element(segment, 1).upper() not in ("", KIND) and not is_ours
            if not (self.sender or self.is_foreign):
                self.sender = element(segment, 2)[:LONGEST_SENDER]
            if not version.startswith(GUIDE):
                self._note(f"another version than {GUIDE}A1 (GS08)")
            is_ours |= version in _VERSIONS
        else:
            what = "ST01, ST03"
            version = element(segment, 3).upper()
            is_ours = not version or version.startswith((GUIDE, OLDER_GUIDE))
            is_ours &= element(segment, 1) == "834"
        if not (is_ours or self.is_foreign):
            message = f"not an 834 of version 005010X220A1, or 004010X095A1: {what} says otherwise"
            raise at_segment(number, codes.files.WRONG_VERSION, message)

    def _check_end(self, number: int, segment: Segment, level: int) -> None:
        tag = segment[0]
        counted = number - self._began_at + 1 if tag == "SE" else self._count[level]
        if not re.fullmatch(f"0*{counted}", element(segment, 1)):
            if self._refuses_counts:
                what = _WHAT_IS_COUNTED[tag]
                message = f"{tag}01 is not the number of {what}, which is {counted}. {_LENIENT}"
                raise at_segment(number, codes.files.WRONG_COUNT, message)
            self._note(f"a wrong count ({tag}01)")
        if element(segment, 2).lstrip("0") != self._control[level].lstrip("0"):
            # A group or an interchange with another number may be put together of two files.
            if tag != "SE" or self._refuses_counts:
                remedy = _LENIENT if tag == "SE" else _SEND_AGAIN
                message = f"{tag}02 is not the control number that was opened. {remedy}"
                raise at_segment(number, codes.files.WRONG_COUNT, message)
            self._note("another control number in SE02 than in ST02")


class X12Reader:
    """One pass over the file: `begin` once, then `members`. A `mode` overrides BGN08; with
    `verifies_full`, BGN08 = 4 is a full file; wrong counts are refused unless it `is_lenient`
    (docs/834.md).
    """

    def __init__(
        self,
        source: Source,
        mode: FileMode | None,
        *,
        verifies_full: bool = False,
        is_lenient: bool = False,
    ) -> None:
        self._asked_mode = mode
        self._mode = mode
        self._modes = MODES | ({"4": FileMode.FULL} if verifies_full else {})
        self._envelope = Envelope(self.note, refuses_counts=not is_lenient)
        self._transaction: Transaction | None = None
        self._transactions = 0  # so far
        self._members = 0  # of the transaction so far
        self._segments = iter(SegmentReader(source, self.note))
        self.untidy = dict[str, None]()  # the small faults of the file so far, each once

    @property
    def is_test(self) -> bool:
        return self._envelope.usage == _TEST

    @property
    def sender(self) -> str:
        """GS02 of the first group; "" before it was read, or if it is blank."""
        return self._envelope.sender

    def note(self, fault: str) -> None:
        """Note a small fault with a clear meaning; `fault` is what the file has, in words."""
        self.untidy[fault] = None

    def begin(self) -> Transaction:
        """The first transaction. Without a mode, all of them must have the same BGN08. Raises
        Unreadable.
        """
        for number, segment, _ in self._segments:
            self._outside(number, segment)
            if self._transaction is not None:
                return self._transaction
        raise Unreadable(codes.files.NO_ROWS)

    def members(self) -> Iterator[Family | PlacedLoop]:
        """Each family that is tidy, and each INS loop besides, in the order of the file. Raises
        Unreadable.
        """
        member: list[Segment] = []
        place = 0
        has_members = False
        for number, segment, family in self._segments:
            tag = segment[0]
            transaction = self._transaction
            if member and tag != "INS" and tag not in _LEVELS:
                member.append(segment)
                if number - place >= MEMBER_SEGMENTS_LIMIT:
                    message = (
                        f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    )
                    raise at_segment(place, codes.files.LINE_TOO_LONG, message)
                continue
            if member and transaction is not None:
                loop = read_loop(member, transaction)
                loop.ordinal = self._members
                yield place, loop
            member = []
            if tag != "INS" or transaction is None:
                self._outside(number, segment)
                continue
            self._envelope.check_in_transaction(number)
            has_members = True
            if family is not None:
                item = Family(number, family, transaction, self._members + 1)
                self._members += len(item)
                yield item
            else:
                self._members += 1
                place = number
                member = [segment]
        if not has_members:
            raise Unreadable(codes.files.NO_ROWS)

    def loops(self) -> Iterator[PlacedLoop]:
        """As `members`, all of them loops."""
        for item in self.members():
            yield from item.loops() if isinstance(item, Family) else [item]

    def _outside(self, number: int, segment: Segment) -> None:
        """Take a segment that stands outside of members."""
        tag = segment[0]
        transaction = self._transaction
        if tag in _LEVELS:
            self._envelope.check(number, segment)
            if tag in ("ST", "GS"):
                self._transaction = None
            if tag == "ST":
                self._transactions += 1
                self._members = 0
            return
        if tag == "TA1" and self._envelope.level <= _INTERCHANGE:
            self.note("an acknowledgement (TA1)")
            return
        self._envelope.check_in_transaction(number)
        if self._envelope.is_foreign:
            return
        if tag == "INS":
            raise at_segment(number, codes.files.WRONG_ORDER, "INS stands before BGN")
        if tag == "BGN":
            self._transaction = self._begin(number, segment)
        elif transaction is not None and tag == "REF":
            transaction.references[element(segment, 1).upper()] = element(segment, 2)
        elif transaction is not None and tag == "N1" and element(segment, 1).upper() == "IN":
            transaction.payor_name = element(segment, 2)

    def _begin(self, number: int, segment: Segment) -> Transaction:
        mode = self._asked_mode or self._declared_mode(segment)
        if mode is None:
            raise at_segment(number, codes.files.UNKNOWN_PURPOSE)
        if self._mode not in (None, mode):
            raise at_segment(number, codes.files.MIXED_PURPOSES)
        self._mode = mode
        day = x12_date(element(segment, 3))
        if not day:
            self.note("no date in BGN03")
            day = self._envelope.day
        if not (re.fullmatch("[0-9-]{10}", day) and day_exists(day)):
            # Members that are ended without a date of their own end on this day.
            message = "BGN03, the date of the file, must be a real date, CCYYMMDD"
            raise at_segment(number, codes.files.WRONG_DATE, message)
        return Transaction(mode, day, number=self._transactions)

    def _declared_mode(self, segment: Segment) -> FileMode | None:
        """BGN08, or an earlier element if the sender has left some out. Without any, the file is a
        change.
        """
        if purpose := element(segment, 8).upper():
            return self._modes.get(purpose)
        self.note("no BGN08")
        early = (self._modes.get(element(segment, position).upper()) for position in (7, 6))
        return next(filter(None, early), FileMode.CHANGE)
