"""What else is in use to tell a wait. Each rule gets what the service knows at that moment."""

from collections.abc import Callable, Iterator
from itertools import takewhile
from math import factorial
from typing import NamedTuple

from frontdesk.queues.backtest.replay import HOUR, QueueReplay
from frontdesk.queues.estimate.model import Doctor, DoctorPool

FULL = 0.95  # a queue that grows without bound has no mean wait: the formula is asked for this load at most
MOST_PLACES = (
    150  # beyond, the factorials leave the range of floating point, and nobody waits below a full load
)


class Question(NamedTuple):
    """A patient joins the plan at `now`: how long will it wait? `default_seconds` is a visit's length while none is known.

    `pool` is what our estimate gets: the same patients wait and the same doctors are on duty, with the same visits.
    """

    known: QueueReplay
    pool: DoctorPool
    plan_id: int
    now: float
    default_seconds: float


Rival = Callable[[Question], float]


def handle_time_by_position(asked: Question) -> float:
    """Handle time x position / doctors, over all plans that share a doctor with this one, as a careful product would."""
    return _handle_seconds(asked) * (ahead_of(asked) + 1) / _places(asked)


def ahead_of(asked: Question) -> int:
    """How many patients wait for this plan, or for one that shares a doctor with it."""
    sharing = _sharing(asked)
    return sum(plan in sharing for plan in asked.pool.waiting)


def the_same_with_idle(asked: Question) -> float:
    """The same by a product that also sees an idle doctor: harder than the four others."""
    if any(len(doctor.visits) < doctor.capacity for doctor in _serving(asked)):
        return 0.0
    return handle_time_by_position(asked)


def erlang_c(asked: Question) -> float:
    """The mean wait of M/M/c with the last hour's arrivals and the known visits."""
    places, handle = _places(asked), _handle_seconds(asked)
    if places > MOST_PLACES:
        return 0.0
    since, sharing = max(0.0, asked.now - HOUR), _sharing(asked)
    arrivals = sum(plan in sharing for plan in asked.known.recent_arrivals(since))
    load = min(arrivals * handle / max(1.0, asked.now - since), FULL * places)
    top = load**places / factorial(places) * places / (places - load)
    p_wait = top / (sum(load**k / factorial(k) for k in range(places)) + top)
    return p_wait * handle / (places - load)


def last_wait(asked: Question) -> float:
    """The wait of the plan's patient that was seen last."""
    return next(_waits(asked), 0.0)


def mean_of_the_last_hour(asked: Question) -> float:
    recent = takewhile(lambda seen: seen.seen_at > asked.now - HOUR, reversed(asked.known.seen))
    waits = [seen.waited_seconds for seen in recent if seen.plan_id == asked.plan_id]
    return sum(waits) / len(waits) if waits else last_wait(asked)


RIVALS: dict[str, Rival] = {
    "AHT x position": handle_time_by_position,
    "Erlang C": erlang_c,
    "last wait": last_wait,
    "mean of the last hour": mean_of_the_last_hour,
    "AHT x position, idle seen": the_same_with_idle,
}


def _waits(asked: Question) -> Iterator[float]:
    return (seen.waited_seconds for seen in reversed(asked.known.seen) if seen.plan_id == asked.plan_id)


def _places(asked: Question) -> int:
    return sum(doctor.capacity for doctor in _serving(asked)) or 1


def _serving(asked: Question) -> list[Doctor]:
    return [doctor for doctor in asked.pool.doctors if doctor.serves(asked.plan_id)]


def _sharing(asked: Question) -> set[int]:
    """The plans that share a doctor on duty with this one."""
    sharing = {asked.plan_id}
    for plan_ids in {doctor.plan_ids for doctor in _serving(asked)}:
        sharing |= asked.known.plan_ids if plan_ids is None else plan_ids
    return sharing


def _handle_seconds(asked: Question) -> float:
    """The mean of the plan's known visits, else of all, else the default."""
    past = asked.known.past
    own = [visit.seconds for _, visit in past.get(asked.plan_id, ())]
    everyone = [visit.seconds for visits in past.values() for _, visit in visits]
    lengths = own or everyone or [asked.default_seconds]
    return sum(lengths) / len(lengths)
