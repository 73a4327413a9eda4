"""Judges the estimate on a known past: asks it and its rivals at each arrival, and compares the answers with the wait that came.

The rivals are the rules that other products use. Each gets what the service knows at that moment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

from frontdesk.queues.backtest.replay import QueueReplay, ReplayEvent
from frontdesk.queues.encounters import event_order
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY, Doctor, DoctorPool
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import EstimateAccuracy, EventType, QueueRules, WaitOutcome
from frontdesk.queues.queue_state import accuracy_of

FULL = 0.95  # a queue that grows without bound has no mean wait: the formula is asked for this load at most
MOST_PLACES = (
    150  # beyond, the factorials leave the range of floating point, and no patient waits below a full load
)
# The first position of each group: patients far back in the line are few. 0: a doctor was ready, and the estimate was 0 to 0.
POSITIONS = (0, 1, 2, 3, 5, 9, 17, 33)
# An event that came later than this was loaded afterwards: it counts as told at its time.
LOADED_LATER_SECONDS = 3600.0
# The time; and of one instant the number of the joining: first comes what concerns patients that joined before the instant, then
# the patients that join at it, one after the other, each with what becomes of it at the same instant.
_Moment = tuple[float, int]


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
    """The same by a product that also sees an idle doctor: harder than the others."""
    if any(len(doctor.visits) < doctor.capacity for doctor in _serving(asked)):
        return 0.0
    return handle_time_by_position(asked)


def last_wait(asked: Question) -> float:
    """The wait of the plan's patient that was seen last."""
    return asked.known.last_waits.get(asked.plan_id, 0.0)


# Rules that others use.
RIVALS: dict[str, Rival] = {
    "AHT x position": handle_time_by_position,
    "last wait": last_wait,
    "AHT x position, idle seen": the_same_with_idle,
}


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


class JudgedWait(NamedTuple):
    """A newcomer: the estimate and the wait that came, and by name what the rivals said. `position` in the line, 0: a doctor was
    ready (the interval 0 to 0)."""

    outcome: WaitOutcome
    position: int
    rivals: dict[str, float]


@dataclass(slots=True)
class BacktestResult:
    """`left`: patients that left unseen; `unattended`: no doctor was on duty for them. Neither have a wait to compare."""

    judged: list[JudgedWait] = field(default_factory=list)
    left: int = 0
    unattended: int = 0


class Stay(NamedTuple):
    """A patient joined the plan; `wait_seconds` None: left unseen."""

    group: int
    plan_id: int
    visit: str
    joined_at: float
    wait_seconds: float | None


