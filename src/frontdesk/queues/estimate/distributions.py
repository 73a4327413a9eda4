"""What the past tells of the length of a plan's visits.

Few visits are known at the start of a day. So each plan's own visits are mixed with the group's and with a broad curve around
the mean so far, which is the configured default at first.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate, pairwise
from math import exp, log, sqrt
from operator import attrgetter, mul, sub
from statistics import NormalDist

from frontdesk.queues.estimate.model import OngoingVisit, PastVisit

# A possible length in seconds and how much it counts.
Point = tuple[float, float]

HALVED_EVERY = 100  # the hundredth visit back counts half
OUTLIER_TIMES = 3.0  # longer visits count as this many times the 95th percentile: somebody forgot to end them
GROUP_WEIGHT = 4.0  # number of the plan's own visits that the group's count as while the plan has none; then less and less
DEFAULT_WEIGHT = 2.0  # number of the group's visits that the default counts as
CURVE_WEIGHT = 1.0  # number of the plan's own visits that the broad curve counts as
CURVE_SPREAD = 0.8  # its standard deviation, in means
CURVE_POINTS = 12
GROUP_POINTS = 16
OVERDUE_SHARE = 0.3  # a visit longer than any known one still needs this part of its time so far
SHORTEST_SECONDS = 1.0

# A plan's record is young while it has fewer ended visits than this per visit in progress, and than this in all: the visits
# that have ended are mostly the short ones.
YOUNG_VISITS_EACH = 8
YOUNG_VISITS = 50

KEPT_GROUPS = 64  # provider groups whose distributions are kept in memory


class Lengths:
    """A distribution of lengths: weighted points in order, with running sums to average any part of it fast."""

    def __init__(self, points: Sequence[Point]) -> None:
        ordered = sorted(points)
        self._seconds = [seconds for seconds, _ in ordered]
        self._below = [0.0, *accumulate([weight for _, weight in ordered])]
        self._sums = [0.0, *accumulate([seconds * weight for seconds, weight in ordered])]
        self._from_start: dict[int, list[float]] = {}

    @cached_property
    def doubt(self) -> float:
        """How well the mean is known: its standard error, as a share of it. A point of weight 1 is one observation."""
        weight = self._below[-1]
        mean = self._sums[-1] / weight
        squares = sum(
            map(mul, map(mul, self._seconds, self._seconds), map(sub, self._below[1:], self._below))
        )
        return sqrt(max(0.0, squares / weight - mean * mean) / weight) / mean if mean > 0 else 0.0

    def parts(self, count: int, elapsed_seconds: float = 0.0) -> list[float]:
        """The remaining seconds of something that has lasted `elapsed_seconds`: the means of `count` equally likely parts."""
        # A length of 0 is possible as long as no time has passed.
        if elapsed_seconds > 0:
            return self._parts(count, elapsed_seconds, bisect_right(self._seconds, elapsed_seconds))
        parts = self._from_start.get(count)
        if parts is None:
            parts = self._from_start[count] = self._parts(count, 0.0, 0)
        return parts

    def _parts(self, count: int, elapsed_seconds: float, first: int) -> list[float]:
        """`first`: the place of the shortest length that is still possible."""
        seconds, below, sums, end = self._seconds, self._below, self._sums, len(self._seconds)
        if first == end:
            return [OVERDUE_SHARE * elapsed_seconds * part for part in _exponential_parts(count)]
        low, step = below[first], (below[-1] - below[first]) / count
        upto = [sums[first]]
        for i in range(1, count + 1):
            weight = low + step * i
            at = bisect_left(below, weight, first + 1, end) - 1
            upto.append(sums[at] + (weight - below[at]) * seconds[at])
        rests = [(after - before) / step - elapsed_seconds for before, after in pairwise(upto)]
        # In order, so only the first ones can be below 0, by rounding.
        return rests if rests[0] >= 0 else [max(0.0, rest) for rest in rests]


def lengths_by_plan(
    past: Sequence[PastVisit],
    in_progress: Iterable[OngoingVisit],
    plan_ids: Iterable[int],
    default_seconds: float,
) -> dict[int, Lengths]:
    """The distribution of each plan's visits: from its own, the group's and the default."""
    own: defaultdict[int, list[float]] = defaultdict(list)
    for visit in sorted(past, key=attrgetter("ended_seconds_ago")):
        own[visit.plan_id].append(visit.seconds)
    known = _known_lengths(tuple((plan_id, *seconds) for plan_id, seconds in own.items()), default_seconds)
    ongoing: defaultdict[int, list[float]] = defaultdict(list)
    for now in in_progress:
        ongoing[now.plan_id].append(now.elapsed_seconds)
    return {plan_id: known.lengths_of(plan_id, ongoing[plan_id]) for plan_id in plan_ids}


class _KnownLengths:
    """What the ended visits of a group tell: the same until the next one ends, so it is kept between two estimates."""

    def __init__(self, own: Iterable[tuple[float, ...]], default_seconds: float) -> None:
        """`own`: a plan's id, then the seconds of its visits, the newest first."""
        self._own = {int(plan_id): _weighted(seconds) for plan_id, *seconds in own}
        everyone = [point for of_plan in self._own.values() for point in of_plan]
        self._weight = sum(weight for _, weight in everyone)
        known = sum(seconds * weight for seconds, weight in everyone)
        self._mean = (known + DEFAULT_WEIGHT * default_seconds) / (self._weight + DEFAULT_WEIGHT)
        self._group = Lengths(everyone).parts(GROUP_POINTS) if everyone else []
        self._lengths: dict[int, Lengths] = {}

    def lengths_of(self, plan_id: int, ongoing: list[float]) -> Lengths:
        ended = len(self._own.get(plan_id, ()))
        if ended < min(YOUNG_VISITS_EACH * len(ongoing), YOUNG_VISITS):
            return Lengths(_with_ongoing(self._mixed(plan_id), ongoing, ended))
        lengths = self._lengths.get(plan_id)
        if lengths is None:
            lengths = self._lengths[plan_id] = Lengths(self._mixed(plan_id))
        return lengths

    def _mixed(self, plan_id: int) -> list[Point]:
        own = self._own.get(plan_id, [])
        weight = sum(weight for _, weight in own)
        from_group = min(GROUP_WEIGHT, self._weight) * GROUP_WEIGHT / (GROUP_WEIGHT + weight)
        points = own + [(seconds, from_group / len(self._group)) for seconds in self._group]
        return points + [(self._mean * part, CURVE_WEIGHT / CURVE_POINTS) for part in curve()]


