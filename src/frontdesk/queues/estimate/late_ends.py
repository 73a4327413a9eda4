"""Ends of visits that are told late: the doctor has taken the next patient, or could have, while the last visit still looks
in progress.

It shows where somebody waited: the doctor then takes the next patient when the visit is over, whatever the feed says.
"""

from collections.abc import Collection, Sequence
from operator import mul

from frontdesk.queues.estimate.distributions import Lengths, recency_weights
from frontdesk.queues.estimate.model import PastVisit

IN_TIME_WEIGHT = 2.0  # number of ends told in time that are assumed before any is known
SHORTEST_SECONDS = 5.0  # where no end is told later, all are told in time
SHORTEST_VISIT_SECONDS = 1.0


class LateEnds:
    """How late the ends of visits are told. `known`: whether any was late; `mean_seconds`: over all, also those in time."""

    def __init__(self, overruns: Sequence[float]) -> None:
        """`overruns`: by visit after which somebody waited, the latest first, how many seconds late its end was told."""
        self.known = max(overruns, default=0.0) > SHORTEST_SECONDS
        self.mean_seconds = 0.0
        if self.known:
            weights = recency_weights(len(overruns))[: len(overruns)]
            self._lengths = Lengths([(0.0, IN_TIME_WEIGHT), *zip(overruns, weights, strict=True)])
            late = sum(map(mul, overruns, weights))
            self.mean_seconds = late / (IN_TIME_WEIGHT + sum(weights))

    def parts(self, count: int) -> list[float]:
        """`count` equally likely parts, in order. Only where `known`."""
        return self._lengths.parts(count)

    def corrected(self, past: Sequence[PastVisit], confirmed: Collection[int]) -> list[PastVisit]:
        """The visits without the usual lateness of their ends, but for those at the places `confirmed`: their ends are sure."""
        return [
            visit
            if place in confirmed
            else visit._replace(seconds=max(SHORTEST_VISIT_SECONDS, visit.seconds - self.mean_seconds))
            for place, visit in enumerate(past)
        ]
