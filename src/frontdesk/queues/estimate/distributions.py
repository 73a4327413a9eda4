"""The lengths of a plan's visits: its own past visits, mixed with the group's and with a broad
curve around the mean so far. A class of patients with visits enough has lengths of its own.

Few visits are known at the start of a day. The configured default counts as some of the group's
visits.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from math import exp, log, sqrt
from operator import attrgetter
from statistics import NormalDist

from frontdesk.queues.estimate.arrivals import Kind
from frontdesk.queues.estimate.model import DEFAULT_VISIT_SECONDS, SHORTEST_SECONDS, PastVisit

# A possible length in seconds, and its weight: a point of weight 1 is one observation.
Point = tuple[float, float]

HALVED_EVERY = 100  # the hundredth visit back counts half
OUTLIER_TIMES = (
    3.0  # longer visits count as this many times the 95th percentile: their ends were forgotten
)
# The visits of the group count as so many of the plan's own while the plan has none; then less. So
# do those of the plan for a class.
GROUP_WEIGHT = 4.0
CLASS_VISITS = 15  # with fewer known visits a class has the lengths of its plan
DEFAULT_WEIGHT = 2.0  # number of the group's visits that the default counts as
CURVE_SPREAD = (
    0.8  # the standard deviation of the broad curve, in means; the curve counts as one visit
)
POINTS = 16  # by which a curve, the group's visits or many pauses are represented
OVERDUE_SHARE = 0.3  # a visit longer than any known one still needs this part of its time so far


class Lengths:
    """A distribution of lengths: weighted points in order, with running sums to average any part of
    it fast.
    """

    def __init__(self, points: Iterable[Point]) -> None:
        ordered = sorted(points)
        self._seconds = [seconds for seconds, _ in ordered]
        self._below = [0.0, *accumulate([weight for _, weight in ordered])]
        self._sums = [0.0, *accumulate([seconds * weight for seconds, weight in ordered])]

    def parts(self, count: int, elapsed_seconds: float = 0.0) -> list[float]:
        """The remaining seconds of something that has lasted `elapsed_seconds`: the means of
        `count` equally likely parts.

        >>> lengths = Lengths([(300.0, 1.0), (600.0, 1.0)])
        >>> lengths.parts(2)
        [300.0, 600.0]
        >>> lengths.parts(2, elapsed_seconds=400.0)
        [200.0, 200.0]
        """
        seconds = self._seconds
        below = self._below
        sums = self._sums
        end = len(self._seconds)
        # A length of 0 is possible as long as no time has passed.
        first = bisect_right(seconds, elapsed_seconds) if elapsed_seconds > 0 else 0
        if first == end:
            return [OVERDUE_SHARE * elapsed_seconds * part for part in _exponential_parts(count)]
        low = below[first]
        step = (below[-1] - below[first]) / count
        upto = [sums[first]]
        for i in range(1, count + 1):
            weight = low + step * i
            at = bisect_left(below, weight, first + 1, end) - 1
            upto.append(sums[at] + (weight - below[at]) * seconds[at])
        rests = [(after - before) / step - elapsed_seconds for before, after in pairwise(upto)]
        # In order, so only the first ones can be below 0, by rounding.
        return rests if rests[0] >= 0 else [max(0.0, rest) for rest in rests]


def lengths_by_kind(past: Sequence[PastVisit], kinds: Collection[Kind]) -> dict[Kind, Lengths]:
    """The distribution of the visits of each kind, a plan and a class of its patients.

    A plan's is that of its own visits, the group's and the default. A class with CLASS_VISITS known
    visits has its own visits and the plan's distribution; another class, and None, has the plan's.

    >>> past = [PastVisit(1, 600.0, ended_seconds_ago=60.0)] * 50
    >>> [round(seconds) for seconds in lengths_by_kind(past, [(1, None)])[1, None].parts(3)]
    [589, 600, 612]
    """
    newest_first = sorted(past, key=attrgetter("ended_seconds_ago"))
    of_plans = _lengths_by_plan(newest_first, {plan_id for plan_id, _ in kinds})
    found = {}
    for plan_id, patient_class in kinds:
        known = of_plans[plan_id]
        if patient_class is not None:
            own = [
                visit.seconds
                for visit in newest_first
                if visit.plan_id == plan_id and visit.patient_class == patient_class
            ]
            if len(own) >= CLASS_VISITS:
                known = _lengths_of_class(own, known)
        found[plan_id, patient_class] = known
    return found


def _lengths_of_class(newest_first: list[float], of_plan: Lengths) -> Lengths:
    points = _weighted(newest_first)
    known = sum(weight for _, weight in points)
    from_plan = GROUP_WEIGHT * GROUP_WEIGHT / (GROUP_WEIGHT + known) / POINTS
    return Lengths([*points, *((seconds, from_plan) for seconds in of_plan.parts(POINTS))])


def _lengths_by_plan(
    newest_first: Iterable[PastVisit], plan_ids: Iterable[int]
) -> dict[int, Lengths]:
    by_plan: defaultdict[int, list[float]] = defaultdict(list)
    for visit in newest_first:
        by_plan[visit.plan_id].append(visit.seconds)
    own = {plan_id: _weighted(seconds) for plan_id, seconds in by_plan.items()}
    everyone = [point for points in own.values() for point in points]
    known = sum(weight for _, weight in everyone)
    mean = (
        sum(seconds * weight for seconds, weight in everyone)
        + DEFAULT_WEIGHT * DEFAULT_VISIT_SECONDS
    )
    mean /= known + DEFAULT_WEIGHT
    group = Lengths(everyone).parts(POINTS) if everyone else []
    curve_points = [(mean * part, 1 / POINTS) for part in curve()]
    found = {}
    for plan_id in plan_ids:
        points = own.get(plan_id, [])
        weight = sum(weight for _, weight in points)
        from_group = min(GROUP_WEIGHT, known) * GROUP_WEIGHT / (GROUP_WEIGHT + weight) / POINTS
        found[plan_id] = Lengths(
            [*points, *((seconds, from_group) for seconds in group), *curve_points]
        )
    return found


def _weighted(newest_first: list[float]) -> list[Point]:
    usual_long = sorted(newest_first)[int(0.95 * (len(newest_first) - 1))]
    longest = max(SHORTEST_SECONDS, OUTLIER_TIMES * usual_long)
    points = zip(newest_first, recency_weights(len(newest_first)), strict=True)
    return [(min(longest, max(SHORTEST_SECONDS, seconds)), weight) for seconds, weight in points]


@cache
def recency_weights(count: int) -> list[float]:
    """The weights of so many visits, the newest first.

    >>> recency_weights(201)[::100]
    [1.0, 0.5, 0.25]
    """
    return [0.5 ** (rank / HALVED_EVERY) for rank in range(count)]


@cache
def curve() -> tuple[float, ...]:
    """A log-normal curve with mean 1 as equally likely points.

    >>> round(sum(curve()) / len(curve()), 9)
    1.0
    """
    sigma = sqrt(log(1 + CURVE_SPREAD**2))
    points = [exp(sigma * NormalDist().inv_cdf((i + 0.5) / POINTS)) for i in range(POINTS)]
    mean = sum(points) / POINTS
    return tuple(point / mean for point in points)


@cache
def _exponential_parts(count: int) -> tuple[float, ...]:
    """The means of the equally likely parts of an exponential curve with mean 1, in order."""
    left = [1 - i / count for i in range(count + 1)]
    sums = [share * (1 - log(share)) if share > 0 else 0.0 for share in left]
    return tuple((sums[i] - sums[i + 1]) * count for i in range(count))
