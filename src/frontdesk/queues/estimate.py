"""How long a patient who joins a plan's queue now will wait: a pure calculation over the doctors' shared pool.

The doctors of a provider group serve all its plans in the order of arrival, so everyone who waits in a sibling plan is
ahead of the newcomer too. Each waiting patient takes the doctor who is free first; the wait is when the next doctor is
free after all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import ceil

NOBODY_ON_DUTY = -1
DEFAULT_HANDLE_SECONDS = 900.0

# A visit that is already longer than expected is taken to need this part of a usual visit still.
OVERDUE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Pool:
    """A provider group now. Times in seconds: for each visit in progress its age and what such a visit usually takes, for
    each waiting patient what their visit will usually take, in order of arrival."""

    doctors: int
    visits_in_progress: Sequence[tuple[float, float]]
    waiting: Sequence[float]


def estimate_wait(pool: Pool) -> int:
    """Whole seconds, rounded up; 0 if a doctor is free for the newcomer, -1 if none is on duty.

    >>> estimate_wait(Pool(doctors=1, visits_in_progress=[(300.0, 900.0)], waiting=[900.0]))
    1500
    """
    if pool.doctors <= 0:
        return NOBODY_ON_DUTY
    free_in = sorted(_remaining(age, usual) for age, usual in pool.visits_in_progress)[: pool.doctors]
    free_in = [0.0] * (pool.doctors - len(free_in)) + free_in
    heapify(free_in)
    for handle_seconds in pool.waiting:
        heapreplace(free_in, free_in[0] + handle_seconds)
    return ceil(free_in[0])


def usual_seconds(*samples: Sequence[float]) -> float:
    """The mean of the first list that is not empty (this plan's recent visits, then the group's), else the default."""
    for sample in samples:
        if sample:
            return max(1.0, sum(sample) / len(sample))
    return DEFAULT_HANDLE_SECONDS


def _remaining(age: float, usual: float) -> float:
    return max(usual - age, usual * OVERDUE_SHARE)
