"""How long visits last, as a distribution per plan that knows how much a visit in progress still needs; pure, no clock.

Few visits are known at the start of a day, so each plan's own visits are mixed with the group's and with a broad curve
around what is known so far, which is the configured default at first.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from math import exp, log, sqrt
from statistics import NormalDist

from frontdesk.queues.pool import PastVisit, Visit

# A possible length in seconds and how much it counts.
Point = tuple[float, float]

HALVED_EVERY = 100  # the hundredth visit back counts half
OUTLIER_TIMES = 3.0  # a visit counts as at most so many times the 95th percentile: somebody forgot to end it
GROUP_WEIGHT = (
    4.0  # the group's visits count as so many of the plan's own while it has none, less and less after
)
DEFAULT_WEIGHT = 2.0  # the default counts as so many visits of the group
CURVE_WEIGHT = 1.0  # the broad curve counts as so many of the plan's own visits
CURVE_SPREAD = 0.8  # its standard deviation, in means
CURVE_POINTS = 12
GROUP_POINTS = 16
OVERDUE_SHARE = 0.3  # a visit longer than any that is known needs this part of its time so far still
SHORTEST_SECONDS = 1.0

# A plan's record begins while it has fewer ended visits than so many per visit in progress, and than so many in all:
# those that have ended are mostly the short ones.
BEGUN_VISITS_EACH = 8
BEGUN_VISITS = 50


class Lengths:
    """A distribution of lengths as weighted points in order, with running sums so that any part of it is averaged fast."""

    def __init__(self, points: Sequence[Point]) -> None:
        ordered = sorted(points)
        self._seconds = [seconds for seconds, _ in ordered]
        self._below = [0.0, *accumulate([weight for _, weight in ordered])]
        self._sums = [0.0, *accumulate([seconds * weight for seconds, weight in ordered])]

    def parts(self, count: int, elapsed_seconds: float = 0.0) -> list[float]:
        """The rest of a visit that has lasted so long: the mean of each of `count` equally likely parts, in order."""
        seconds, below, sums = self._seconds, self._below, self._sums
        at, last = bisect_right(seconds, elapsed_seconds), len(seconds) - 1
        if at > last:
            overdue = OVERDUE_SHARE * elapsed_seconds
            return [overdue * part for part in _exponential_parts(count)]
        low, step = below[at], (below[-1] - below[at]) / count
        parts, before = [], sums[at]
        for i in range(1, count + 1):
            weight = low + step * i
            while at < last and below[at + 1] < weight:
                at += 1
            upto = sums[at] + (weight - below[at]) * seconds[at]
            parts.append(max(0.0, (upto - before) / step - elapsed_seconds))
            before = upto
        return parts


def lengths_by_plan(
    past: Sequence[PastVisit], in_progress: Iterable[Visit], plan_ids: Iterable[int], default_seconds: float
) -> dict[int, Lengths]:
    """What is known about each plan's visits. Never nothing: its own, then the group's, then the default."""
    own: defaultdict[int, list[float]] = defaultdict(list)
    for visit in sorted(past, key=lambda visit: visit.ended_seconds_ago):
        own[visit.plan_id].append(max(SHORTEST_SECONDS, visit.seconds))
    points = {plan_id: _weighted(seconds) for plan_id, seconds in own.items()}
    everyone = [point for of_plan in points.values() for point in of_plan]
    weight = sum(weight for _, weight in everyone)
    known = sum(seconds * weight for seconds, weight in everyone)
    mean = (known + DEFAULT_WEIGHT * default_seconds) / (weight + DEFAULT_WEIGHT)
    group = Lengths(everyone).parts(GROUP_POINTS) if everyone else []
    unended: defaultdict[int, list[float]] = defaultdict(list)
    for now in in_progress:
        unended[now.plan_id].append(now.elapsed_seconds)
    return {
        plan_id: Lengths(
            _lasting(
                _mixed(points.get(plan_id, []), group, weight, mean), unended[plan_id], len(own[plan_id])
            )
        )
        for plan_id in plan_ids
    }


def _mixed(own: list[Point], group: list[float], group_weight: float, mean_seconds: float) -> list[Point]:
    weight = sum(weight for _, weight in own)
    from_group = min(GROUP_WEIGHT, group_weight) * GROUP_WEIGHT / (GROUP_WEIGHT + weight)
    points = own + [(seconds, from_group / len(group)) for seconds in group]
    return points + [(mean_seconds * part, CURVE_WEIGHT / CURVE_POINTS) for part in _curve()]


def _lasting(points: list[Point], unended: list[float], ended: int) -> list[Point]:
    """While a record begins, each visit in progress is one more that lasts longer than it has lasted yet."""
    begun = min(BEGUN_VISITS_EACH * len(unended), BEGUN_VISITS)
    if ended >= begun:
        return points
    ordered, longer = sorted(points), iter(sorted(unended))
    above, factor, result = sum(weight for _, weight in ordered), 1.0, []
    elapsed = next(longer, None)
    for seconds, weight in ordered:
        while elapsed is not None and elapsed < seconds:
            factor += (1 - ended / begun) / above
            elapsed = next(longer, None)
        above -= weight
        result.append((seconds, weight * factor))
    return result


def _weighted(newest_first: list[float]) -> list[Point]:
    usual_long = sorted(newest_first)[int(0.95 * (len(newest_first) - 1))]
    longest = OUTLIER_TIMES * usual_long
    return [
        (min(seconds, longest), 0.5 ** (rank / HALVED_EVERY)) for rank, seconds in enumerate(newest_first)
    ]


@cache
def _curve() -> tuple[float, ...]:
    """A log-normal curve with mean 1 as equally likely points."""
    sigma = sqrt(log(1 + CURVE_SPREAD**2))
    points = [exp(sigma * NormalDist().inv_cdf((i + 0.5) / CURVE_POINTS)) for i in range(CURVE_POINTS)]
    mean = sum(points) / CURVE_POINTS
    return tuple(point / mean for point in points)


@cache
def _exponential_parts(count: int) -> tuple[float, ...]:
    """The means of the equally likely parts of an exponential curve with mean 1, in order."""
    left = [1 - i / count for i in range(count + 1)]
    sums = [share * (1 - log(share)) if share > 0 else 0.0 for share in left]
    return tuple((sums[i] - sums[i + 1]) * count for i in range(count))
