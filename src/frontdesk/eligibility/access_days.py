"""The days on which a member has access, and which of them a change takes away or gives (pure).

Days are `YYYY-MM-DD`. Both days of a span are inclusive; OPEN is the last day of an access without
an end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk.eligibility.coverages import coverages_in_force, last_days
from frontdesk.eligibility.days import OPEN, day_after, day_before

# The stored values that say on which days a member has access, and under which plan.
ACCESS_FIELDS = frozenset(
    ("effective_date", "expiry_date", "plan_id", "coverages", "expiry_before_absence")
)

NO_END = ".."  # of an interval in a text


class Span(NamedTuple):
    """Consecutive days of access under a plan."""

    begin: str
    end: str
    plan_id: int


Spans = Sequence[Span]


class AccessPair(NamedTuple):
    """The access of a member before and after a change."""

    before: Spans
    after: Spans


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
    return spans_of_access(values)


def spans_of_access(values: Mapping[str, Any]) -> Spans:
    """The spans by the dates, the plan and the coverages alone."""
    coverages = coverages_in_force(values)
    spans = [
        Span(each.begin, last_day, each.plan_id)
        for each, last_day in zip(coverages, last_days(coverages), strict=True)
        if last_day >= each.begin
    ]
    return sorted(spans)


def access_pair(
    values: Mapping[str, Any], changes: Mapping[str, Sequence[Any]]
) -> AccessPair | None:
    """The access of a stored member before and after changes `{field: [from, to]}`; None if they
    leave it as it is. `values` are those after.
    """
    if ACCESS_FIELDS.isdisjoint(changes):
        return None
    earlier = {name: old for name, (old, _) in changes.items() if name in ACCESS_FIELDS}
    pair = AccessPair(spans_of({**values, **earlier}), spans_of(values))
    return None if pair.before == pair.after else pair


def text_of(spans: Spans) -> str:
    """The days as intervals of ISO 8601, "" without any.

    >>> text_of([Span("2026-01-01", "2026-06-30", 1), Span("2027-01-01", OPEN, 1)])
    '2026-01-01/2026-06-30 2027-01-01/..'
    """
    days = _joined(spans, today="")
    return " ".join(f"{begin}/{NO_END if end >= OPEN else end}" for begin, end in days)


def loss_of_texts(before: str, after: str, today: str) -> Loss | None:
    """The first days from `today` on that are lost between two accesses, given as `text_of` writes
    them; None if no day is.

    >>> loss_of_texts("2026-01-01/..", "2026-01-01/2026-11-20 2027-01-01/..", "2026-11-20")
    Loss(first_day='2026-11-21', last_day='2026-11-20', returns='2027-01-01')
    """
    return compare_access(_spans_of_text(before), _spans_of_text(after), today).loss


def _spans_of_text(text: str) -> Spans:
    """The days of `text_of`, under no plan."""
    pairs = [interval.split("/") for interval in text.split()]
    return [Span(begin, OPEN if end == NO_END else end, 0) for begin, end in pairs]


def has_access(values: Mapping[str, Any], first_day: str, last_day: str) -> bool:
    """Whether a span of the access, by all coverages, holds one of the days."""
    spans = spans_of_access(values)
    return any(span.begin <= last_day and span.end >= first_day for span in spans)


class AccessNote(NamedTuple):
    """What a report says of a changed access: the days before and after, as texts, and whether some
    day from today on is lost or gained.
    """

    before: str
    after: str
    is_lost: bool
    is_gained: bool

    @classmethod
    def of(cls, pair: AccessPair, today: str) -> "AccessNote":
        change = compare_access(*pair, today)
        is_lost = change.loss is not None
        return cls(text_of(pair.before), text_of(pair.after), is_lost, bool(change.gained_from))


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
    gained_from = gained[0][0] if gained else ""
    return AccessChange(loss, gained_from, _are_moved(before, after, today))


def _are_moved(before: Spans, after: Spans, today: str) -> bool:
    """Whether none of the plans of some day from today on is the same."""
    begins = {today, *(span.begin for span in (*before, *after) if span.begin > today)}
    for day in begins:
        plans_before = _plans_on(day, before)
        plans_after = _plans_on(day, after)
        if plans_before and plans_after and plans_before.isdisjoint(plans_after):
            return True
    return False


def _plans_on(day: str, spans: Spans) -> set[int]:
    return {plan_id for begin, end, plan_id in spans if begin <= day <= end}


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
