"""The access that the coverages of an 834 give: from when, until when, by which coverage (docs/834.md, Access).

Days are `YYYY-MM-DD`; an empty one is not known (a begin) or open (an end).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

_LAST_DAY = "9999-12-31"


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
