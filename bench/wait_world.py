"""A simulated day at a clinic's queue, event by event: what really happens, and what a service can
know of it.

Patients are served by priority and then in order of arrival, by the first free doctor that serves
their plan. A booked patient enters the line at its time. A patient that leaves unseen keeps a ghost
in the line that takes no doctor's time: when its turn comes, that is the wait the patient would
have had.

What a service knows comes from the events of the feed: a QueueReplay, as in a back-test. The feed
may be late, and may not report breaks, notes, or patients that go before all others.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import nextafter
from random import Random
from typing import NamedTuple

from frontdesk.backtest.judge import RIVALS, Question, ahead_of
from frontdesk.backtest.replay import QueueReplay
from frontdesk.queues.estimate.model import Newcomer
from frontdesk.queues.estimate.waits import estimate_newcomers
from frontdesk.queues.model import EventType, ReplayEvent

HOUR = 3600.0
OURS = "frontdesk"
# the ends of our interval
LOW = "low"
HIGH = "high"
AHEAD = "ahead"  # the number of patients ahead

Draw = Callable[[Random], float]


def nothing(_: Random) -> float:
    return 0.0


@dataclass(frozen=True)
class PatientClass:
    """A share of a plan's patients. A higher `priority` goes first; `notice(random)`: how many
    seconds before its time a booked patient is reported.
    """

    name: str
    share: float
    length: Draw
    priority: int = 0
    notice: Draw | None = None


@dataclass(frozen=True)
class Plan:
    """`rate(t)`: patients an hour at t seconds into the day; `length(random)`: seconds of a visit,
    of a plan without `classes`.

    `is_reported` false: the patients go before all others, and the feed does not report them.
    `goes_first`: they go before those of other plans, and the feed does not say so.
    """

    rate: Callable[[float], float]
    length: Draw
    peak_rate: float
    patience: Draw | None = None
    is_reported: bool = True
    goes_first: bool = False
    classes: tuple[PatientClass, ...] = ()


class Break(NamedTuple):
    """A doctor on duty wants to rest from `at` on. `told_seconds`: how long the doctor says that it
    will last; None: the feed does not report it.
    """

    at: float
    seconds: float
    told_seconds: float | None = None


@dataclass(frozen=True)
class Shift:
    """One doctor's day: from when to when on duty. A doctor that goes off duty ends the visits in
    progress and takes no more.
    """

    spans: tuple[tuple[float, float], ...]
    plan_ids: frozenset[int] | None = None
    capacity: int = 1
    breaks: tuple[Break, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """`roster(random)` makes the day's shifts. Newcomers between `measured` are compared, in
    seconds of the day.

    After each visit the doctor takes `notes`; its end is reported `end_late` seconds late, every
    event `feed_late` seconds late. `is_first_day`: the service knows nothing of other days.
    """

    name: str
    plans: dict[int, Plan]
    roster: Callable[[Random], list[Shift]]
    measured: tuple[float, float] = (HOUR, 9 * HOUR)
    notes: Draw = nothing
    end_late: Draw = nothing
    feed_late: float = 0.0
    is_first_day: bool = False


@dataclass(eq=False)
class Patient:
    number: int
    plan_id: int
    joined_at: float
    length: float
    is_reported: bool = True
    patient_class: str | None = None
    priority: int = 0
    is_booked: bool = False
    left: bool = False
    estimates: dict[str, float] = field(default_factory=dict)
    wait: float | None = None

    def event(self, at: float, type_: EventType, doctor: str = "") -> ReplayEvent:
        return ReplayEvent(at, type_, self.plan_id, str(self.number), doctor)

    def joining(self, at: float) -> ReplayEvent:
        return self.event(at, EventType.PATIENT_JOINED)._replace(
            patient_class=self.patient_class,
            priority=self.priority or None,
            not_before=self.joined_at if self.joined_at > at else None,
        )


@dataclass(eq=False)
class Worker:
    """A doctor as it really is. `away_until`: notes or a break; `breaks`: those still to come."""

    name: str
    shift: Shift
    breaks: list[Break]
    visits: set[Patient] = field(default_factory=set)
    on_duty: bool = False
    idle_since: float = 0.0
    away_until: float = 0.0

    def serves(self, plan_id: int) -> bool:
        return self.shift.plan_ids is None or plan_id in self.shift.plan_ids

    def is_free(self, now: float) -> bool:
        return self.on_duty and len(self.visits) < self.shift.capacity and now >= self.away_until


class Day:
    """The world. `known` is what a service knows of it; each newcomer keeps the estimates that were
    made when it joined.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.random = Random(seed)
        self.scenario = scenario
        self.now = 0.0
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.number = itertools.count()  # orders what is due at the same time
        self.known = QueueReplay()
        self.line: list[Patient] = []
        shifts = scenario.roster(self.random)
        self.staff = [
            Worker(f"doctor {i}", shift, list(shift.breaks)) for i, shift in enumerate(shifts)
        ]
        self.joined = 0
        self.newcomers: list[Patient] = []

    def run(self) -> list[Patient]:
        for doctor in self.staff:
            for start, end in doctor.shift.spans:
                self._after(start, partial(self._come, doctor))
                self._after(end, partial(self._go, doctor))
            for rest in doctor.breaks:
                self._after(rest.at, partial(self._rest, doctor))
        for plan_id, plan in self.scenario.plans.items():
            self._after(
                self.random.expovariate(plan.peak_rate / HOUR), partial(self._arrive, plan_id, plan)
            )
        while self.agenda and self.agenda[0][0] < self.scenario.measured[1] + 6 * HOUR:
            self.now, _, act = heapq.heappop(self.agenda)
            act()
        return [patient for patient in self.newcomers if patient.wait is not None]

    def _ask(self, patient: Patient) -> dict[str, float]:
        """What each rule says now, the ends of our interval, and the number of patients ahead."""
        plan_id = patient.plan_id
        # Just before: a booked patient is in the line now, and not ahead of itself.
        pool = self.known.pool(nextafter(self.now, 0.0) if patient.is_booked else self.now)
        newcomer = Newcomer(plan_id, patient.patient_class)
        estimate = estimate_newcomers(pool, [newcomer], self.known.records)[newcomer]
        # so that the interval learns from the wait that follows
        self.known.note_estimate(str(patient.number), estimate)
        asked = Question(self.known, pool, plan_id)
        seconds, low, high = estimate[:3]
        said = {OURS: seconds, LOW: low or 0, HIGH: high or 0, AHEAD: ahead_of(asked)}
        return said | {name: rule(asked) for name, rule in RIVALS.items()}

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (self.now + seconds, next(self.number), act))

    def _report(self, event: ReplayEvent, *, late: float = 0.0) -> None:
        """`late`: the doctor ends the visit in the feed so much later, and it bears that time. A
        late feed keeps the times.
        """
        event = event._replace(at=event.at + late)
        seconds = self.scenario.feed_late + late
        if seconds > 0:
            known_at = self.now + seconds
            self._after(seconds, lambda: self.known.apply(event._replace(known_at=known_at)))
        else:
            self.known.apply(event)

    def _arrive(self, plan_id: int, plan: Plan) -> None:
        if self.now <= self.scenario.measured[1]:
            if self.random.random() * plan.peak_rate < plan.rate(self.now):
                self._admit(plan_id, plan)
            self._after(
                self.random.expovariate(plan.peak_rate / HOUR), partial(self._arrive, plan_id, plan)
            )

    def _admit(self, plan_id: int, plan: Plan) -> None:
        """A patient comes, or is reported before its time."""
        self.joined += 1
        if not plan.classes:
            length = plan.length(self.random)
            self._join(Patient(self.joined, plan_id, self.now, length, plan.is_reported), plan)
            return
        shares = [one.share for one in plan.classes]
        [own] = self.random.choices(plan.classes, shares)
        notice = own.notice(self.random) if own.notice else 0.0
        patient = Patient(
            number=self.joined,
            plan_id=plan_id,
            joined_at=self.now + notice,
            length=own.length(self.random),
            patient_class=own.name,
            priority=own.priority,
        )
        if notice:
            patient.is_booked = True
            self._report(patient.joining(self.now))
            self._after(notice, partial(self._join, patient, plan))
        else:
            self._join(patient, plan)

    def _join(self, patient: Patient, plan: Plan) -> None:
        is_attended = any(
            doctor.on_duty and doctor.serves(patient.plan_id) for doctor in self.staff
        )
        if is_attended and plan.is_reported and self.now >= self.scenario.measured[0]:
            patient.estimates = self._ask(patient)
            self.newcomers.append(patient)
        if plan.is_reported:
            self.line.insert(self._place_of(patient), patient)
            if not patient.is_booked:
                self._report(patient.joining(self.now))
        else:
            self.line.insert(0, patient)
        if plan.patience is not None:
            self._after(plan.patience(self.random), partial(self._lose_patience, patient))
        self._match()

    def _place_of(self, patient: Patient) -> int:
        own = self._rank_of(patient)
        return sum(not other.is_reported or self._rank_of(other) >= own for other in self.line)

    def _rank_of(self, patient: Patient) -> tuple[bool, int]:
        return self.scenario.plans[patient.plan_id].goes_first, patient.priority

    def _lose_patience(self, patient: Patient) -> None:
        if patient.wait is None:
            patient.left = True
            self._report(patient.event(self.now, EventType.PATIENT_LEFT))

    def _come(self, doctor: Worker) -> None:
        doctor.on_duty = True
        doctor.idle_since = self.now
        self._report_duty(doctor)
        self._match()

    def _go(self, doctor: Worker) -> None:
        doctor.on_duty = False
        self._report(ReplayEvent(self.now, EventType.DOCTOR_OFF_DUTY, doctor=doctor.name))

    def _rest(self, doctor: Worker) -> None:
        """A break begins at its time, or when the visit in progress and its notes are over."""
        if doctor.is_free(self.now) and not doctor.visits:
            self._step_away(doctor, 0.0)

    def _step_away(self, doctor: Worker, notes: float) -> None:
        until = self.now + notes
        while doctor.breaks and doctor.breaks[0].at <= until:
            rest = doctor.breaks.pop(0)
            if rest.told_seconds is not None:
                self._after(until - self.now, partial(self._report_pause, doctor, rest))
            until += rest.seconds
        if until > self.now:
            doctor.away_until = until
            self._after(until - self.now, self._match)

    def _report_pause(self, doctor: Worker, rest: Break) -> None:
        """A doctor that comes back early says so; one that is late does not."""
        told = rest.told_seconds or 0.0
        paused = ReplayEvent(self.now, EventType.DOCTOR_PAUSED, doctor=doctor.name)
        self._report(paused._replace(until=self.now + told))
        if rest.seconds < told:
            self._after(rest.seconds, partial(self._report_duty, doctor))

    def _report_duty(self, doctor: Worker) -> None:
        if doctor.on_duty:
            on = ReplayEvent(self.now, EventType.DOCTOR_ON_DUTY, doctor=doctor.name)
            shift = doctor.shift
            self._report(on._replace(plan_ids=shift.plan_ids, capacity=shift.capacity))

    def _match(self) -> None:
        for patient in list(self.line):
            all_free = [doctor for doctor in self.staff if doctor.is_free(self.now)]
            if not all_free:
                return
            free = [doctor for doctor in all_free if doctor.serves(patient.plan_id)]
            if not free:
                continue
            self.line.remove(patient)
            patient.wait = self.now - patient.joined_at
            if not patient.left:
                doctor = min(free, key=lambda doctor: (len(doctor.visits), doctor.idle_since))
                doctor.visits.add(patient)
                if patient.is_reported:
                    self._report(patient.event(self.now, EventType.VISIT_STARTED, doctor.name))
                self._after(patient.length, partial(self._end, doctor, patient))

    def _end(self, doctor: Worker, patient: Patient) -> None:
        doctor.visits.remove(patient)
        doctor.idle_since = self.now
        if patient.is_reported:
            late = self.scenario.end_late(self.random)
            self._report(patient.event(self.now, EventType.VISIT_ENDED, doctor.name), late=late)
        self._step_away(doctor, self.scenario.notes(self.random))
        self._match()
