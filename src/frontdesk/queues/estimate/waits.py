"""The wait estimate itself: the simulated wait, corrected for the doctors that are expected to come
or go and for what past estimates have taught, and its interval.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from functools import partial
from math import ceil, inf

from frontdesk.queues.estimate.model import LEAST_SECONDS, NOBODY_ON_DUTY, DoctorPool, Newcomer
from frontdesk.queues.estimate.record import PlanRecord, WaitEstimate
from frontdesk.queues.estimate.simulation import QueueSimulation, SimulatedWait
from frontdesk.queues.estimate.staffing import staffing_trend

# By the number of patients ahead, at least: what the lower and the upper half of the runs' interval
# are multiplied by, before a record is known.
WIDTHS = (
    (0, 1.0, 1.2),
    (1, 1.05, 1.2),
    (2, 1.05, 1.3),
    (4, 1.15, 1.25),
    (8, 1.45, 1.15),
    (16, 1.7, 1.3),
)
# The first visits of a group to end are the short ones. So the upper half is wider by this share up
# to YOUNG_VISITS ended visits for each place of a doctor, and as usual from GROWN_VISITS on. On 100
# simulated cold starts a quarter of the waits were longer than the interval without it.
YOUNG_WIDENING = 0.7
YOUNG_VISITS = 4.0
GROWN_VISITS = 7.5


def estimate_waits(
    pool: DoctorPool, plan_ids: Collection[int], records: Mapping[int, PlanRecord] | None = None
) -> dict[int, WaitEstimate]:
    """By plan, the estimate for a newcomer of whichever class (`estimate_newcomers`).

    >>> from frontdesk.queues.estimate.model import Doctor
    >>> estimate_waits(DoctorPool([Doctor(None, 1, ())], waiting=[], past=[]), [7])[7].seconds
    0
    """
    found = estimate_newcomers(pool, [Newcomer(plan_id) for plan_id in plan_ids], records)
    return {newcomer.plan_id: estimate for newcomer, estimate in found.items()}


def estimate_newcomers(
    pool: DoctorPool,
    newcomers: Collection[Newcomer],
    records: Mapping[int, PlanRecord] | None = None,
) -> dict[Newcomer, WaitEstimate]:
    """Whole seconds, rounded up; 0 if a doctor is ready for the newcomer, -1 if none is on duty for
    the plan.

    The doctors of a provider group serve all its plans, or some of them, the higher priority first
    and then in the order of arrival. So patients of sibling plans that share doctors are served
    before the newcomer. `records`: by plan, what its past estimates have taught.
    """
    simulation = QueueSimulation(pool, {newcomer.plan_id for newcomer in newcomers})
    doctors = sum(doctor.capacity > 0 for doctor in pool.doctors)
    trend = staffing_trend(pool.duty) if doctors else None
    widening = _widening(pool, simulation.known_seconds)
    is_late = pool.feed_late_seconds > LEAST_SECONDS
    known = records or {}
    estimates = {}
    for newcomer, simulated in simulation.waits(newcomers).items():
        if simulated is None:
            estimates[newcomer] = WaitEstimate(NOBODY_ON_DUTY, None, None)
            continue
        expected = simulated
        if trend and simulated.high:
            visit = simulation.mean_seconds(newcomer.plan_id)
            expected = simulated.changed(partial(trend.corrected, doctors=doctors, visit=visit))
        record = known.get(newcomer.plan_id, PlanRecord())
        estimates[newcomer] = with_record(
            expected, record, newcomer.patient_class, is_late=is_late, widening=widening
        )
    return estimates


def with_record(
    simulated: SimulatedWait,
    record: PlanRecord,
    patient_class: str | None = None,
    *,
    is_late: bool = False,
    widening: float = 1.0,
) -> WaitEstimate:
    """The wait in whole seconds, rounded up, with its interval, by what the plan's record says.

    `is_late`: the feed is late, and its errors are not those of the estimate; `widening`: of the
    upper half.

    >>> with_record(SimulatedWait(300.0, 200.0, 500.0, ahead=3), PlanRecord())[:3]
    (300, 195, 560)
    """
    factor = 1.0 if is_late else record.correction(patient_class)
    seconds = factor * simulated.seconds
    _, below, above = WIDTHS[bisect_right(WIDTHS, simulated.ahead, key=lambda row: row[0]) - 1]
    learnt_below, learnt_above = record.width_factors(simulated.ahead)
    # Those of the runs, not multiplied by the factor: it makes no estimate surer.
    lower_half = below * learnt_below * max(0.0, simulated.seconds - simulated.low)
    upper_half = above * learnt_above * widening * max(0.0, simulated.high - simulated.seconds)
    rounded = ceil(seconds)
    raw = None if is_late else simulated.seconds
    return WaitEstimate(
        rounded,
        max(0, min(rounded, int(seconds - lower_half))),
        max(rounded, ceil(seconds + upper_half)),
        record.basis(simulated.ahead, raw, patient_class),
    )


def _widening(pool: DoctorPool, known_seconds: float) -> float:
    """What the upper half is multiplied by while the visits of the group are few. `known_seconds`:
    for how long all visits are known, infinite for a group with fewer visits than are looked at.
    """
    places = sum(doctor.capacity for doctor in pool.doctors)
    if known_seconds < inf or not places:
        return 1.0
    ended = len(pool.past) / places
    young = (GROWN_VISITS - ended) / (GROWN_VISITS - YOUNG_VISITS)
    return 1.0 + YOUNG_WIDENING * min(1.0, max(0.0, young))
