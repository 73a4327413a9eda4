"""The envelopes of an X12 file: ISA/IEA, GS/GE, ST/SE stand in order and agree in counts and control numbers."""

from frontdesk.files.model import Unreadable
from frontdesk.files.readers.x12_segments import Segment

GUIDE = "005010X220"

# Tag: the level it may stand at, and the one it leads to.
_LEVELS = {"ISA": (0, 1), "GS": (1, 2), "ST": (2, 3), "SE": (3, 2), "GE": (2, 1), "IEA": (1, 0)}
_TRANSACTION = 3
_OPENS = {"ISA": 13, "GS": 6, "ST": 2}  # the element with the control number
_WHAT_IS_COUNTED = {"SE": "segments", "GE": "transactions", "IEA": "groups"}
ENVELOPES = frozenset(_LEVELS)


class Envelope:
    """Where in the file the reader stands."""

    def __init__(self) -> None:
        self._level = 0
        self._control = ["", "", "", ""]  # the control number that opened each level
        self._count = [0, 0, 0, 0]  # how many were opened inside each level
        self._began_at = 0

    def step(self, number: int, segment: Segment) -> None:
        """Take one segment of an envelope. Raises Unreadable naming it."""
        tag = segment[0]
        level, self_level = _LEVELS[tag]
        if level != self._level:
            raise Unreadable("wrong_order", f"{tag} has no place here", place=number, unit="Segment")
        if tag in _OPENS:
            self._open(number, segment, self_level)
        else:
            self._close(number, segment)
        self._level = self_level

    def must_be_in_transaction(self, number: int) -> None:
        if self._level != _TRANSACTION:
            message = "stands outside of any transaction (ST to SE)"
            raise Unreadable("wrong_order", message, place=number, unit="Segment")

    def must_be_closed(self) -> None:
        if self._level:
            raise Unreadable("cut_off", "The file ends before its IEA.")

    def _open(self, number: int, segment: Segment, level: int) -> None:
        tag = segment[0]
        self._control[level] = element(segment, _OPENS[tag])
        self._count[level] = 0
        self._count[level - 1] += 1
        self._began_at = number
        is_ours = (
            tag == "ISA"
            or (tag == "GS" and element(segment, 8).startswith(GUIDE))
            or (tag == "ST" and element(segment, 1) == "834" and _is_guide(element(segment, 3)))
        )
        if not is_ours:
            message = "not an 834 of version 005010X220A1"
            raise Unreadable("wrong_version", message, place=number, unit="Segment")

    def _close(self, number: int, segment: Segment) -> None:
        tag = segment[0]
        counted = number - self._began_at + 1 if tag == "SE" else self._count[self._level]
        if _number(element(segment, 1)) != counted:
            message = f"{tag}01 is not the number of {_WHAT_IS_COUNTED[tag]}, which is {counted}"
            raise Unreadable("wrong_count", message, place=number, unit="Segment")
        if element(segment, 2).lstrip("0") != self._control[self._level].lstrip("0"):
            message = f"{tag}02 is not the control number that was opened"
            raise Unreadable("wrong_count", message, place=number, unit="Segment")


def element(segment: Segment, position: int) -> str:
    """The element without space around it; "" when the segment ends before it."""
    return segment[position].strip() if len(segment) > position else ""


def _is_guide(version: str) -> bool:
    return not version or version.startswith(GUIDE)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
