"""Measures the estimate on past events: computes it and its rivals at each arrival, and compares
them with the wait that followed.

The rivals are rules of other products. Each gets the data that the service has at that moment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

from frontdesk.backtest.encounters_csv import EncountersCsv
from frontdesk.backtest.replay import QueueReplay
from frontdesk.queues.encounters import TRANSITIONS, event_order
from frontdesk.queues.estimate.model import (
    DEFAULT_VISIT_SECONDS,
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
)
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import (
    Encounter,
    EncounterState,
    EstimateAccuracy,
    EventType,
    ReplayEvent,
    WaitOutcome,
    accuracy_of,
)
from frontdesk.text import wire_time

# The first position of each group: patients far back in the line are few. 0: a doctor was ready,
# and the estimate was 0 to 0.
POSITIONS = (0, 1, 2, 3, 5, 9, 17, 33)
# At least so many patients wait while half of the doctors look idle: on simulated days with
# unreported notes or breaks at 8 % of the joinings at most.
MANY_WAITING = 3
ENDED_SHARE = 0.5  # with fewer ended visits their length is unknown
REPEATED_SHARE = 0.01
IDLE_SHARE = 0.25  # of the joinings: patients wait beside idle doctors
MANY_BESIDE = 10
LINES_SHOWN = 20
# An event with a larger delay was loaded afterwards: it counts as received at its time.
LOADED_LATER_SECONDS = 3600.0
# The time, and within an instant the number of the joining: first the events of patients that
# joined earlier, then each patient that joins at this instant, with its own events of the instant.
_Moment = tuple[float, int]


class Question(NamedTuple):
    """A patient joins the plan: how long will it wait?

    `pool` is the input of our estimate, with the same patients, doctors and visits.
    """

    known: QueueReplay
    pool: DoctorPool
    plan_id: int


Rival = Callable[[Question], float]


def handle_time_by_position(asked: Question) -> float:
    """Handle time x position / doctors, over all plans that share a doctor with this plan."""
    places = sum(doctor.capacity for doctor in _serving(asked)) or 1
    return _handle_seconds(asked) * (ahead_of(asked) + 1) / places


def ahead_of(asked: Question) -> int:
    """The number of patients that wait for this plan, or for a plan that shares a doctor with it."""
    sharing = _sharing(asked)
    return sum(plan in sharing for plan in asked.pool.waiting)


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
    own = [visit.seconds for _, visit in past.get(asked.plan_id, ())]
    everyone = [visit.seconds for visits in past.values() for _, visit in visits]
    lengths = own or everyone or [DEFAULT_VISIT_SECONDS]
    return sum(lengths) / len(lengths)


class JudgedWait(NamedTuple):
    """A newcomer: the estimate, the wait that followed, and the rivals' estimates by name.
    `position` in the line, 0: a doctor was ready (the interval 0 to 0).
    """

    outcome: WaitOutcome
    position: int
    rivals: dict[str, float]


@dataclass(slots=True)
class BacktestResult:
    """`left`: patients that left without a visit; `unattended`: no doctor was on duty for them.
    Neither has a wait to compare.

    `beside_idle`: by joining at which at least MANY_WAITING patients wait for the plan while half
    of its doctors or more have no patient: the number of these patients, the number of these
    doctors, and when.
    """

    judged: list[JudgedWait] = field(default_factory=list)
    joined: int = 0
    left: int = 0
    unattended: int = 0
    beside_idle: list[tuple[int, int, float]] = field(default_factory=list)


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
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> BacktestResult:
    """Measure the patients that joined at `since` or later; earlier events are their past. `events`
    in any order.

    `progress(done, total)` is called for each patient.
    """
    result = BacktestResult()
    groups = defaultdict[int, QueueReplay](QueueReplay)
    line = line_of(events, since)
    total = sum(isinstance(one, Stay) for one in line)
    for one in line:
        replay = groups[one.group]
        if isinstance(one, ReplayEvent):
            replay.apply(one)
        else:
            result.joined += 1
            _judge(replay, one, result)
            progress(result.joined, total)
    return result


def line_of(events: Iterable[ReplayEvent], since: float) -> list[ReplayEvent | Stay]:
    """The events in the order in which they were known, each patient that joined at `since` or
    later just before its joining.
    """
    ordered = sorted(events, key=event_order)
    stays = {
        (stay.group, stay.visit, stay.plan_id, stay.joined_at): stay for stay in _stays(ordered)
    }
    line: list[tuple[_Moment, ReplayEvent | Stay]] = []
    for moment, event in _in_order_of_arrival(ordered):
        if event.type is EventType.PATIENT_JOINED and event.at >= since:
            stay = stays.pop((event.group, event.visit, event.plan_id, event.at), None)
            line += [((stay.joined_at, moment[1]), stay)] if stay else []
        line.append((moment, event))
    line.sort(key=itemgetter(0))
    return [one for _, one in line]


def _judge(replay: QueueReplay, stay: Stay, result: BacktestResult) -> None:
    """Ask about the patient that joins now, by what the service knows of its provider group at this
    moment.
    """
    plan_id = stay.plan_id
    now = stay.joined_at
    pool = replay.pool(now)
    asked = Question(replay, pool, plan_id)
    serving = _serving(asked)
    waiting = list(pool.waiting).count(plan_id)
    idle = sum(not doctor.visits for doctor in serving)
    if waiting >= MANY_WAITING and 2 * idle >= max(1, len(serving)):
        result.beside_idle.append((waiting, idle, now))
    if stay.wait_seconds is None:
        result.left += 1
        return
    estimate = estimate_waits(pool, [plan_id], replay.records)[plan_id]
    if estimate.seconds == NOBODY_ON_DUTY:
        result.unattended += 1
        return
    replay.note_estimate(stay.visit, estimate)
    seconds, low, high = estimate[:3]
    joined_at = datetime.fromtimestamp(now, UTC)
    outcome = WaitOutcome(plan_id, joined_at, seconds, stay.wait_seconds, low, high)
    position = ahead_of(asked) + 1 if high else 0
    rivals = {name: tell(asked) for name, tell in RIVALS.items()}
    result.judged.append(JudgedWait(outcome, position, rivals))


def _stays(ordered: Iterable[ReplayEvent]) -> Iterator[Stay]:
    """The waits that ended, with a doctor or unseen; by the rules of queues/encounters.py."""
    patients: dict[tuple[int, str], Encounter[float]] = {}
    for event in ordered:
        if event.type not in TRANSITIONS:
            continue
        new = Encounter[float](event.plan_id, EncounterState.LEFT, event.at)
        patient = patients.setdefault((event.group, event.visit), new)
        waited = patient.waits_for(event.plan_id)
        TRANSITIONS[event.type](patient, event)
        seen = patient.state is EncounterState.IN_VISIT
        if (
            waited
            and patient.joined_at is not None
            and (seen or patient.state is EncounterState.LEFT)
        ):
            wait = event.at - patient.joined_at if seen else None
            yield Stay(event.group, patient.plan_id, event.visit, patient.joined_at, wait)


def _in_order_of_arrival(ordered: Sequence[ReplayEvent]) -> Iterator[tuple[_Moment, ReplayEvent]]:
    """Each event with the moment of its receipt. A visit's events keep their order: an end that
    arrives before its start counts from the arrival of the start.
    """
    last: dict[tuple[int, str, str], _Moment] = {}
    for number, event in enumerate(ordered, start=1):
        in_time = event.at <= event.known_at <= event.at + LOADED_LATER_SECONDS
        joining = number if event.type is EventType.PATIENT_JOINED else 0
        moment = event.known_at if in_time else event.at, joining
        about = event.group, event.visit, "" if event.visit else event.doctor
        moment = last[about] = max(moment, last.get(about, moment))
        yield moment, event


class BacktestWarning(NamedTuple):
    """A warning that the figures measure incomplete events and not the estimate.

    `lines` of the file, the first is 1; none where the warning is about the whole past.
    """

    code: str
    message: str
    lines: tuple[int, ...] = ()


def warnings_of(events: Sequence[ReplayEvent], found: BacktestResult) -> Iterator[BacktestWarning]:
    """Warnings about the events, stored or of a file, and about the result."""
    types = [event.type for event in events]
    started = types.count(EventType.VISIT_STARTED)
    ended = types.count(EventType.VISIT_ENDED)
    if ended < ENDED_SHARE * started:
        yield BacktestWarning(
            "no_ends",
            f"Of {started:,} visits {ended:,} have an end, so doctors look busy that are not, "
            "and the length of a visit is not known. Fill the column `ended`, "
            "or send visit.ended.",
        )
    beside = found.beside_idle
    joined = found.joined
    most = max(beside, key=lambda one: (min(one[:2]), one[0]), default=(0, 0, 0.0))
    if len(beside) > IDLE_SHARE * joined or min(most[:2]) >= MANY_BESIDE:
        waiting, idle, at = most
        yield BacktestWarning(
            "waiting_beside_idle",
            f"At {len(beside):,} of {joined:,} joinings patients wait beside idle doctors: "
            f"{waiting} beside {idle} at {wire_time(datetime.fromtimestamp(at, UTC))}. "
            "Check that each row tells how its wait ended (`started` or `left`), and that these "
            "doctors serve this plan at that time.",
        )


def warnings_of_file(found: EncountersCsv) -> Iterator[BacktestWarning]:
    seen = [row for row in found.rows if row.started is not None]
    repeated = len(seen) - len(set(seen))
    if repeated > REPEATED_SHARE * len(seen):
        yield BacktestWarning(
            "repeated_rows",
            f"{repeated:,} of {len(seen):,} rows with a visit repeat another row; each counts as "
            "a patient of its own. Remove the copies.",
        )
    if found.set_back:
        lines = ", ".join(map(str, found.set_back[:LINES_SHOWN]))
        yield BacktestWarning(
            "times_go_back",
            f"Times without an offset go back by up to an hour at line {lines}, as local times do "
            "when clocks are set back. Name their zone with --time-zone, or write offsets.",
            tuple(found.set_back),
        )


class BacktestFigures(NamedTuple):
    """Of a set of patients. `below_share` and `above_share`: of the waits with an interval, those
    before and after it.
    """

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
        name: accuracy_of(
            [one.outcome._replace(estimate_seconds=round(one.rivals[name])) for one in judged]
        )
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


def _grouped(
    judged: Sequence[JudgedWait], key: Callable[[JudgedWait], int]
) -> dict[int, BacktestFigures]:
    groups: defaultdict[int, list[JudgedWait]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    return {name: figures_of(groups[name]) for name in sorted(groups)}
