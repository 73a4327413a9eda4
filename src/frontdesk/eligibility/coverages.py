"""The coverages that a member keeps, what a row changes of them, and the record of a day that they
give (pure; docs/834.md, Access).

Days are `YYYY-MM-DD`; the end of an open coverage is OPEN. A coverage without a line is of every
line: dates of a table, a POST or the console are one such coverage.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from frontdesk.eligibility.days import OPEN, day_after, day_before

# Past coverages beyond these are forgotten, the oldest first. A row that leaves as many others is
# refused.
MOST_COVERAGES = 40

Values = Mapping[str, Any]


class Coverage(NamedTuple):
    """One coverage that counts: its line (HD03), description (HD04), plan, first and last day."""

    line: str
    description: str
    plan_id: int
    begin: str
    end: str

    def is_of(self, line: str) -> bool:
        """Whether it is of the line. No line stands for every line, on both sides."""
        return not line or not self.line or self.line == line

    def is_named(self, line: str, description: str) -> bool:
        """Whether a row means it by this line and description."""
        return not line or not self.line or (self.line, self.description) == (line, description)


class ChangeKind(Enum):
    """What a row says of a coverage."""

    SET = auto()  # it begins, or continues
    END = auto()  # it ends on a day
    REMOVE = auto()  # it was never effective
    REOPEN = auto()  # the coverage that ended last is open again


class CoverageChange(NamedTuple):
    """What a row says of one coverage; of all, if it has no `line`.

    `begin` is "" if the row does not state it; then `begin_else` is the day of the change. `end` is
    the last day, "" for none; of an END, `is_end_stated` is False if the row does not state it. `plan`
    is the row's name of the plan, None for the plan of the file, and `plan_id` the plan of that name.
    """

    kind: ChangeKind
    line: str = ""
    description: str = ""
    begin: str = ""
    end: str = ""
    begin_else: str = ""
    is_end_stated: bool = True
    plan: str | None = None
    plan_id: int | None = None


class AppliedChanges(NamedTuple):
    """The coverages after a row, and which of them the row has `stated`: set, ended or reopened.

    `is_inverted`: a coverage would end before it begins. `leaves_first_day`: the last coverage was
    removed, of which the first day is left. `goes_on`: the row ends or removes a coverage,
    and access goes on by one that the row does not set. `is_postponed`: a coverage that is yet to
    begin was replaced by one that begins later, and there is no access on its first day any more.
    """

    coverages: Sequence[Coverage]
    stated: Sequence[Coverage]
    is_inverted: bool = False
    leaves_first_day: bool = False
    goes_on: bool = False
    is_postponed: bool = False


class DayRecord(NamedTuple):
    """What the record of a member has on a day: the span of access that holds the day, else the
    next one, else the last, and the plan of the coverage in force. `derive_on` is the day on which
    the record has to be derived again, None without one.
    """

    effective_date: str
    expiry_date: str | None
    plan_id: int
    derive_on: str | None = None


def kept_coverages(values: Values) -> list[Coverage]:
    """The coverages of a stored member, as they were before an end by absence."""
    stored = values.get("coverages")
    if stored is None:
        end = values.get("expiry_before_absence") or values["expiry_date"] or OPEN
        return [Coverage("", "", values["plan_id"], values["effective_date"], end)]
    return [
        Coverage(
            each["line"], each["description"], each["plan"], each["begin"], each["end"] or OPEN
        )
        for each in stored
    ]


def coverages_in_force(values: Values) -> list[Coverage]:
    """The coverages of a stored member; of one that was ended by absence, up to that day."""
    kept = kept_coverages(values)
    if values.get("expiry_before_absence") is None:
        return kept
    return cut_at(kept, values["expiry_date"])


def as_stored(coverages: Sequence[Coverage]) -> list[dict[str, Any]] | None:
    """The stored form; None for one coverage of every line, of which the dates say all."""
    if len(coverages) == 1 and not coverages[0].line:
        return None
    return [
        {
            "line": each.line,
            "description": each.description,
            "plan": each.plan_id,
            "begin": each.begin,
            "end": None if each.end == OPEN else each.end,
        }
        for each in coverages
    ]


def last_days(coverages: Sequence[Coverage]) -> list[str]:
    """The last day of each coverage: an open one lasts until the next of its line begins."""
    return [_last_day(each, coverages) for each in coverages]


def _last_day(coverage: Coverage, coverages: Iterable[Coverage]) -> str:
    if coverage.end != OPEN:
        return coverage.end
    begins = [
        other.begin
        for other in coverages
        if other.begin > coverage.begin and other.is_of(coverage.line)
    ]
    return day_before(min(begins)) if begins else OPEN


def derive(coverages: Sequence[Coverage], today: str) -> DayRecord:
    """The record of the day. `coverages` has at least one."""
    if len(coverages) == 1:  # as nearly all members have: a tenth of the time
        _, _, plan_id, begin, end = coverages[0]
        return DayRecord(begin, None if end == OPEN else end, plan_id)
    record = _derive(coverages, today)
    days = {each.begin for each in coverages} | {*map(day_after, last_days(coverages))}
    for day in sorted(days):
        if today < day < OPEN and _derive(coverages, day) != record:
            return record._replace(derive_on=day)
    return record


def _derive(coverages: Sequence[Coverage], today: str) -> DayRecord:
    ends = last_days(coverages)
    spans: list[tuple[str, str]] = []
    for begin, end in sorted(zip([each.begin for each in coverages], ends, strict=True)):
        if spans and begin <= day_after(spans[-1][1]):
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((begin, end))
    begin, end = next((span for span in spans if span[1] >= today), spans[-1])
    day = min(max(today, begin), end)
    in_force = [
        (last, each.begin, position, each.plan_id)
        for position, (each, last) in enumerate(zip(coverages, ends, strict=True))
        if each.begin <= day <= last
    ]
    *_, plan_id = max(in_force)
    return DayRecord(begin, None if end == OPEN else end, plan_id)


def cut_at(coverages: Sequence[Coverage], day: str) -> list[Coverage]:
    """The coverages up to a last day; if all begin later, the first of them for one day."""
    ends = last_days(coverages)
    found = [
        each._replace(end=min(last, day))
        for each, last in zip(coverages, ends, strict=True)
        if each.begin <= day
    ]
    if found:
        return found
    first = min(coverages, key=lambda each: each.begin)
    return [first._replace(end=first.begin)]


def until(coverages: Sequence[Coverage], begin: str, today: str) -> list[Coverage]:
    """The coverages in force today, up to the day before `begin`, which is later."""
    return [
        each._replace(end=min(last, day_before(begin)))
        for each, last in zip(coverages, last_days(coverages), strict=True)
        if each.begin <= today <= last
    ]


def lacks_a_day(coverages: Sequence[Coverage], days: Iterable[str]) -> bool:
    """Whether none of the coverages is in force on some of the days."""
    spans = [*zip(coverages, last_days(coverages), strict=True)]
    return not all(any(each.begin <= day <= last for each, last in spans) for day in days)


def simplified(coverages: Sequence[Coverage], today: str) -> list[Coverage]:
    """Dates of every line that touch, of one plan, as one coverage; the others in the order of
    their begin, without the oldest of too many past ones.
    """
    if len(coverages) == 1:
        return [*coverages]
    record = _derive(coverages, today)
    first, *_ = coverages
    ends = last_days(coverages)
    are_one = all(
        not each.line and each.plan_id == first.plan_id and each.begin >= record.effective_date
        for each in coverages
    )
    if are_one and max(ends) == (record.expiry_date or OPEN):
        return [first._replace(begin=record.effective_date, end=max(ends))]
    in_order = sorted(coverages, key=lambda each: each.begin)
    excess = max(len(in_order) - MOST_COVERAGES, 0)
    are_past = [last < today for last in last_days(in_order)]
    return [
        each
        for position, each in enumerate(in_order)
        if position >= excess or not are_past[position]
    ]


@dataclass(slots=True)
class _Entry:
    coverage: Coverage
    is_stated: bool = False
    is_set: bool = False


class _Changing:
    """The coverages of a member while the changes of one row are applied, in the order of the row."""

    def __init__(self, coverages: Iterable[Coverage], today: str, plan_id: int) -> None:
        self._entries = [_Entry(each) for each in coverages]
        self._today = today
        self._plan_id = plan_id
        self._removed: list[Coverage] = []
        self._ends: list[str] = []
        self._announced: list[str] = []  # begins of coverages that one with a later begin replaced
        self.is_inverted = False

    def apply(self, change: CoverageChange) -> None:
        if change.kind is ChangeKind.SET:
            self._set(change)
        elif change.kind is ChangeKind.END:
            self._end(change)
        elif change.kind is ChangeKind.REMOVE:
            self._remove_named(change)
        else:
            self._reopen(change)

    def result(self) -> AppliedChanges:
        leaves_first_day = not self._entries and bool(self._removed)
        if leaves_first_day:
            first = min(self._removed, key=lambda each: each.begin)
            self._entries.append(_Entry(first._replace(end=first.begin), is_stated=True))
        coverages = [each.coverage for each in self._entries]
        return AppliedChanges(
            coverages=coverages,
            stated=[each.coverage for each in self._entries if each.is_stated],
            is_inverted=self.is_inverted,
            leaves_first_day=leaves_first_day,
            goes_on=not leaves_first_day and self._goes_on(),
            is_postponed=lacks_a_day(coverages, self._announced),
        )

    def _goes_on(self) -> bool:
        """Whether the member has access after the last end by a coverage that the row does not set."""
        if not self._ends:
            return False
        day = day_after(max(self._ends))
        return any(
            not each.is_set and each.coverage.begin <= day <= self._last_day(each)
            for each in self._entries
        )

    def _last_day(self, entry: _Entry) -> str:
        return _last_day(entry.coverage, (each.coverage for each in self._entries))

    def _set(self, change: CoverageChange) -> None:
        earlier = self._entries
        if not change.line:
            if any(each.coverage.line for each in self._entries):
                return  # a day of all coverages begins none of them
            self._entries = []
        begin = change.begin or self._begin_of(change) or change.begin_else
        end = change.end or OPEN
        if end < begin:
            self.is_inverted = True
            return
        plan_id = self._plan_id if change.plan_id is None else change.plan_id
        new = Coverage(change.line, change.description, plan_id, begin, end)

        def is_replaced(entry: _Entry) -> bool:
            stored = entry.coverage
            if not stored.is_of(new.line):
                return False
            if entry.is_set:  # two descriptions of one line in one row
                return stored[:2] == new[:2] and stored.begin == begin
            if stored.begin == begin:
                return True
            # Of two that are yet to begin, one may end before the other begins.
            is_yet_to_begin = begin > self._today and stored.begin > self._today
            return is_yet_to_begin and stored.end >= begin and end >= stored.begin

        self._entries = [each for each in self._entries if not is_replaced(each)]
        replaced = [each.coverage for each in earlier if each not in self._entries]
        self._announced += [each.begin for each in replaced if self._today < each.begin < begin]
        self._entries.append(_Entry(new, is_stated=True, is_set=True))

    def _begin_of(self, change: CoverageChange) -> str:
        """The begin of the coverage of the line that is in force, else of the next; "" without
        either. One that ends before the day of the change does not go on by it.
        """
        day = max(self._today, change.begin_else)
        begins = [
            each.coverage.begin
            for each in self._entries
            if each.coverage.is_of(change.line) and self._last_day(each) >= day
        ]
        in_force = [begin for begin in begins if begin <= self._today]
        return max(in_force, default="") or min(begins, default="")

    def _end(self, change: CoverageChange) -> None:
        day = change.end
        if change.line:
            self._ends.append(day)
        named = self._find(lambda each: each.is_named(change.line, change.description))
        if not named:
            named = self._others_of_line(change.line, day)
        begun = [each for each in named if each.coverage.begin <= day]
        later = [each for each in named if each.coverage.begin > day and not each.is_set]
        lasting = [each for each in begun if self._last_day(each) >= day]
        for entry in lasting:
            entry.coverage = entry.coverage._replace(end=day)
            entry.is_stated = True
        if not change.line or not begun or (not lasting and later):
            self._remove(later)
        elif not lasting and change.is_end_stated:  # the end is corrected
            last = max(begun, key=lambda each: each.coverage.end)
            last.coverage = last.coverage._replace(end=day)
            last.is_stated = True
        if not named and change.begin and change.begin <= day:
            plan_id = self._plan_id if change.plan_id is None else change.plan_id
            ended = Coverage(change.line, change.description, plan_id, change.begin, day)
            self._entries.append(_Entry(ended, is_stated=True, is_set=True))

    def _others_of_line(self, line: str, day: str) -> list[_Entry]:
        """The coverage of the line that is in force on the day, under another description, else
        those of the line that begin later.
        """
        of_line = self._find(lambda each: each.line == line)
        in_force = [each for each in of_line if each.coverage.begin <= day <= self._last_day(each)]
        if in_force:
            return [max(in_force, key=lambda each: each.coverage.begin)]
        return [each for each in of_line if each.coverage.begin > day]

    def _remove_named(self, change: CoverageChange) -> None:
        named = self._find(lambda each: each.is_named(change.line, change.description))
        if change.begin:
            named = named or self._find(lambda each: each.line == change.line)
            named = [each for each in named if each.coverage.begin == change.begin]
        else:
            named = sorted(named, key=lambda each: each.coverage.begin)[-1:]
        self._remove(named)
        if not named:
            self._ends.append(max(change.begin, self._today))

    def _remove(self, entries: Iterable[_Entry]) -> None:
        for entry in entries:
            self._entries.remove(entry)
            self._removed.append(entry.coverage)

    def _reopen(self, change: CoverageChange) -> None:
        if not self._entries:
            return
        last = max(self._entries, key=lambda each: (each.coverage.end, each.coverage.begin))
        end = change.end or OPEN
        if end < last.coverage.begin:
            self.is_inverted = True
            return
        last.coverage = last.coverage._replace(end=end)
        last.is_stated = True

    def _find(self, is_meant: Callable[[Coverage], bool]) -> list[_Entry]:
        return [each for each in self._entries if is_meant(each.coverage)]


def apply_changes(
    coverages: Iterable[Coverage], changes: Iterable[CoverageChange], *, today: str, plan_id: int
) -> AppliedChanges:
    """The stored coverages after the changes of a row, in its order. `plan_id` is the plan of the
    row, for changes without their own.
    """
    changing = _Changing(coverages, today, plan_id)
    for change in changes:
        changing.apply(change)
    return changing.result()
