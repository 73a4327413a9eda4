"""An 834 as it is written: segments, the envelopes around its transactions, and the families of INS loops inside (docs/834.md).

Segments are counted from the first ISA of the file, which is 1. A family is a subscriber's loop (INS*Y) with those of the
dependents behind it. It is given as text where it is tidy, so that one that was read before need not be split again.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from frontdesk.eligibility.fields import x12_date
from frontdesk.formats.model import FileMode, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.formats.x12_loop import MemberLoop, Segment, Transaction, element, read_loop

ISA_LENGTH = 106
_ISA_ELEMENTS = 16
_FILLER = " \t\r\n\x1a\0"  # what old systems put around an interchange
_LAST_SEGMENT = re.compile(r"IEA[^0-9A-Za-z][0-9]{1,5}[^0-9A-Za-z][0-9]{9}", re.IGNORECASE)
# Before one of these, the end of a line is the end of a segment.
_TAGS = "GS|ST|BGN|REF|DTP|N1|INS|NM1|PER|N3|N4|DMG|HD|SE|GE|IEA"
_ISA_WIDTHS = [3, 2, 10, 2, 10, 2, 15, 2, 15, 6, 4, 1, 5, 9, 1, 1, 1]


# The segments of a member. Another one ends a family, or is untidy.
_MEMBER_TAGS = "INS|REF|DTP|NM1|PER|N3|N4|DMG|HD|EC|ICM|AMT|HLH|LUI|DSB|IDC|LX|COB|PLA|LS|LE"
MEMBER_SEGMENTS_LIMIT = 10_000

KIND, GUIDE = "BE", "005010X220"
# The guide before says the same of all that is read here.
OLDER_GUIDE = "004010X095"
_VERSIONS = {"005010", "004010"}

# Each tag: the level at which it may stand, and the level to which it leads.
_LEVELS = {"ISA": (0, 1), "GS": (1, 2), "ST": (2, 3), "SE": (3, 2), "GE": (2, 1), "IEA": (1, 0)}
_INTERCHANGE, _TRANSACTION = 1, 3
_OPENS = {"ISA": 13, "GS": 6, "ST": 2}  # the element with the control number
_WHAT_IS_COUNTED = {"SE": "segments", "GE": "transactions", "IEA": "groups"}
_LENIENT = 'If the sender counts wrongly, say so in the mapping: {"834": {"counts": "lenient"}}'
ENVELOPES = frozenset(_LEVELS)


MODES = {"2": FileMode.CHANGE, "4": FileMode.COMPARE, "RX": FileMode.FULL}
_ENDS_A_MEMBER = ENVELOPES | {"INS"}

PlacedLoop = tuple[int, MemberLoop]  # with the number of its INS


def at_segment(number: int, code: str, message: str) -> Unreadable:
    return Unreadable(code, message, place=number, unit="Segment")


class FamilyText(NamedTuple):
    """The segments of a family, without the last terminator."""

    text: str
    separator: str
    terminator: str


@dataclass(frozen=True, slots=True)
class Family:
    """A family inside its transaction; `place` is the number of its first segment."""

    place: int
    segments: FamilyText
    transaction: Transaction

    def places(self) -> list[int]:
        """The number of each INS."""
        text, separator, terminator = self.segments
        begin, places = terminator + "INS" + separator, [self.place]
        for loop in text.split(begin)[:-1]:
            places.append(places[-1] + loop.count(terminator) + 1)
        return places

    def loops(self) -> Iterator[PlacedLoop]:
        text, separator, terminator = self.segments
        member: list[Segment] = []
        place = self.place
        for number, piece in enumerate(text.split(terminator), self.place):
            segment = piece.split(separator)
            if member and segment[0] == "INS":
                yield place, read_loop(member, self.transaction)
                place, member = number, []
            member.append(segment)
        yield place, read_loop(member, self.transaction)


class SegmentReader:
    """Every segment with its number; where `wants_family` is true, a family as one text.

    Line breaks between segments are ignored, and so are space, blank segments, a missing terminator at the end of a line or of
    the file, tags in small letters and an ISA that has lost its padding, which `note` is told of. Raises Unreadable.
    """

    def __init__(
        self,
        source: Source,
        note: Callable[[], None] = lambda: None,
        wants_family: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source, self._note, self._wants_family = source, note, wants_family
        self._number = 0

    def __iter__(self) -> Iterator[tuple[int, Segment | FamilyText]]:
        text = self._more("")
        while text:
            separator, terminator = _delimiters(text, self._number + 1, self._note)
            self._separator, self._terminator = separator, terminator
            self._begin = f"INS{separator}Y"
            self._ends = re.compile(f"{re.escape(terminator)}(?={re.escape(self._begin)})")
            self._stray = re.compile(f"{re.escape(terminator)}(?!(?:{_MEMBER_TAGS}){re.escape(separator)})")
            text = self._more((yield from self._interchange(text)))

    def _interchange(self, text: str) -> Generator[tuple[int, Segment | FamilyText], None, str]:
        """The segments up to the IEA; returns what follows, which may declare other delimiters."""
        terminator = self._terminator
        held = ""
        while True:
            # The begun segment waits for the next block: what follows a line break tells whether it ends there.
            whole, _, begun = text.rpartition(terminator)
            whole = _without_breaks(whole, self._separator, terminator, self._note)
            *parts, last = self._ends.split(terminator.join(filter(None, (held, whole))))
            # The last family may go on in the next block.
            held = last if self._wants_family() and self._is_family(last) else ""
            for at, part in enumerate(parts if held else (*parts, last)):
                if at < len(parts) and self._is_family(part) and self._wants_family():
                    yield self._number + 1, FamilyText(part, self._separator, terminator)
                    self._number += part.count(terminator) + 1
                elif (rest := (yield from self._segments(part))) is not None:
                    following = parts[at + 1 :] if held else [*parts, last][at + 1 :]
                    return terminator.join((*rest, *following, *filter(None, [held]), begun))
            text = self._following(begun)

    def _is_family(self, part: str) -> bool:
        """Whether it holds nothing but tidy segments of members, the first of which is a subscriber's INS."""
        return (
            part.startswith(self._begin)
            and len(part) < LONGEST_LINE
            and self._stray.search(part) is None
            and self._source.can_read(part)
        )

    def _segments(self, part: str) -> Generator[tuple[int, Segment], None, list[str] | None]:
        """Returns what follows an IEA; None without one."""
        is_ascii, pieces = part.isascii(), part.split(self._terminator) if part else []
        for at, piece in enumerate(pieces):
            if not piece or piece[0] <= " ":
                self._note()
                piece = piece.lstrip()  # noqa: PLW2901 - the segment begins there
                if not piece:
                    continue
            self._number += 1
            if not is_ascii and not piece.isascii():
                self._source.check(piece, place=self._number, unit="Segment")
            elements = piece.split(self._separator)
            if not elements[0].isupper():
                self._note()
                elements[0] = elements[0].upper()
            yield self._number, elements
            if elements[0] == "IEA":
                return pieces[at + 1 :]
        return None

    def _following(self, begun: str) -> str:
        """The begun segment and the next block of the file. There must be one, since the IEA is yet to come."""
        self._bound(begun)
        block = self._source.block()
        if not block and _LAST_SEGMENT.fullmatch(begun.strip(_FILLER)):
            self._note()
            return begun.rstrip(_FILLER) + self._terminator
        if not block:
            raise at_segment(self._number + 1, "cut_off", "the file ends here, before its IEA")
        return begun + block

    def _more(self, rest: str) -> str:
        """The rest, long enough for an ISA if the file is; "" if only filler and blank segments are left."""
        filler = _FILLER + (self._terminator if self._number else "")
        while len(text := rest.lstrip(filler)) < ISA_LENGTH and (block := self._source.block()):
            self._bound(rest)
            rest += block
        return text

    def _bound(self, rest: str) -> None:
        if len(rest) > LONGEST_LINE:
            message = f"longer than {LONGEST_LINE:,} characters, which no segment needs"
            raise at_segment(self._number + 1, "line_too_long", message)


