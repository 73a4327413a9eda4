"""How long a patient who joins a plan's queue now will wait: pure arithmetic; it knows no database, no clock and no names.

The doctors of a provider group serve all its plans, or some of them, in the order of arrival, so everyone who waits in a
sibling plan that shares doctors is ahead of the newcomer too. docs/wait-estimate.md has the formula and the measured error.

For whoever fills a `Pool` (queues/pool.py): `past_waits` with `waited`, and `duty`, may be left out; the estimate then takes
it that nobody leaves the line and that the doctors stay as many as they are.
"""

from collections.abc import Collection
from math import ceil

from frontdesk.queues.near_future import NearFuture
from frontdesk.queues.pool import Doctor, DutySpan, PastVisit, PastWait, Pool, Visit
from frontdesk.queues.staffing import staffing

__all__ = [
    "DEFAULT_HANDLE_SECONDS",
    "NOBODY_ON_DUTY",
    "Doctor",
    "DutySpan",
    "PastVisit",
    "PastWait",
    "Pool",
    "Visit",
    "estimate_waits",
]

NOBODY_ON_DUTY = -1
DEFAULT_HANDLE_SECONDS = 900.0


def estimate_waits(
    pool: Pool, plan_ids: Collection[int], default_handle_seconds: float = DEFAULT_HANDLE_SECONDS
) -> dict[int, int]:
    """By plan: whole seconds, rounded up; 0 if a doctor is free for the newcomer, -1 if none is on duty for the plan.

    >>> estimate_waits(Pool([Doctor(None, 1, ())], waiting=[], past=[]), [7], 900.0)
    {7: 0}
    """
    future = NearFuture(pool, plan_ids, default_handle_seconds)
    waits = future.waits(plan_ids)
    doctors = sum(doctor.capacity > 0 for doctor in pool.doctors)
    change = staffing(pool.duty) if doctors else None
    if change:
        waits = {
            plan_id: wait and change.stretched(wait, doctors, future.usual_seconds(plan_id))
            for plan_id, wait in waits.items()
        }
    return {plan_id: NOBODY_ON_DUTY if wait is None else ceil(wait) for plan_id, wait in waits.items()}
