"""Asks the estimate, and its rivals, at each arrival of a known past, and puts the wait that came beside the answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

from frontdesk.queues.backtest.replay import QueueReplay, ReplayEvent
from frontdesk.queues.backtest.rivals import RIVALS, Question, ahead_of
from frontdesk.queues.encounters import event_order
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import EventType, QueueRules, WaitOutcome

# An event that came later than this was loaded afterwards: it counts as told at its time.
LOADED_LATER_SECONDS = 3600.0
# The time; and of one instant the number of the joining: first comes what concerns patients that joined before the instant, then
# the patients that join at it, one after the other, each with what becomes of it at the same instant.
_Moment = tuple[float, int]


class JudgedWait(NamedTuple):
    """A newcomer: the estimate and the wait that came, its position in the line, and what the rivals told, by name."""

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
    return JudgedWait(outcome, ahead_of(asked) + 1, {name: tell(asked) for name, tell in RIVALS.items()})


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
