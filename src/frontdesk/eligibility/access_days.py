"""The days on which a member has access, and which of them a change takes away or gives (pure).

Days are `YYYY-MM-DD`. Both days of a span are inclusive; OPEN is the last day of an access without
an end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk.eligibility.coverages import coverages_in_force, last_days
from frontdesk.eligibility.days import OPEN, day_after, day_before


class Span(NamedTuple):
    """Consecutive days of access under a plan."""

    begin: str
    end: str
    plan_id: int


Spans = Sequence[Span]


class Loss(NamedTuple):
    """The first days of access that a change takes away, from `first_day` on.

    `last_day` is the last day with access before them, `returns` the first day with access after
    them; "" if there is none.
    """

    first_day: str
    last_day: str
    returns: str


class AccessChange(NamedTuple):
    """What a change does to the days from today on. `gained_from` is the first day that it gives,
    "" without one; `is_moved` if some day is under another plan.
    """

    loss: Loss | None
    gained_from: str
    is_moved: bool


def spans_of(values: Mapping[str, Any]) -> Spans:
    """The spans of a stored member, in order, one for each coverage if it keeps coverages; none of
    a member that is withdrawn or merged.
    """
    if values["uniqueness_scope"] < 0 or values["merged_into"] is not None:
        return ()
    coverages = coverages_in_force(values)
    spans = [
        Span(each.begin, last_day, each.plan_id)
        for each, last_day in zip(coverages, last_days(coverages), strict=True)
        if last_day >= each.begin
    ]
    return sorted(spans)


def compare_access(before: Spans, after: Spans, today: str) -> AccessChange:
    """What becomes of the days from `today` on."""
    was_there = _joined(before, today)
    is_there = _joined(after, today)
    lost = _without(was_there, is_there)
    gained = _without(is_there, was_there)
    loss = None
    if lost:
        first_day, _ = lost[0]
        earlier = [min(span.end, day_before(first_day)) for span in after if span.begin < first_day]
        returns = next((begin for begin, _ in is_there if begin > first_day), "")
        loss = Loss(first_day, max(earlier, default=""), returns)
    plans_before = _plans_by_day(before, today)
    plans_after = _plans_by_day(after, today)
    is_moved = any(
        plan_id != other_id and max(begin, other_begin) <= min(end, other_end)
        for begin, end, plan_id in plans_before
        for other_begin, other_end, other_id in plans_after
    )
    return AccessChange(loss, gained[0][0] if gained else "", is_moved)


def _plans_by_day(spans: Spans, today: str) -> Spans:
    return [span for span in spans if span.end >= today]


def _joined(spans: Iterable[Span], today: str) -> list[tuple[str, str]]:
    """The days from today on, in order, without the plans; spans that overlap or touch are one."""
    joined: list[tuple[str, str]] = []
    for begin, end, _ in sorted(spans):
        if end < today:
            continue
        first = max(begin, today)
        if joined and first <= day_after(joined[-1][1]):
            first, last = joined.pop()
            joined.append((first, max(last, end)))
        else:
            joined.append((first, end))
    return joined


def _without(
    days: Iterable[tuple[str, str]], others: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The days that are not among the others."""
    left: list[tuple[str, str]] = []
    for begin, end in days:
        start = begin
        for other_begin, other_end in others:
            if other_end < start or other_begin > end:
                continue
            if other_begin > start:
                left.append((start, day_before(other_begin)))
            start = max(start, day_after(other_end))
            if other_end >= OPEN:
                break
        else:
            if start <= end:
                left.append((start, end))
    return left
