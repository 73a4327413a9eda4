"""How long visits last, as a distribution per plan that knows how much a visit in progress still needs; pure, no clock.

Few visits are known at the start of a day, so each plan's own visits are mixed with the group's and with a broad curve
around what is known so far, which is the configured default at first.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import exp, log, sqrt
from statistics import NormalDist
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class PastVisit:
    """A visit that ended."""

    plan_id: int
    seconds: float
    ended_seconds_ago: float


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit in progress."""

    plan_id: int
    elapsed_seconds: float


class Point(NamedTuple):
    """A possible length and how much it counts."""

    seconds: float
    weight: float


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
OVERDUE_SHARE = 0.5  # a visit longer than any that is known needs this part of a usual visit still
RECORD_BEGAN = (
    8  # with fewer ended visits than so many per visit in progress, those ended are mostly the short ones
)
SHORTEST_SECONDS = 1.0


class Lengths:
    """A distribution of lengths as weighted points in order, with running sums so that any part of it is averaged fast."""

    def __init__(self, points: Iterable[Point]) -> None:
        ordered = sorted(points)
        self._seconds = [point.seconds for point in ordered]
        self._below = [0.0, *accumulate(point.weight for point in ordered)]
        self._sums = [0.0, *accumulate(point.seconds * point.weight for point in ordered)]
        self.mean_seconds = self._sums[-1] / self._below[-1]

    def parts(self, count: int, elapsed_seconds: float = 0.0) -> list[float]:
        """The rest of a visit that has lasted so long: the mean of each of `count` equally likely parts, in order."""
        start = bisect_right(self._seconds, elapsed_seconds)
        low, high = self._below[start], self._below[-1]
        if start == len(self._seconds):
            return [OVERDUE_SHARE * self.mean_seconds * part for part in _exponential_parts(count)]
        step = (high - low) / count
        sums = [self._sum_below(low + step * i, start) for i in range(count)] + [self._sums[-1]]
        return [max(0.0, (sums[i + 1] - sums[i]) / step - elapsed_seconds) for i in range(count)]

    def _sum_below(self, weight: float, start: int) -> float:
        at = min(max(bisect_right(self._below, weight) - 1, start), len(self._seconds) - 1)
        return self._sums[at] + (weight - self._below[at]) * self._seconds[at]


def lengths_by_plan(
    past: Sequence[PastVisit], in_progress: Sequence[Visit], plan_ids: Iterable[int], default_seconds: float
) -> dict[int, Lengths]:
    """What is known about each plan's visits. Never nothing: its own, then the group's, then the default."""
    own: defaultdict[int, list[float]] = defaultdict(list)
    for visit in sorted(past, key=lambda visit: visit.ended_seconds_ago):
        own[visit.plan_id].append(max(SHORTEST_SECONDS, visit.seconds))
    points = {plan_id: _weighted(seconds) for plan_id, seconds in own.items()}
    everyone = [point for of_plan in points.values() for point in of_plan]
    weight = sum(point.weight for point in everyone)
    known = sum(point.seconds * point.weight for point in everyone)
    mean = (known + DEFAULT_WEIGHT * default_seconds) / (weight + DEFAULT_WEIGHT)
    group = Lengths(everyone).parts(GROUP_POINTS) if everyone else []
    unended: defaultdict[int, list[float]] = defaultdict(list)
    if len(past) < RECORD_BEGAN * len(in_progress):
        for now in in_progress:
            unended[now.plan_id].append(now.elapsed_seconds)
    share = 1 - len(past) / (RECORD_BEGAN * len(in_progress)) if unended else 0.0
    mixed = {plan_id: _mixed(points.get(plan_id, []), group, weight, mean) for plan_id in plan_ids}
    return {plan_id: Lengths(_lasting(known, unended[plan_id], share)) for plan_id, known in mixed.items()}


def _mixed(own: list[Point], group: list[float], group_weight: float, mean_seconds: float) -> list[Point]:
    weight = sum(point.weight for point in own)
    from_group = min(GROUP_WEIGHT, group_weight) * GROUP_WEIGHT / (GROUP_WEIGHT + weight)
    points = list(own)
    points += [Point(seconds, from_group / len(group)) for seconds in group]
    points += [Point(mean_seconds * part, CURVE_WEIGHT / CURVE_POINTS) for part in _curve()]
    return points


def _lasting(points: list[Point], unended: list[float], share: float) -> list[Point]:
    """At the start of a record: each visit in progress is one more that lasts longer than it has lasted yet."""
    for elapsed in sorted(unended):
        above = sum(weight for seconds, weight in points if seconds > elapsed)
        if above > 0:
            more = 1 + share / above
            points = [Point(s, weight * more if s > elapsed else weight) for s, weight in points]
    return points


def _weighted(newest_first: list[float]) -> list[Point]:
    usual_long = sorted(newest_first)[int(0.95 * (len(newest_first) - 1))]
    longest = OUTLIER_TIMES * usual_long
    return [
        Point(min(seconds, longest), 0.5 ** (rank / HALVED_EVERY))
        for rank, seconds in enumerate(newest_first)
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
