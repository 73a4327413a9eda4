"""How long a patient who joins a plan's queue now will wait: pure arithmetic; it knows no database, no clock and no names.

The doctors of a provider group serve all its plans, or some of them, in the order of arrival, so everyone who waits in a
sibling plan that shares doctors is ahead of the newcomer too.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

NOBODY_ON_DUTY = -1
DEFAULT_HANDLE_SECONDS = 900.0

# A visit that is already longer than expected is taken to need this part of a usual visit still.
OVERDUE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit in progress."""

    plan_id: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Doctor:
    """A doctor on duty. `plan_ids` None: all plans of the group. `capacity`: how many visits at a time."""

    plan_ids: frozenset[int] | None
    capacity: int
    visits: tuple[Visit, ...]


@dataclass(frozen=True, slots=True)
class PastVisit:
    """A visit that ended."""

    plan_id: int
    seconds: float
    ended_seconds_ago: float


@dataclass(frozen=True, slots=True)
class Pool:
    """A provider group now. `waiting`: the plan of each waiting patient, in the order they joined."""

    doctors: Sequence[Doctor]
    waiting: Sequence[int]
    past: Sequence[PastVisit]


def estimate_waits(
    pool: Pool, plan_ids: Collection[int], default_handle_seconds: float = DEFAULT_HANDLE_SECONDS
) -> dict[int, int]:
    """By plan: whole seconds, rounded up; 0 if a doctor is free for the newcomer, -1 if none is on duty for the plan.

    >>> doctor = Doctor(plan_ids=None, capacity=1, visits=(Visit(7, 300.0),))
    >>> estimate_waits(Pool([doctor], waiting=[7], past=[]), [7], 900.0)
    {7: 1500}
    """
    usual = {
        plan_id: _usual_seconds(pool.past, plan_id, default_handle_seconds)
        for plan_id in {
            *plan_ids,
            *pool.waiting,
            *(visit.plan_id for d in pool.doctors for visit in d.visits),
        }
    }
    free_in = []
    for doctor in pool.doctors:
        busy = sorted(_remaining(visit.elapsed_seconds, usual[visit.plan_id]) for visit in doctor.visits)
        free_in += [(seconds, doctor.plan_ids) for seconds in busy[: doctor.capacity]]
        free_in += [(0.0, doctor.plan_ids)] * (doctor.capacity - len(busy))
    for plan_id in pool.waiting:
        first = _first(free_in, plan_id)
        if first is not None:
            free_in[first] = (free_in[first][0] + usual[plan_id], free_in[first][1])
    waits = {}
    for plan_id in plan_ids:
        first = _first(free_in, plan_id)
        waits[plan_id] = NOBODY_ON_DUTY if first is None else ceil(free_in[first][0])
    return waits


def _first(free_in: Sequence[tuple[float, frozenset[int] | None]], plan_id: int) -> int | None:
    serving = [i for i, (_, plan_ids) in enumerate(free_in) if plan_ids is None or plan_id in plan_ids]
    return min(serving, key=lambda i: free_in[i][0]) if serving else None


def _usual_seconds(past: Sequence[PastVisit], plan_id: int, default_seconds: float) -> float:
    """The mean of the plan's past visits, else of the group's, else the default."""
    for sample in ([v.seconds for v in past if v.plan_id == plan_id], [v.seconds for v in past]):
        if sample:
            return max(1.0, sum(sample) / len(sample))
    return default_seconds


def _remaining(age: float, usual: float) -> float:
    return max(usual - age, usual * OVERDUE_SHARE)
