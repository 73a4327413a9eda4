"""Measures the estimate on past events: computes it and its rivals at each arrival, and compares
them with the wait that followed.

The rivals are rules of other products. Each gets the data that the service has at that moment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from frontdesk.backtest.figures import JudgedWait, JudgedWaits
from frontdesk.backtest.line import Stay, Waits, line_of
from frontdesk.backtest.replay import QueueReplay
from frontdesk.queues.encounters import event_order
from frontdesk.queues.estimate.model import (
    DEFAULT_VISIT_SECONDS,
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
    Newcomer,
)
from frontdesk.queues.estimate.waits import estimate_newcomers
from frontdesk.queues.model import EventType, ReplayEvent

# At least so many patients wait while half of the doctors look idle: on simulated days with
# unreported notes or breaks at 8 % of the joinings at most.
MANY_WAITING = 3


class Question(NamedTuple):
    """A patient joins the plan: how long will it wait?

    `pool` is the input of our estimate, with the same patients, doctors and visits.
    """

    known: QueueReplay
    pool: DoctorPool
    plan_id: int
    patient_class: str | None = None
    priority: int = 0


Rival = Callable[[Question], float]


def handle_time_by_position(asked: Question) -> float:
    """Handle time x position / doctors, over all plans that share a doctor with this plan."""
    places = sum(doctor.capacity for doctor in _serving(asked)) or 1
    return _handle_seconds(asked) * (ahead_of(asked) + 1) / places


def ahead_of(asked: Question) -> int:
    """The number of patients that wait for this plan, or for a plan that shares a doctor with it,
    and are seen before this one.
    """
    sharing = _sharing(asked)
    waiting = asked.pool.waiting
    if not asked.pool.priorities:
        return sum(plan in sharing for plan in waiting) if asked.priority <= 0 else 0
    line = zip(waiting, asked.pool.priorities, strict=True)
    return sum(plan in sharing and priority >= asked.priority for plan, priority in line)


def the_same_with_idle(asked: Question) -> float:
    """The same, but 0 if a doctor is idle."""
    if any(len(doctor.visits) < doctor.capacity for doctor in _serving(asked)):
        return 0.0
    return handle_time_by_position(asked)


# Rules of other products.
RIVALS: dict[str, Rival] = {
    "AHT x position": handle_time_by_position,
    "last wait": lambda asked: asked.known.last_waits.get(asked.plan_id, 0.0),
    "AHT x position, idle seen": the_same_with_idle,
}


def _serving(asked: Question) -> list[Doctor]:
    return [doctor for doctor in asked.pool.doctors if doctor.serves(asked.plan_id)]


def _sharing(asked: Question) -> set[int]:
    sharing = {asked.plan_id}
    for plan_ids in {doctor.plan_ids for doctor in _serving(asked)}:
        sharing |= asked.known.plan_ids if plan_ids is None else plan_ids
    return sharing


def _handle_seconds(asked: Question) -> float:
    """The mean of the plan's known visits, else of all, else the default."""
    past = asked.known.past
    lengths = [visit.seconds for _, visit in past.get(asked.plan_id, ())]
    if not lengths:
        lengths = [visit.seconds for visits in past.values() for _, visit in visits]
    return sum(lengths) / len(lengths) if lengths else DEFAULT_VISIT_SECONDS


@dataclass(slots=True)
class BesideIdle:
    """The joinings at which at least MANY_WAITING patients wait for the plan while half of its
    doctors or more have no patient; and of that with most of both, these numbers and the time.
    """

    joinings: int = 0
    waiting: int = 0
    idle: int = 0
    at: float = 0.0

    def note(self, waiting: int, idle: int, at: float) -> None:
        self.joinings += 1
        if (min(waiting, idle), waiting) > (min(self.waiting, self.idle), self.waiting):
            self.waiting = waiting
            self.idle = idle
            self.at = at


@dataclass(slots=True)
class BacktestResult:
    """`left`: patients that left without a visit; `unattended`: no doctor was on duty for them.
    Neither has a wait to compare.

    `visits`, `visits_with_end` and `doctors` count all that was replayed.
    """

    judged: JudgedWaits = field(default_factory=lambda: JudgedWaits(RIVALS))
    joined: int = 0
    left: int = 0
    unattended: int = 0
    beside_idle: BesideIdle = field(default_factory=BesideIdle)
    visits: int = 0
    visits_with_end: int = 0
    doctors: set[str] = field(default_factory=set)


def run_backtest(
    events: Iterable[ReplayEvent],
    *,
    since: float,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> BacktestResult:
    """`judge_past` for events in any order, which fit into memory."""
    return judge_past(sorted(events, key=event_order), since=since, progress=progress)


def judge_past(
    ordered: Iterable[ReplayEvent],
    *,
    since: float,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> BacktestResult:
    """Measure the patients that joined at `since` or later; earlier events are their past.
    `ordered` is in the order of `event_order`, and is iterated twice.

    `progress(done, total)` is called for each patient.
    """
    result = BacktestResult()
    groups = defaultdict[int, QueueReplay](QueueReplay)
    waits = Waits(ordered, since)
    for one in line_of(_counted(ordered, result), since, waits):
        replay = groups[one.group]
        if isinstance(one, ReplayEvent):
            replay.apply(one)
        else:
            result.joined += 1
            _judge(replay, one, result)
            progress(result.joined, waits.ended)
    return result


def _counted(ordered: Iterable[ReplayEvent], result: BacktestResult) -> Iterator[ReplayEvent]:
    for event in ordered:
        if event.type is EventType.VISIT_STARTED:
            result.visits += 1
            result.doctors.add(event.doctor)
        elif event.type is EventType.VISIT_ENDED:
            result.visits_with_end += 1
        yield event


def _judge(replay: QueueReplay, stay: Stay, result: BacktestResult) -> None:
    """Ask about the patient that joins now, by what the service knows of its provider group at this
    moment.
    """
    now = stay.asked_at
    asked = Question(
        replay, replay.pool(now), stay.plan_id, stay.patient_class, priority=stay.priority
    )
    serving = _serving(asked)
    waiting = list(asked.pool.waiting).count(stay.plan_id)
    idle = sum(not doctor.visits for doctor in serving)
    if waiting >= MANY_WAITING and 2 * idle >= max(1, len(serving)):
        result.beside_idle.note(waiting, idle, now)
    if stay.wait_seconds is None:
        result.left += 1
        return
    newcomer = Newcomer(stay.plan_id, stay.patient_class)
    estimate = estimate_newcomers(asked.pool, [newcomer], replay.records)[newcomer]
    if estimate.seconds == NOBODY_ON_DUTY:
        result.unattended += 1
        return
    replay.note_estimate(stay.visit, estimate)
    judged = JudgedWait(
        plan_id=stay.plan_id,
        patient_class=stay.patient_class,
        joined_at=stay.joined_at,
        wait_seconds=stay.wait_seconds,
        estimate=estimate,
        position=ahead_of(asked) + 1 if estimate.high_seconds else 0,
        rivals={name: tell(asked) for name, tell in RIVALS.items()},
    )
    result.judged.append(judged)