def _without_breaks(text: str, separator: str, terminator: str, note: Callable[[], None]) -> str:
    """The text without line breaks, of which those after a segment without an end and before the tag of another one become a
    terminator."""
    for line_end in ("\r\n", "\n", "\r"):
        if terminator not in line_end:
            text = text.replace(terminator + line_end, terminator)
    breaks = "\r\n".replace(terminator, "")
    text = text.lstrip(breaks)  # behind the terminator before it
    if any(map(text.__contains__, breaks)):
        before, tag = rf"(?<=[^ \t\r\n{re.escape(terminator)}])", rf"(?:{_TAGS}){re.escape(separator)}"
        missing = rf"{before}[ \t]*[{breaks}][ \t{breaks}]*(?={tag})"
        text, count = re.subn(missing, lambda _: terminator, text)
        if count:
            note()
        for character in breaks:
            text = text.replace(character, "")
    return text


def _delimiters(text: str, number: int, note: Callable[[], None]) -> tuple[str, str]:
    """The element separator and the segment terminator, at fixed places of the ISA."""
    if text[:3].upper() != "ISA":
        raise at_segment(number, "not_x12", "an ISA segment is expected here")
    if len(text) < ISA_LENGTH:
        raise at_segment(number, "cut_off", "the file ends within the ISA")
    separator, terminator = text[3], text[ISA_LENGTH - 1]
    widths = [len(element) for element in text[: ISA_LENGTH - 1].split(separator)]
    if (
        widths == _ISA_WIDTHS
        and terminator != separator
        and not (terminator.isalnum() or separator.isalnum())
    ):
        return separator, terminator
    found = _without_padding(text, separator)
    if not found:
        message = (
            "the ISA is damaged: it must have 16 elements of fixed length, filled up with spaces, and a terminator; "
            "send the file as it was written, not as the text of a mail"
        )
        raise at_segment(number, "not_x12", message)
    note()
    return separator, found


