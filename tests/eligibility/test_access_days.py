"""Which days of access a change takes away or gives."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.eligibility.access_days import Span, Spans, compare_access, text_of
from frontdesk.eligibility.days import OPEN, day_after, day_before

TODAY = "2026-06-15"


def spans(*texts: str, plan: int = 1) -> Spans:
    """Spans by their days, such as `2026-01-01/2026-12-31`."""
    ends = (text.split("/") for text in texts)
    return [Span(begin, OPEN if end == ".." else end, plan) for begin, end in ends]


YEAR = spans("2026-01-01/..")


@pytest.mark.parametrize(
    ("before", "after", "lost", "gained"),
    [
        (YEAR, YEAR, None, ""),
        (YEAR, spans("2026-01-01/2026-05-31"), (TODAY, "2026-05-31", ""), ""),
        (YEAR, spans("2026-01-01/2026-06-15"), ("2026-06-16", "2026-06-15", ""), ""),
        (YEAR, [], (TODAY, "", ""), ""),
        (YEAR, spans("2027-01-01/.."), (TODAY, "", "2027-01-01"), ""),
        (
            YEAR,
            spans("2026-01-01/2026-08-31", "2026-10-01/.."),
            ("2026-09-01", "2026-08-31", "2026-10-01"),
            "",
        ),
        (YEAR, spans("2026-01-01/2026-08-31", "2026-09-01/.."), None, ""),
        (YEAR, spans("2026-01-01/2026-08-31", "2026-08-01/.."), None, ""),
        (spans("2026-01-01/2026-03-31"), spans("2026-01-01/2026-02-28"), None, ""),
        (spans("2026-01-01/2026-03-31"), YEAR, None, TODAY),
        (spans("2026-01-01/2026-07-31"), YEAR, None, "2026-08-01"),
        (spans("2027-01-01/.."), spans("2027-02-01/.."), ("2027-01-01", "", "2027-02-01"), ""),
        ([], spans("2027-02-01/.."), None, "2027-02-01"),
    ],
)
def test_what_is_lost_and_gained_from_today_on(
    before: Spans, after: Spans, lost: tuple[str, str, str] | None, gained: str
) -> None:
    change = compare_access(before, after, TODAY)
    assert (change.loss, change.gained_from) == (lost, gained)


def test_a_member_moves_if_a_day_is_under_another_plan() -> None:
    elsewhere = spans("2026-01-01/..", plan=2)
    assert compare_access(YEAR, elsewhere, TODAY).is_moved
    assert not compare_access(YEAR, [*YEAR, *elsewhere], TODAY).is_moved
    split = [*spans("2026-01-01/2026-12-31"), *spans("2027-01-01/..", plan=2)]
    assert compare_access(YEAR, split, TODAY).is_moved
    past = spans("2026-01-01/2026-03-31", plan=2)
    assert not compare_access(past, YEAR, TODAY).is_moved


def test_days_as_text() -> None:
    assert text_of(spans("2026-01-01/2026-06-30", "2027-01-01/..")) == (
        "2026-01-01/2026-06-30 2027-01-01/.."
    )
    both = [*YEAR, *spans("2026-03-01/2026-04-30", plan=2)]
    assert text_of(both) == "2026-01-01/.."
    assert text_of([]) == ""


FEW_DAYS = [f"2026-06-{day:02}" for day in range(12, 22)]
some_spans = st.lists(
    st.tuples(st.sampled_from(FEW_DAYS), st.sampled_from(FEW_DAYS)).map(
        lambda pair: Span(min(pair), max(pair), 1)
    ),
    max_size=3,
)


def days_of(found: Sequence[Span]) -> set[str]:
    """The days from today on, one by one."""
    return {day for day in FEW_DAYS if day >= TODAY and any(s.begin <= day <= s.end for s in found)}


@given(before=some_spans, after=some_spans)
def test_the_first_days_are_those_of_a_comparison_day_by_day(
    before: list[Span], after: list[Span]
) -> None:
    change = compare_access(before, after, TODAY)
    lost = sorted(days_of(before) - days_of(after))
    gained = sorted(days_of(after) - days_of(before))
    assert change.gained_from == (gained[0] if gained else "")
    if not lost:
        assert change.loss is None
        return
    assert change.loss is not None
    assert change.loss.first_day == lost[0]
    later = sorted(day for day in days_of(after) if day > lost[0])
    assert change.loss.returns == (later[0] if later else "")


def test_the_day_after_the_last_one_is_that() -> None:
    assert (day_after(OPEN), day_after("2026-12-31")) == (OPEN, "2027-01-01")
    assert day_before("2026-03-01") == "2026-02-28"
