"""The estimators of a newcomer's wait, each with the data that the service has at that moment."""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from math import factorial

from bench.wait_world import HOUR, Day
from frontdesk.queues.estimate.waits import estimate_waits

OURS = "frontdesk"
OURS_WITH_LESS = "frontdesk, less data"
HARDER = "AHT x position, idle seen"
FULL = 0.95  # a queue that grows without bound has no mean wait: the formula is asked for this load at most


def ours(day: Day, plan_id: int) -> float:
    return float(estimate_waits(day.pool(), [plan_id], day.scenario.default_seconds)[plan_id])


def ours_with_less(day: Day, plan_id: int) -> float:
    """The same without data on patients that left unseen and on doctors that came and went."""
    pool = replace(day.pool(), waited=(), past_waits=(), duty=())
    return float(estimate_waits(pool, [plan_id], day.scenario.default_seconds)[plan_id])


def handle_time_by_position(day: Day, plan_id: int) -> float:
    """Handle time x position / doctors, counted over all plans that share a doctor with this one, as a careful product would."""
    sharing = _sharing(day, plan_id)
    ahead = [p for p in day.line if not p.left and p.plan_id in sharing]
    return _handle_seconds(day, plan_id) * (len(ahead) + 1) / _places(day, plan_id)


def the_same_with_idle(day: Day, plan_id: int) -> float:
    """The same by a product that also sees an idle doctor. Not one of the four: a harder one, for comparison."""
    idle = any(doctor.is_free() and doctor.serves(plan_id) for doctor in day.staff)
    return 0.0 if idle else handle_time_by_position(day, plan_id)


def erlang_c(day: Day, plan_id: int) -> float:
    """The mean wait of M/M/c with the last hour's arrivals and the known visits."""
    places, handle = _places(day, plan_id), _handle_seconds(day, plan_id)
    since = max(0.0, day.env.now - HOUR)
    recent = takewhile(lambda joined: joined[1] > since, reversed(day.joined))
    sharing = _sharing(day, plan_id)
    arrivals = sum(plan in sharing for plan, _ in recent)
    load = min(arrivals * handle / max(1.0, day.env.now - since), FULL * places)
    top = load**places / factorial(places) * places / (places - load)
    p_wait = top / (sum(load**k / factorial(k) for k in range(places)) + top)
    return p_wait * handle / (places - load)


def last_wait(day: Day, plan_id: int) -> float:
    """The wait of the plan's patient that was seen last."""
    return next((wait for plan, _, wait in reversed(day.seen) if plan == plan_id), 0.0)


def mean_of_the_last_hour(day: Day, plan_id: int) -> float:
    since = day.env.now - HOUR
    recent = takewhile(lambda seen: seen[1] > since, reversed(day.seen))
    waits = [wait for plan, _, wait in recent if plan == plan_id]
    return sum(waits) / len(waits) if waits else last_wait(day, plan_id)


ESTIMATORS: dict[str, Callable[[Day, int], float]] = {
    OURS: ours,
    OURS_WITH_LESS: ours_with_less,
    "AHT x position": handle_time_by_position,
    "Erlang C": erlang_c,
    "last wait": last_wait,
    "mean of the last hour": mean_of_the_last_hour,
    HARDER: the_same_with_idle,
}


def ask_all(day: Day, plan_id: int) -> dict[str, float]:
    return {name: estimate(day, plan_id) for name, estimate in ESTIMATORS.items()}


def _places(day: Day, plan_id: int) -> int:
    return sum(doctor.shift.capacity for doctor in day.staff if doctor.on_duty and doctor.serves(plan_id))


def _sharing(day: Day, plan_id: int) -> set[int]:
    serving = [doctor for doctor in day.staff if doctor.on_duty and doctor.serves(plan_id)]
    return {plan for plan in day.scenario.plans if any(doctor.serves(plan) for doctor in serving)}


def _handle_seconds(day: Day, plan_id: int) -> float:
    """The mean of the plan's known visits, else of all, else the default."""
    own = [seconds for _, seconds in day.past[plan_id]]
    everyone = [seconds for visits in day.past.values() for _, seconds in visits]
    known = own or everyone or [day.scenario.default_seconds]
    return sum(known) / len(known)