def _without_padding(text: str, separator: str) -> str:
    """The terminator of an ISA that has lost or gained spaces; "" if it is not certain: GS must follow."""
    elements = text[: 2 * ISA_LENGTH].split(separator, _ISA_ELEMENTS)
    if separator.isalnum() or separator.isspace() or len(elements) <= _ISA_ELEMENTS:
        return ""
    *fixed, rest = elements
    terminator = rest[1:2]
    fits = all(len(each.strip()) <= width for each, width in zip(fixed, _ISA_WIDTHS, strict=False))
    follows = rest[2:].lstrip(_FILLER).upper().startswith(("GS" + separator, "TA1" + separator))
    is_sign = terminator not in ("", separator, " ") and not terminator.isalnum()
    return (
        terminator if fits and follows and is_sign and rest[0] != separator and not rest[0].isspace() else ""
    )


class Envelope:
    """Checks that ISA/IEA, GS/GE and ST/SE stand in order and agree in counts and control numbers."""

    def __init__(self, note: Callable[[], None], *, refuses_counts: bool = True) -> None:
        """A wrong count is refused, or `note` is told of it, as it is of an older version."""
        self._note, self._refuses_counts = note, refuses_counts
        self._level = 0
        self._control = ["", "", "", ""]  # the control number that opened each level
        self._count = [0, 0, 0, 0]  # how many were opened inside each level
        self._began_at = 0
        self.day = ""  # on which the group was made, as YYYY-MM-DD
        self.is_foreign = False  # the group is of another kind, such as acknowledgements (999)

    def check(self, number: int, segment: Segment) -> None:
        """Check one segment of an envelope. Raises Unreadable with its number."""
        tag = segment[0]
        level, next_level = _LEVELS[tag]
        if level != self._level:
            raise at_segment(number, "wrong_order", f"{tag} has no place here")
        if tag in _OPENS:
            self._open(number, segment, next_level)
        else:
            self._close(number, segment)
        self._level = next_level

    @property
    def is_in_group(self) -> bool:
        return self._level > _INTERCHANGE

    @property
    def is_in_transaction(self) -> bool:
        return self._level == _TRANSACTION

    def check_in_transaction(self, number: int) -> None:
        if not self.is_in_transaction:
            raise at_segment(number, "wrong_order", "stands outside of any transaction (ST to SE)")

    def check_closed(self) -> None:
        if self._level:
            raise Unreadable("cut_off", "The file ends before its IEA.")

    def _open(self, number: int, segment: Segment, level: int) -> None:
        # A group may name the version only; the transaction names the guide.
        tag = segment[0]
        self._control[level] = element(segment, _OPENS[tag])
        self._count[level] = 0
        self._count[level - 1] += 1
        self._began_at = number
        if tag == "GS":
            self.day = x12_date(element(segment, 4))
            kind = element(segment, 1).upper()
            self.is_foreign = kind not in ("", KIND) and not element(segment, 8).upper().startswith(
                (GUIDE, OLDER_GUIDE)
            )
        if self.is_foreign:
            self._note()
            return
        version = element(segment, 3 if tag == "ST" else 8).upper() or ("" if tag == "GS" else GUIDE)
        if tag == "ST" and element(segment, 1) != "834":
            version = ""
        is_bare = tag == "GS" and version in _VERSIONS
        if tag != "ISA" and not is_bare and not version.startswith((GUIDE, OLDER_GUIDE)):
            what = "ST01, ST03" if tag == "ST" else "GS08"
            message = f"not an 834 of version 005010X220A1, or 004010X095A1: {what} says otherwise"
            raise at_segment(number, "wrong_version", message)
        if is_bare or (tag == "GS" and version.startswith(OLDER_GUIDE)):
            self._note()

    def _close(self, number: int, segment: Segment) -> None:
        tag = segment[0]
        counted = number - self._began_at + 1 if tag == "SE" else self._count[self._level]
        is_wrong = _whole_number(element(segment, 1)) != counted
        if is_wrong and not self._refuses_counts:
            self._note()
        elif is_wrong:
            message = f"{tag}01 is not the number of {_WHAT_IS_COUNTED[tag]}, which is {counted}. {_LENIENT}"
            raise at_segment(number, "wrong_count", message)
        if element(segment, 2).lstrip("0") != self._control[self._level].lstrip("0"):
            raise at_segment(
                number,
                "wrong_count",
                f"{tag}02 is not the control number that was opened; the sender has to send the file again",
            )


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