def run_backtest(
    events: Sequence[ReplayEvent],
    *,
    since: float,
    rules: QueueRules,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> BacktestResult:
    """Judge the patients that joined at `since` or later; the events before only tell the past. `events` in any order.

    `progress(done, total)` is called for each patient.
    """
    result, line = BacktestResult(), line_of(events, since)
    total = sum(isinstance(one, Stay) for one in line)
    for done, (replay, stay) in enumerate(questions(line, rules), start=1):
        if stay.wait_seconds is None:
            result.left += 1
        elif (judged := _judge(replay, stay, stay.wait_seconds, rules)) is None:
            result.unattended += 1
        else:
            result.judged.append(judged)
        progress(done, total)
    return result


def line_of(events: Iterable[ReplayEvent], since: float) -> list[ReplayEvent | Stay]:
    """The events in the order in which they were known, each patient that joined at `since` or later just before its joining."""
    ordered = sorted(events, key=event_order)
    stays = {(stay.group, stay.visit, stay.plan_id, stay.joined_at): stay for stay in _stays(ordered)}
    line: list[tuple[_Moment, ReplayEvent | Stay]] = []
    for moment, event in _as_they_were_told(ordered):
        if event.type is EventType.PATIENT_JOINED and event.at >= since:
            stay = stays.pop((event.group, event.visit, event.plan_id, event.at), None)
            line += [((stay.joined_at, moment[1]), stay)] if stay else []
        line.append((moment, event))
    line.sort(key=itemgetter(0))
    return [one for _, one in line]


def questions(line: Iterable[ReplayEvent | Stay], rules: QueueRules) -> Iterator[tuple[QueueReplay, Stay]]:
    """Each patient of the line that joins, with what the service knows of its provider group at that moment."""
    groups: dict[int, QueueReplay] = {}
    for one in line:
        replay = groups.get(one.group)
        if replay is None:
            replay = groups[one.group] = QueueReplay(rules.longest_visit_seconds)
        if isinstance(one, ReplayEvent):
            replay.apply(one)
        else:
            yield replay, one


def _judge(replay: QueueReplay, stay: Stay, wait: float, rules: QueueRules) -> JudgedWait | None:
    plan_id, now = stay.plan_id, stay.joined_at
    default = rules.default_visit_seconds
    pool = replay.pool(now)
    estimate = estimate_waits(pool, [plan_id], default, replay.records)[plan_id]
    if estimate.seconds == NOBODY_ON_DUTY:
        return None
    replay.tell(stay.visit, estimate)
    seconds, low, high = estimate
    asked = Question(replay, pool, plan_id, now, default)
    outcome = WaitOutcome(plan_id, datetime.fromtimestamp(now, UTC), seconds, wait, low, high)
    position = ahead_of(asked) + 1 if high else 0
    return JudgedWait(outcome, position, {name: tell(asked) for name, tell in RIVALS.items()})


def _stays(ordered: Sequence[ReplayEvent]) -> Iterator[Stay]:
    """The waits that ended, with a doctor or unseen; by the rules of queues/encounters.py."""
    waiting: dict[tuple[int, str], tuple[int, float]] = {}
    in_visit: set[tuple[int, str]] = set()
    for event in ordered:
        key = event.group, event.visit
        match event.type:
            case EventType.PATIENT_JOINED:
                if key not in in_visit and waiting.get(key, (None,))[0] != event.plan_id:
                    waiting[key] = event.plan_id, event.at
            case EventType.VISIT_STARTED | EventType.PATIENT_LEFT:
                seen = event.type is EventType.VISIT_STARTED
                if key in waiting and waiting[key][0] == event.plan_id:
                    plan_id, joined = waiting.pop(key)
                    yield Stay(event.group, plan_id, event.visit, joined, event.at - joined if seen else None)
                if seen:
                    waiting.pop(key, None)
                    in_visit.add(key)
            case EventType.VISIT_ENDED:
                waiting.pop(key, None)
                in_visit.discard(key)


def _as_they_were_told(ordered: Sequence[ReplayEvent]) -> Iterator[tuple[_Moment, ReplayEvent]]:
    """Each event with the moment of its being known. A visit's events keep their order: an end that came before its start
    counts when the start has come."""
    last: dict[tuple[int, str, str], _Moment] = {}
    for number, event in enumerate(ordered, start=1):
        in_time = event.at <= event.known_at <= event.at + LOADED_LATER_SECONDS
        joining = number if event.type is EventType.PATIENT_JOINED else 0
        moment = event.known_at if in_time else event.at, joining
        about = event.group, event.visit, "" if event.visit else event.doctor
        moment = last[about] = max(moment, last.get(about, moment))
        yield moment, event


class BacktestFigures(NamedTuple):
    """Of a set of patients. `below_share` and `above_share`: of the waits with an interval, those before and after it."""

    accuracy: EstimateAccuracy
    below_share: float | None
    above_share: float | None
    rivals: dict[str, EstimateAccuracy]

    @property
    def best_rival(self) -> tuple[str, EstimateAccuracy]:
        return min(self.rivals.items(), key=lambda rival: rival[1].mean_error_seconds)


def figures_of(judged: Sequence[JudgedWait]) -> BacktestFigures:
    """`judged` has one patient at least."""
    outcomes = [one.outcome for one in judged]
    sides = [one.side for one in outcomes if one.side is not None]
    below, above = (sides.count(side) / len(sides) if sides else None for side in (-1, 1))
    rivals = {
        name: accuracy_of([one.outcome._replace(estimate_seconds=round(one.rivals[name])) for one in judged])
        for name in RIVALS
    }
    return BacktestFigures(accuracy_of(outcomes), below, above, rivals)


def by_plan(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    return _grouped(judged, lambda one: one.outcome.plan_id)


def by_hour(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    """By the hour of the day, 0 to 23, UTC."""
    return _grouped(judged, lambda one: one.outcome.joined_at.hour)


def by_position(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    """By the first position of each of POSITIONS; 1: no patient was ahead."""
    return _grouped(judged, lambda one: max(first for first in POSITIONS if first <= one.position))


def _grouped(judged: Sequence[JudgedWait], key: Callable[[JudgedWait], int]) -> dict[int, BacktestFigures]:
    groups: defaultdict[int, list[JudgedWait]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    return {name: figures_of(groups[name]) for name in sorted(groups)}
