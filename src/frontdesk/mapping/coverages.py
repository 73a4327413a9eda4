"""The access by the coverages of an 834: those that count, its begin, its end and its plan
(docs/834.md, Access).

Days are `YYYY-MM-DD`; an empty one is not known (a begin) or open (an end).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from frontdesk.eligibility.model import Action
from frontdesk.formats.x12_loop import DELETED, END, OF_DEPENDENTS, REINSTATE, Level, MemberLoop
from frontdesk.mapping.parser import FileMapping

_LAST_DAY = "9999-12-31"
BEFORE_ACCESS = "1900-01-01"
_SPOUSES = {"01", "53"}


@dataclass(slots=True)
class Coverage:
    """One coverage (HD) that counts, with its own references. `is_end` is set where the file ends
    it; without a `line` it is the end of the member, whatever the coverage. `changed` is the day
    from which the news about it holds. One that `is_deleted` was never effective.
    """

    line: str
    description: str
    begin: str
    end: str
    is_end: bool = False
    references: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    changed: str = ""
    is_deleted: bool = False

    def duration(self) -> tuple[str, str]:
        """Orders coverages by their end and begin; one without an end lasts longest."""
        return self.end or _LAST_DAY, self.begin

    def closes(self, other: "Coverage") -> bool:
        """True if this end closes the other coverage, which is earlier in the file."""
        return (
            self.is_end
            and self.is_about(other)
            and other.begin <= self.end < (other.end or _LAST_DAY)
        )

    def is_about(self, other: "Coverage") -> bool:
        """True if both have the same line and plan, and the same begin if both have one. An end
        without a line matches all.
        """
        is_same = not self.line or (self.line, self.description) == (other.line, other.description)
        return is_same and (not self.begin or not other.begin or self.begin == other.begin)


NO_COVERAGE = Coverage("", "", "", "")


def effective_coverages(coverages: Iterable[Coverage]) -> list[Coverage]:
    """The coverages without the deleted ones; these alone, if the file names no other of the
    member.
    """
    remaining: list[Coverage] = []
    for coverage in coverages:
        if coverage.is_deleted:
            remaining = [other for other in remaining if not coverage.is_about(other)]
        remaining.append(coverage)
    deleted = [each for each in remaining if each.is_deleted]
    effective = [each for each in remaining if not each.is_deleted]
    return effective if not deleted or any(each.line for each in effective) else deleted


def action_of(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Action | None:
    """The action of all loops together: end the member only if none of them enrols it."""
    # The end of coverages that don't count is no end of the member.
    only_ends = Action.END if coverages else Action.ENROL
    return next((loop.action for loop in loops if loop.action is not Action.END), only_ends)


def counted_levels(loop: MemberLoop, mapping: FileMapping) -> list[Level]:
    """The coverages (HD) that count, without those that only the dependents have."""
    return [
        level
        for level in loop.coverages
        if level.hd[1] != OF_DEPENDENTS and (mapping.lines is None or level.hd[3] in mapping.lines)
    ]


def family_levels(
    dependent: MemberLoop, subscriber: MemberLoop, mapping: FileMapping
) -> list[Level]:
    """The coverages of the subscriber that cover the dependent, by their level (HD05): the family,
    the spouse, the children.
    """
    is_spouse = dependent.ins[2] in _SPOUSES
    covering = {"FAM", "ESP" if is_spouse else "ECH"}
    return [
        each
        for each in counted_levels(subscriber, mapping)
        if each.hd[5].strip().upper() in covering
    ]


def coverages_of(loop: MemberLoop, mapping: FileMapping) -> list[Coverage]:
    """The coverages that count, deleted ones included, and the end of the member if the loop has
    one.
    """
    file_date = loop.transaction.file_date
    first_day, last_day, changed = (loop.own.dates.get(name, "") for name in ("356", "357", "303"))
    counted = counted_levels(loop, mapping)
    ends_member = loop.ins[3] == END
    end_of_all = last_day
    if ends_member:
        ends = (level.dates.get("349", "") for level in counted if level.hd[1] != DELETED)
        end_of_all = last_day or max(ends, default="")
    found = []
    for level in counted:
        code = level.hd[1]
        dates = level.dates
        is_deleted = level.hd[1] == DELETED
        is_end = ends_member or is_deleted or code == END
        end = dates.get("349") or (dates.get("303", "") if code == END else "")
        if is_end:
            end = (ends_member and last_day) or end or end_of_all or file_date
        if last_day:
            end = min(end or last_day, last_day)
        line = level.hd[3] or "?"
        description = level.hd[4].strip()
        begin = dates.get("348") or first_day
        news = dates.get("303") or changed
        found.append(
            Coverage(line, description, begin, end, is_end, level.references, news, is_deleted)
        )
    if not found and (last_day or (ends_member and not loop.coverages)):
        begin = first_day if mapping.lines is None else ""
        found.append(Coverage("", "", begin, last_day or file_date, is_end=True))
    return found


def dates_of(
    loops: Sequence[MemberLoop], coverages: Sequence[Coverage], mapping: FileMapping
) -> tuple[dict[str, object], dict[str, object]]:
    """The dates of the access by all coverages, in the order of the file, and the dates for a new
    member only. If a coverage in force has no begin, the begin is absent, so that a stored one
    stays; a new member without any begin starts on the day of the change.
    """
    dates: dict[str, object] = {}
    if not coverages:
        if not any(loop.coverages for loop in loops):
            if any(loop.ins[3] == REINSTATE for loop in loops):
                dates["expiry_date"] = None
            if mapping.lines is None and (begin := loops[-1].own.dates.get("356")):
                dates["effective_date"] = begin
        return dates, {}
    if coverages[0].is_deleted:
        # Without a begin, the end is that of the stored access: eligibility.decide moves it to the
        # first day.
        return {"expiry_date": min(coverage.begin or BEFORE_ACCESS for coverage in coverages)}, {}
    known = _with_their_ends(coverages)
    last = max(known, key=Coverage.duration)
    file_date = loops[-1].transaction.file_date
    # It begins with the earliest that is in force on the file's date or to come, and is open if any
    # is.
    in_force = [each for each in known if not each.end or each.end >= file_date] or [last]
    begins = [each.begin for each in in_force]
    dates["expiry_date"] = last.end or None
    if begin := min(begins):
        return dates | {"effective_date": begin}, {}
    changed = [each.changed for each in in_force if not each.is_end]
    begin = min(filter(None, begins), default="") or min(filter(None, changed), default="")
    return dates, {"effective_date": begin} if begin else {}


def _with_their_ends(coverages: Sequence[Coverage]) -> list[Coverage]:
    """The coverages; an end is merged into the coverages that it closes, else it is a coverage of
    its own.
    """
    known: list[Coverage] = []
    for coverage in coverages:
        closed = [other for other in known if coverage.closes(other)]
        for other in closed:
            other.end = coverage.end
        if not closed:
            known.append(coverage)
    return known
