"""The estimators of a newcomer's wait, each with the data that the service has at that moment."""

from collections.abc import Callable
from functools import partial

from bench.wait_world import Day
from frontdesk.queues.backtest.judge import RIVALS, Question, Rival, ahead_of
from frontdesk.queues.estimate.model import DoctorPool, WaitEstimate
from frontdesk.queues.estimate.waits import estimate_waits

OURS = "frontdesk"
LOW, HIGH = "low", "high"  # the ends of our interval
AHEAD = "ahead"  # the number of patients ahead
HARDER = "AHT x position, idle seen"


def ours(day: Day, pool: DoctorPool, plan_id: int) -> WaitEstimate:
    """For the patient that has just come, so that the interval learns from the wait that follows."""
    default, records = day.scenario.default_seconds, day.known.records
    estimate = estimate_waits(pool, [plan_id], default, records)[plan_id]
    day.known.tell(str(day.joined), estimate)
    return estimate


def _rival(rule: Rival, day: Day, pool: DoctorPool, plan_id: int) -> float:
    return rule(Question(day.known, pool, plan_id, day.env.now, day.scenario.default_seconds))


OTHERS: dict[str, Callable[[Day, DoctorPool, int], float]] = {
    name: partial(_rival, rule) for name, rule in RIVALS.items()
}
ESTIMATORS = [OURS, *OTHERS]


def ask_all(day: Day, plan_id: int) -> dict[str, float]:
    """What each estimator says, the ends of our interval, and the number of patients ahead."""
    pool = day.known.pool(day.env.now)
    seconds, low, high = ours(day, pool, plan_id)
    said = {OURS: float(seconds), LOW: float(low or 0), HIGH: float(high or 0)}
    said[AHEAD] = float(_rival(ahead_of, day, pool, plan_id))
    return said | {name: estimate(day, pool, plan_id) for name, estimate in OTHERS.items()}
