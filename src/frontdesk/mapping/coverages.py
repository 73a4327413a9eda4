"""The access that the coverages of an 834 give: which of them count, from when, until when, by which (docs/834.md, Access).

Days are `YYYY-MM-DD`; an empty one is not known (a begin) or open (an end).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from frontdesk.eligibility.model import Action
from frontdesk.formats.x12_loop import DELETED, END, OF_DEPENDENTS, REINSTATE, Level, MemberLoop
from frontdesk.mapping.parser import FileMapping

_LAST_DAY, BEFORE_ACCESS = "9999-12-31", "1900-01-01"
_SPOUSES = {"01", "53"}


@dataclass(slots=True)
class Coverage:
    """One coverage (HD) that counts, with its own references. `is_end` is set where the file ends it; without a `line` it is
    the end of the member, whatever the coverage. `changed` is the day from which the news about it holds. One that
    `is_deleted` was never effective."""

    line: str
    description: str
    begin: str
    end: str
    is_end: bool = False
    references: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    changed: str = ""
    is_deleted: bool = False

    @property
    def duration(self) -> tuple[str, str]:
        """Orders coverages by their end and begin; one without an end lasts longest."""
        return self.end or _LAST_DAY, self.begin

    def closes(self, other: "Coverage") -> bool:
        """Whether this end is the end of the other coverage, which the file has named before."""
        in_time = other.begin <= self.end < (other.end or _LAST_DAY)
        return self.is_end and (not self.line or self._is_of(other)) and self._begins_with(other) and in_time

    def deletes(self, other: "Coverage") -> bool:
        """Whether this deletion is that of the other coverage, which the file has named before."""
        return self.is_deleted and self._is_of(other) and self._begins_with(other)

    def _is_of(self, other: "Coverage") -> bool:
        """Whether both are of one line and plan."""
        return (self.line, self.description) == (other.line, other.description)

    def _begins_with(self, other: "Coverage") -> bool:
        return not self.begin or not other.begin or self.begin == other.begin


NO_COVERAGE = Coverage("", "", "", "")


@dataclass(frozen=True, slots=True)
class Access:
    """What coverages give together. `begin` is empty where a coverage in force does not say it, so that a stored one stays;
    `begin_of_new` is for a member that is not stored yet, by the day of the change if no coverage says its begin. `last` is
    the coverage that lasts longest."""

    begin: str
    begin_of_new: str
    end: str
    last: Coverage


def effective_coverages(coverages: Iterable[Coverage]) -> list[Coverage]:
    """The coverages without the deleted ones; these alone, if the file names no other of the member."""
    kept: list[Coverage] = []
    for coverage in coverages:
        kept = [*(other for other in kept if not coverage.deletes(other)), coverage]
    deleted = [each for each in kept if each.is_deleted]
    effective = [each for each in kept if not each.is_deleted]
    return effective if not deleted or any(each.line for each in effective) else deleted


def access_of(coverages: Sequence[Coverage], file_date: str) -> Access:
    """The access by all coverages, of which there is at least one, in the order of the file.

    It begins with the earliest that is in force on the file's date or to come, and is open if any is.
    """
    if len(coverages) == 1:
        [only] = coverages
        return Access(only.begin, only.begin or ("" if only.is_end else only.changed), only.end, only)
    known: list[Coverage] = []
    for coverage in coverages:
        closed = [other for other in known if coverage.closes(other)]
        for other in closed:
            other.end = coverage.end
        if not closed:
            known.append(coverage)
    last = max(known, key=lambda each: each.duration)
    in_force = [each for each in known if not each.end or each.end >= file_date] or [last]
    begins = [each.begin for each in in_force]
    begin_of_new = _earliest(begins) or _earliest(each.changed for each in in_force if not each.is_end)
    return Access(min(begins), begin_of_new, last.end, last)


def _earliest(days: Iterable[str]) -> str:
    return min(filter(None, days), default="")


def action_of(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Action | None:
    """What all loops ask for together: to end the member only if none of them enrols it."""
    for loop in loops:
        if loop.action is not Action.END:
            return loop.action
    # The end of coverages that don't count is no end of the member.
    return Action.END if coverages else Action.ENROL


def counted_levels(loop: MemberLoop, mapping: FileMapping) -> list[Level]:
    """The coverages (HD) that count, without those that only the dependents have."""
    return [
        level
        for level in loop.coverages
        if level.hd[1] != OF_DEPENDENTS and (mapping.lines is None or level.hd[3] in mapping.lines)
    ]


def family_levels(dependent: MemberLoop, subscriber: MemberLoop, mapping: FileMapping) -> list[Level]:
    """The coverages of the subscriber that cover the dependent, by their level (HD05): the family, the spouse, the children."""
    is_spouse = dependent.ins[2].strip() in _SPOUSES
    covering = {"FAM", "ESP" if is_spouse else "ECH"}
    return [each for each in counted_levels(subscriber, mapping) if each.hd[5].strip().upper() in covering]


def coverages_of(loop: MemberLoop, mapping: FileMapping) -> list[Coverage]:
    """The coverages that count, deleted ones too, and the end of the member if the loop says one."""
    file_date, first_day, last_day = loop.transaction.file_date, *map(loop.own.dates.get, ("356", "357"))
    counted = counted_levels(loop, mapping)
    ends_member = loop.code == END
    end_of_all = last_day or (
        ends_member
        and max((level.dates.get("349", "") for level in counted if level.hd[1] != DELETED), default="")
    )
    found = []
    for level in counted:
        ends_coverage = level.hd[1] == END
        is_deleted = level.hd[1] == DELETED
        is_end = ends_member or ends_coverage or is_deleted
        changed = level.dates.get("303", "")
        end = level.dates.get("349", "") or (changed if ends_coverage else "")
        if ends_member:
            end = last_day or end or end_of_all or file_date
        elif is_end:
            end = end or last_day or file_date
        end = min(end or last_day, last_day) if last_day else end
        line, description = level.hd[3], level.hd[4].strip()
        begin = level.dates.get("348") or first_day or ""
        changed = changed or loop.own.dates.get("303", "")
        found.append(
            Coverage(line or "?", description, begin, end, is_end, level.references, changed, is_deleted)
        )
    if not found and (last_day or (ends_member and not loop.coverages)):
        begin = (first_day or "") if mapping.lines is None else ""
        found.append(Coverage("", "", begin, last_day or file_date, is_end=True))
    return found


def dates_of(
    loops: Sequence[MemberLoop], coverages: Sequence[Coverage], mapping: FileMapping
) -> tuple[dict[str, object], dict[str, object] | None]:
    """The dates of the access, and those that only a member that is not stored yet takes."""
    if coverages and coverages[0].is_deleted:
        # Without a begin, the end is that of the stored access: eligibility.decide moves it to the first day.
        return {"expiry_date": min(coverage.begin or BEFORE_ACCESS for coverage in coverages)}, None
    if coverages:
        access = access_of(coverages, loops[-1].transaction.file_date)
        dates: dict[str, object] = {"expiry_date": access.end or None}
        if access.begin:
            return dates | {"effective_date": access.begin}, None
        return dates, {"effective_date": access.begin_of_new} if access.begin_of_new else None
    dates = {}
    if not any(loop.coverages for loop in loops):
        if any(loop.code == REINSTATE for loop in loops):
            dates["expiry_date"] = None
        if mapping.lines is None and (begin := loops[-1].own.dates.get("356")):
            dates["effective_date"] = begin
    return dates, None