_known_lengths = lru_cache(maxsize=KEPT_GROUPS)(_KnownLengths)


def _with_ongoing(points: list[Point], ongoing: list[float], ended: int) -> list[Point]:
    """While a record is young, each visit in progress counts as one more that lasts longer than it has lasted so far."""
    young = min(YOUNG_VISITS_EACH * len(ongoing), YOUNG_VISITS)
    ordered, longer = sorted(points), iter(sorted(ongoing))
    above, factor, result = sum(weight for _, weight in ordered), 1.0, []
    elapsed = next(longer, None)
    for seconds, weight in ordered:
        while elapsed is not None and elapsed < seconds:
            factor += (1 - ended / young) / above
            elapsed = next(longer, None)
        above -= weight
        result.append((seconds, weight * factor))
    return result


def _weighted(newest_first: list[float]) -> list[Point]:
    usual_long = sorted(newest_first)[int(0.95 * (len(newest_first) - 1))]
    longest = max(SHORTEST_SECONDS, OUTLIER_TIMES * usual_long)
    points = zip(newest_first, recency_weights(len(newest_first)), strict=False)
    # In order, so that the distributions that they are mixed into are sorted fast.
    return sorted([(min(longest, max(SHORTEST_SECONDS, seconds)), weight) for seconds, weight in points])


def recency_weights(count: int) -> Sequence[float]:
    """What the newest, the second newest, ... count; at least `count` of them."""
    return _weights(1 << max(7, count.bit_length()))


@cache
def _weights(count: int) -> list[float]:
    return [0.5 ** (rank / HALVED_EVERY) for rank in range(count)]


@cache
def curve() -> tuple[float, ...]:
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
