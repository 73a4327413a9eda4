"""The estimators of a newcomer's wait, each with the data that the service has at that moment."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bench.wait_world import Day
from frontdesk.queues.backtest.rivals import RIVALS, Question, Rival
from frontdesk.queues.estimate.model import DoctorPool
from frontdesk.queues.estimate.waits import estimate_waits

OURS = "frontdesk"
OURS_WITH_LESS = "frontdesk, less data"
HARDER = "AHT x position, idle seen"


def ours(day: Day, plan_id: int) -> float:
    return _estimate(day, day.known.pool(day.env.now), plan_id)


def ours_with_less(day: Day, plan_id: int) -> float:
    """The same without data on patients that left unseen and on doctors that came and went."""
    return _estimate(day, replace(day.known.pool(day.env.now), waited=(), past_waits=(), duty=()), plan_id)


def _estimate(day: Day, pool: DoctorPool, plan_id: int) -> float:
    return float(estimate_waits(pool, [plan_id], day.scenario.default_seconds)[plan_id])


def _rival(rule: Rival, day: Day, plan_id: int) -> float:
    return rule(Question(day.known, plan_id, day.env.now, day.scenario.default_seconds))


ESTIMATORS: dict[str, Callable[[Day, int], float]] = {
    OURS: ours,
    OURS_WITH_LESS: ours_with_less,
    **{name: partial(_rival, rule) for name, rule in RIVALS.items()},
}


def ask_all(day: Day, plan_id: int) -> dict[str, float]:
    return {name: estimate(day, plan_id) for name, estimate in ESTIMATORS.items()}
