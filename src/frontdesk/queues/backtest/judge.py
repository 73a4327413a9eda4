"""Asks the estimate, and its rivals, at each arrival of a known past, and puts the wait that came beside the answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

from frontdesk.queues.backtest.replay import QueueReplay, ReplayEvent
from frontdesk.queues.backtest.rivals import RIVALS, Question, ahead_of
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import EventType, QueueRules, WaitOutcome

# An event that came later than this was loaded afterwards: it counts as told at its time.
LOADED_LATER_SECONDS = 3600.0
# Of one instant: shifts first, then ends, and the course of a visit.
_RANKS = {
    EventType.DOCTOR_OFF_DUTY: 0,
    EventType.DOCTOR_ON_DUTY: 1,
    EventType.VISIT_ENDED: 2,
    EventType.PATIENT_LEFT: 2,
    EventType.PATIENT_JOINED: 4,
    EventType.VISIT_STARTED: 5,
}
_QUESTION_RANK = 3  # a newcomer asks before its own joining is known
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


class _Stay(NamedTuple):
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
    ordered = sorted(events, key=lambda event: (event.at, _RANKS[event.type]))
    stays = [stay for stay in _stays(ordered) if stay.joined_at >= since]
    line: list[tuple[_Moment, ReplayEvent | _Stay]] = list(_as_they_were_told(ordered))
    line += [((stay.joined_at, _QUESTION_RANK), stay) for stay in stays]
    line.sort(key=itemgetter(0))
    groups: dict[int, QueueReplay] = {}
    result, done = BacktestResult(), 0
    for _, one in line:
        replay = groups.get(one.group)
        if replay is None:
            replay = groups[one.group] = QueueReplay(rules.longest_visit_seconds)
        if isinstance(one, ReplayEvent):
            replay.apply(one)
            continue
        if one.wait_seconds is None:
            result.left += 1
        elif (judged := _judge(replay, one, one.wait_seconds, rules)) is None:
            result.unattended += 1
        else:
            result.judged.append(judged)
        done += 1
        progress(done, len(stays))
    return result


def _judge(replay: QueueReplay, stay: _Stay, wait: float, rules: QueueRules) -> JudgedWait | None:
    plan_id, now = stay.plan_id, stay.joined_at
    default = rules.default_visit_seconds
    estimate = estimate_waits(replay.pool(now), [plan_id], default, replay.records)[plan_id]
    if estimate.seconds == NOBODY_ON_DUTY:
        return None
    replay.tell(stay.visit, estimate)
    seconds, low, high = estimate
    asked = Question(replay, plan_id, now, default)
    outcome = WaitOutcome(plan_id, datetime.fromtimestamp(now, UTC), seconds, wait, low, high)
    return JudgedWait(outcome, ahead_of(asked) + 1, {name: tell(asked) for name, tell in RIVALS.items()})


def _stays(ordered: Sequence[ReplayEvent]) -> Iterator[_Stay]:
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
                    yield _Stay(
                        event.group, plan_id, event.visit, joined, event.at - joined if seen else None
                    )
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
    for event in ordered:
        in_time = event.at <= event.known_at <= event.at + LOADED_LATER_SECONDS
        moment = event.known_at if in_time else event.at, _RANKS[event.type]
        about = event.group, event.visit, "" if event.visit else event.doctor
        moment = last[about] = max(moment, last.get(about, moment))
        yield moment, event
