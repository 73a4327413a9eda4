"""The segments of an 834's interchanges, and the envelopes around them.

Segments are split by the delimiters that each ISA declares, and counted from the first ISA of the file, which is 1.
"""

import re
from collections.abc import Callable, Iterator

from frontdesk.files.model import Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.x12_loop import Segment, element

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


def at_segment(number: int, code: str, message: str) -> Unreadable:
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
        raise at_segment(number, "cut_off", "the file ends here, before its IEA")
    return rest + block


def _more(source: Source, rest: str, number: int) -> str:
    """The rest, long enough for an ISA if the file is; "" if only filler is left."""
    while len(text := rest.lstrip(_FILLER)) < ISA_LENGTH and (block := source.block()):
        _bound(rest, number)
        rest += block
    return text


def _bound(rest: str, number: int) -> None:
    if len(rest) > LONGEST_LINE:
        raise at_segment(
            number, "line_too_long", f"longer than {LONGEST_LINE:,} characters, which no segment needs"
        )


def _delimiters(text: str, number: int) -> tuple[str, str]:
    """The element separator and the segment terminator, at fixed places of the ISA."""
    if not text.startswith("ISA"):
        raise at_segment(number, "not_x12", "an ISA segment is expected here")
    if len(text) < ISA_LENGTH:
        raise at_segment(number, "cut_off", "the file ends within the ISA")
    separator, terminator = text[3], text[ISA_LENGTH - 1]
    widths = [len(element) for element in text[: ISA_LENGTH - 1].split(separator)]
    if widths != _ISA_WIDTHS or terminator == separator or terminator.isalnum() or separator.isalnum():
        message = "the ISA is damaged: it must have 16 elements of fixed length and a terminator"
        raise at_segment(number, "not_x12", message)
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
            raise at_segment(number, "wrong_order", f"{tag} has no place here")
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
            raise at_segment(number, "wrong_order", "stands outside of any transaction (ST to SE)")

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
            raise at_segment(number, "wrong_version", "not an 834 of version 005010X220A1")

    def _close(self, number: int, segment: Segment) -> None:
        tag = segment[0]
        counted = number - self._began_at + 1 if tag == "SE" else self._count[self._level]
        is_wrong = _whole_number(element(segment, 1)) != counted
        if is_wrong and self._on_wrong_count is not None:
            self._on_wrong_count()
        elif is_wrong:
            raise at_segment(
                number,
                "wrong_count",
                f"{tag}01 is not the number of {_WHAT_IS_COUNTED[tag]}, which is {counted}",
            )
        if element(segment, 2).lstrip("0") != self._control[self._level].lstrip("0"):
            raise at_segment(number, "wrong_count", f"{tag}02 is not the control number that was opened")


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