@dataclass(frozen=True, slots=True)
class X12Taking:
    """How to take an 834 (docs/834.md). A `mode` goes before what the file says of itself; with `verifies_full`, BGN08 = 4
    is a full file; wrong counts are refused unless it `is_lenient`."""

    mode: FileMode | None = None
    verifies_full: bool = False
    is_lenient: bool = False


class X12Reader:
    """One pass over the file: `begin` once, then `members`."""

    def __init__(self, source: Source, taking: X12Taking, *, cuts_families: bool = True) -> None:
        self._source, self._taking = source, taking
        self._envelope = Envelope(self._note, refuses_counts=not taking.is_lenient)
        self._transaction: Transaction | None = None
        self._mode: FileMode | None = None
        wants_family = self._is_among_members if cuts_families else lambda: False
        self._segments = iter(SegmentReader(source, self._note, wants_family))
        self.is_untidy = False  # the file is not as the book wants it

    def _note(self) -> None:
        self.is_untidy = True

    def _is_among_members(self) -> bool:
        return self._transaction is not None and self._envelope.is_in_transaction

    def begin(self) -> Transaction:
        """The first transaction. Without a mode, all of them must have the same BGN08. Raises Unreadable."""
        for number, segment in self._segments:
            self._outside(number, list(segment))
            if self._transaction is not None:
                return self._transaction
        raise Unreadable("no_rows", "The file has no transaction.")

    def members(self) -> Iterator[Family | PlacedLoop]:
        """Each family that is tidy, and each INS loop besides, in the order of the file. Raises Unreadable."""
        member: list[Segment] = []
        place, has_members = 0, False
        for number, segment in self._segments:
            if member and not isinstance(segment, FamilyText) and segment[0] not in _ENDS_A_MEMBER:
                member.append(segment)
                if number - place >= MEMBER_SEGMENTS_LIMIT:
                    message = f"a member of more than {MEMBER_SEGMENTS_LIMIT:,} segments begins here"
                    raise at_segment(place, "line_too_long", message)
                continue
            transaction = self._transaction
            if member and transaction is not None:
                yield place, read_loop(member, transaction)
            member = []
            if transaction is not None and (isinstance(segment, FamilyText) or segment[0] == "INS"):
                self._envelope.check_in_transaction(number)
                has_members = True
                if isinstance(segment, FamilyText):
                    yield Family(number, segment, transaction)
                else:
                    place, member = number, [segment]
            else:
                self._outside(number, list(segment))
        self._envelope.check_closed()
        if not has_members:
            raise Unreadable("no_rows", "The file has no member (INS).")

    def loops(self) -> Iterator[PlacedLoop]:
        """As `members`, all of them loops."""
        for item in self.members():
            yield from item.loops() if isinstance(item, Family) else [item]

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
        mode = self._taking.mode or self._said_mode(segment)
        if self._taking.mode is None and mode is FileMode.COMPARE and self._taking.verifies_full:
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
