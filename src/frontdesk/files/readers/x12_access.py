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
    the end of the member, whatever the coverage. `changed` is the day from which the news about it holds."""

    line: str
    description: str
    begin: str
    end: str
    is_end: bool = False
    references: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    changed: str = ""

    @property
    def duration(self) -> tuple[str, str]:
        """Orders coverages by their end and begin; one without an end lasts longest."""
        return self.end or _LAST_DAY, self.begin

    def closes(self, other: "Coverage") -> bool:
        """Whether this end is the end of the other coverage, which the file has named before."""
        is_same = not self.line or (self.line, self.description) == (other.line, other.description)
        same_begin = not self.begin or not other.begin or self.begin == other.begin
        in_time = other.begin <= self.end < (other.end or _LAST_DAY)
        return self.is_end and is_same and same_begin and in_time


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
