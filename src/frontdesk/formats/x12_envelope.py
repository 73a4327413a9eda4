"""The envelopes around the transactions of an 834: their order, counts and control numbers (docs/834.md, Envelope)."""

from collections.abc import Callable

from frontdesk.eligibility.fields import x12_date
from frontdesk.formats.model import Unreadable
from frontdesk.formats.x12_loop import Segment, element
from frontdesk.formats.x12_segments import at_segment

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

    def check_in_transaction(self, number: int) -> None:
        if self._level != _TRANSACTION:
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
