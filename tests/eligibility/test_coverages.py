"""What rows change of a member's coverages, and the record of a day that these give (docs/834.md,
Access).
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.eligibility.access_days import Span, spans_of
from frontdesk.eligibility.coverages import (
    MOST_COVERAGES,
    AppliedChanges,
    ChangeKind,
    Coverage,
    CoverageChange,
    DayRecord,
    apply_changes,
    as_stored,
    coverages_in_force,
    cut_at,
    derive,
    kept_coverages,
    last_days,
    simplified,
    until,
)
from frontdesk.eligibility.days import OPEN

TODAY = "2026-11-20"
FILE_DATE = "2026-11-19"


def covered(line: str, begin: str, end: str = OPEN, *, name: str = "A", plan: int = 1) -> Coverage:
    return Coverage(line, name if line else "", plan, begin, end)


def starts(line: str, begin: str = "", end: str = "", name: str = "A") -> CoverageChange:
    return CoverageChange(ChangeKind.SET, line, name, begin, end, begin_else=FILE_DATE)


def ends(line: str, day: str, begin: str = "", name: str = "A", *, stated: bool = True) -> Any:
    return CoverageChange(ChangeKind.END, line, name, begin, day, is_end_stated=stated)


def removes(line: str, begin: str = "", name: str = "A") -> CoverageChange:
    return CoverageChange(ChangeKind.REMOVE, line, name, begin)


REOPENS = CoverageChange(ChangeKind.REOPEN)
HLT = covered("HLT", "2026-01-01")
HLT_2026 = covered("HLT", "2026-01-01", "2026-12-31")
PPO_2027 = covered("PPO", "2027-01-01")
EVERY = covered("", "2025-06-01")
HLT_2027 = covered("HLT", "2027-01-01")
DECEMBER = covered("HLT", "2026-12-15", "2026-12-31")


def changed(stored: Sequence[Coverage], *changes: CoverageChange) -> AppliedChanges:
    return apply_changes(stored, changes, today=TODAY, plan_id=1)


@pytest.mark.parametrize(
    ("stored", "change", "after"),
    [
        # A coverage replaces the one of its line and begin, whatever its description.
        ([HLT], starts("HLT", "2026-01-01", "2026-12-31"), [HLT_2026]),
        ([HLT], starts("HLT", "2026-01-01", name="B"), [covered("HLT", "2026-01-01", name="B")]),
        ([HLT], starts("HLT", "2027-01-01"), [HLT, covered("HLT", "2027-01-01")]),
        ([HLT], starts("PPO", "2027-01-01"), [HLT, PPO_2027]),
        ([EVERY], starts("HLT", "2025-06-01"), [covered("HLT", "2025-06-01")]),
        # One that is yet to begin replaces those of its line that are yet to begin.
        ([HLT, PPO_2027], starts("PPO", "2027-02-01"), [HLT, covered("PPO", "2027-02-01")]),
        (
            [HLT, PPO_2027],
            starts("HLT", "2027-02-01"),
            [HLT, PPO_2027, HLT._replace(begin="2027-02-01")],
        ),
        # One that ends before the other begins stays beside it, in either order.
        ([DECEMBER], starts("HLT", "2027-01-01"), [DECEMBER, HLT_2027]),
        ([HLT_2027], starts("HLT", "2026-12-15", "2026-12-31"), [HLT_2027, DECEMBER]),
        # Without a begin: that of its line in force, else of the next, else the day of the change.
        ([HLT], starts("HLT", name="B"), [HLT._replace(description="B")]),
        ([PPO_2027], starts("PPO", name="B"), [PPO_2027._replace(description="B")]),
        ([HLT], starts("PPO"), [HLT, covered("PPO", FILE_DATE)]),
        # An end: those of line and description that have begun by the day.
        ([HLT], ends("HLT", "2026-12-31"), [HLT_2026]),
        ([HLT, PPO_2027], ends("HLT", "2026-12-31"), [HLT_2026, PPO_2027]),
        ([EVERY], ends("HLT", "2026-12-31"), [EVERY._replace(end="2026-12-31")]),
        ([HLT], ends("", "2026-12-31"), [HLT_2026]),
        ([HLT, PPO_2027], ends("", "2026-12-31"), [HLT_2026]),
        # else the one of its line that is in force
        ([HLT], ends("HLT", "2026-12-31", name="B"), [HLT_2026]),
        ([HLT], ends("PPO", "2026-12-31"), [HLT]),
        # before the begin: as if it had never been
        ([HLT, PPO_2027], ends("PPO", "2026-12-31"), [HLT]),
        ([HLT, PPO_2027], ends("PPO", "2026-12-31", name="B"), [HLT]),
        ([PPO_2027], ends("PPO", "2026-12-31"), [covered("PPO", "2027-01-01", "2027-01-01")]),
        # A stated end corrects an earlier one, the date of a file does not.
        ([HLT_2026], ends("HLT", "2027-01-31"), [HLT._replace(end="2027-01-31")]),
        ([HLT_2026], ends("HLT", "2027-01-31", stated=False), [HLT_2026]),
        ([HLT_2026], ends("HLT", "2026-11-30"), [HLT._replace(end="2026-11-30")]),
        # An end of a coverage that nobody has told of
        ([PPO_2027], ends("HLT", "2026-12-31", "2026-01-01"), [PPO_2027, HLT_2026]),
        # A coverage that was never effective
        ([HLT, PPO_2027], removes("PPO", "2027-01-01"), [HLT]),
        ([HLT, PPO_2027], removes("PPO"), [HLT]),
        ([HLT, PPO_2027], removes("PPO", "2027-01-01", "B"), [HLT]),
        ([HLT], removes("HLT", "2025-01-01"), [HLT]),
        ([HLT], removes("HLT"), [covered("HLT", "2026-01-01", "2026-01-01")]),
        # The one that ended last is open again.
        (
            [covered("PPO", "2025-01-01", "2025-12-31"), HLT_2026],
            REOPENS,
            [covered("PPO", "2025-01-01", "2025-12-31"), HLT],
        ),
        ([HLT], REOPENS, [HLT]),
    ],
)
def test_what_a_row_changes(
    stored: list[Coverage], change: CoverageChange, after: list[Coverage]
) -> None:
    assert changed(stored, change).coverages == after


def test_the_changes_of_a_row_follow_one_another() -> None:
    switch = [starts("PPO", "2027-01-01"), ends("HLT", "2026-12-31")]
    assert changed([HLT], *switch).coverages == [HLT_2026, PPO_2027]
    # An end of all does not cancel what the same row begins later.
    assert changed([HLT], starts("PPO", "2027-01-01"), ends("", "2026-12-31")).coverages == [
        HLT_2026,
        PPO_2027,
    ]
    renewed = changed([], ends("HLT", "2026-12-31"), starts("HLT", "2027-01-01")).coverages
    assert renewed == [covered("HLT", "2027-01-01")]
    two = changed([], starts("HLT", "2026-01-01"), starts("HLT", "2026-01-01", name="B")).coverages
    assert [each.description for each in two] == ["A", "B"]


def test_a_row_that_can_not_be_or_leaves_something_says_so() -> None:
    assert changed([HLT], starts("HLT", "2027-01-01", "2026-12-31")).is_inverted
    assert changed([PPO_2027], ends("PPO", "2026-12-31")).leaves_first_day
    assert changed([HLT, PPO_2027], ends("HLT", "2026-12-31")).goes_on
    assert changed([HLT], ends("PPO", "2026-12-31")).goes_on
    assert changed([HLT], removes("PPO", "2027-01-01")).goes_on
    assert not changed([HLT], ends("HLT", "2026-12-31")).goes_on
    assert not changed([HLT], ends("HLT", "2026-12-31"), starts("PPO", "2027-01-01")).goes_on
    assert not changed([HLT, PPO_2027], ends("", "2026-12-31")).goes_on
    assert changed([DECEMBER._replace(end=OPEN)], starts("HLT", "2027-01-01")).is_postponed
    assert changed([covered("", "2026-12-15")], starts("", "2027-01-01")).is_postponed
    assert not changed([DECEMBER], starts("HLT", "2027-01-01")).is_postponed
    assert not changed([HLT, PPO_2027], starts("PPO", "2027-02-01")).is_postponed
    stated = changed([HLT, PPO_2027], starts("PPO", "2027-01-01", "2027-06-30")).stated
    assert [*stated] == [covered("PPO", "2027-01-01", "2027-06-30")]


GAP = [HLT_2026, covered("PPO", "2027-03-01", plan=2)]
RENEWED = [HLT, covered("HLT", "2027-01-01", "2027-12-31", name="B", plan=2)]


@pytest.mark.parametrize(
    ("coverages", "today", "record"),
    [
        ([HLT], TODAY, DayRecord("2026-01-01", None, 1)),
        ([HLT_2026, PPO_2027], TODAY, DayRecord("2026-01-01", None, 1)),
        (GAP, TODAY, DayRecord("2026-01-01", "2026-12-31", 1, "2027-01-01")),
        (GAP, "2026-12-31", DayRecord("2026-01-01", "2026-12-31", 1, "2027-01-01")),
        (GAP, "2027-01-01", DayRecord("2027-03-01", None, 2)),
        (RENEWED, TODAY, DayRecord("2026-01-01", "2027-12-31", 1, "2027-01-01")),
        (RENEWED, "2027-01-01", DayRecord("2026-01-01", "2027-12-31", 2)),
        (RENEWED, "2028-02-01", DayRecord("2026-01-01", "2027-12-31", 2)),
        (
            [HLT, covered("PPO", "2026-02-01", "2026-12-31", plan=2)],
            TODAY,
            DayRecord("2026-01-01", None, 1),
        ),
        (
            [covered("PPO", "2027-01-01"), covered("HLT", "2026-06-01", "2026-06-30")],
            TODAY,
            DayRecord("2027-01-01", None, 1),
        ),
    ],
)
def test_the_record_of_a_day(coverages: list[Coverage], today: str, record: DayRecord) -> None:
    assert derive(coverages, today) == record


def values_of(coverages: Sequence[Coverage], today: str = TODAY) -> dict[str, Any]:
    record = derive(coverages, today)
    return {
        "effective_date": record.effective_date,
        "expiry_date": record.expiry_date,
        "plan_id": record.plan_id,
        "coverages": as_stored(coverages),
        "expiry_before_absence": None,
        "uniqueness_scope": 0,
        "merged_into": None,
    }


def test_what_is_stored_is_read_again_and_nothing_where_the_dates_say_all() -> None:
    for coverages in ([HLT], GAP, RENEWED, [EVERY], [EVERY._replace(end="2026-12-31")]):
        assert kept_coverages(values_of(coverages)) == coverages
    assert as_stored([EVERY]) is None
    assert as_stored([HLT]) == [
        {"line": "HLT", "description": "A", "plan": 1, "begin": "2026-01-01", "end": None}
    ]


def test_an_end_by_absence_keeps_the_coverages_for_the_return() -> None:
    ended = values_of(GAP) | {"expiry_date": "2026-11-20", "expiry_before_absence": "2026-12-31"}
    assert kept_coverages(ended) == GAP
    assert coverages_in_force(ended) == [HLT._replace(end="2026-11-20")]
    bare = values_of([EVERY]) | {"expiry_date": "2026-11-20", "expiry_before_absence": OPEN}
    assert kept_coverages(bare) == [EVERY]
    assert coverages_in_force(bare) == [EVERY._replace(end="2026-11-20")]
    assert spans_of(ended) == [Span("2026-01-01", "2026-11-20", 1)]


def test_the_spans_of_a_member_are_those_of_its_coverages() -> None:
    assert spans_of(values_of(GAP)) == [
        Span("2026-01-01", "2026-12-31", 1),
        Span("2027-03-01", OPEN, 2),
    ]
    assert spans_of(values_of(RENEWED))[0] == Span("2026-01-01", "2026-12-31", 1)
    assert spans_of(values_of([EVERY])) == [Span("2025-06-01", OPEN, 1)]
    assert spans_of(values_of(GAP) | {"merged_into": 7}) == ()


DAYS = [f"2026-{month:02}-{day:02}" for month in (1, 2, 6) for day in (1, 2, 3, 15, 16, 28)]


@given(st.data())
def test_a_record_that_is_derived_on_its_days_has_access_whenever_a_coverage_is_in_force(
    data: st.DataObject,
) -> None:
    """Promise 4 of the design, with a worker that derives on `derive_on` only."""
    coverages: list[Coverage] = []
    for _ in range(data.draw(st.integers(1, 5))):
        begin, end = sorted(data.draw(st.tuples(st.sampled_from(DAYS), st.sampled_from(DAYS))))
        coverages.append(
            covered(
                data.draw(st.sampled_from(["", "HLT", "PPO"])),
                begin,
                data.draw(st.sampled_from([end, OPEN])),
                plan=data.draw(st.integers(1, 2)),
            )
        )
    record = derive(coverages, "2025-12-31")
    for day in DAYS:
        if record.derive_on is not None and record.derive_on <= day:
            record = derive(coverages, day)
        assert record == derive(coverages, day), "the record is that of the day"
        has_access = record.effective_date <= day <= (record.expiry_date or OPEN)
        last = zip(coverages, last_days(coverages), strict=True)
        in_force = [each.plan_id for each, end in last if each.begin <= day <= end]
        assert has_access == bool(in_force)
        assert not in_force or record.plan_id in in_force


def test_coverages_are_cut_on_a_day() -> None:
    assert cut_at([HLT, PPO_2027], "2026-11-20") == [HLT._replace(end="2026-11-20")]
    assert cut_at([PPO_2027], "2026-11-20") == [PPO_2027._replace(end="2027-01-01")]
    assert until(GAP, "2027-01-01", TODAY) == [HLT_2026]
    assert until([HLT_2026], "2026-12-01", TODAY) == [HLT._replace(end="2026-11-30")]
    assert until([PPO_2027], "2027-06-01", TODAY) == []


def test_dates_of_every_line_that_touch_are_one_coverage() -> None:
    parts = [EVERY._replace(end="2026-12-31"), covered("", "2027-01-01")]
    assert simplified(parts, TODAY) == [EVERY]
    other_plan = [parts[0], covered("", "2027-01-01", plan=2)]
    assert simplified(other_plan, TODAY) == other_plan
    apart = [parts[0], covered("", "2027-02-01")]
    assert simplified(apart, TODAY) == apart
    past = [covered("HLT", f"19{year}-01-01", f"19{year}-06-30") for year in range(40, 99)]
    kept = simplified([PPO_2027, HLT, *past], TODAY)
    assert (len(kept), kept[-2:]) == (MOST_COVERAGES, [HLT, PPO_2027])
