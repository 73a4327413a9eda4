"""A simulated day at a clinic's queue, event by event: what really happens, and what a service can know of it.

Patients are served in order of arrival by the first free doctor that serves their plan. A patient that leaves unseen keeps a
ghost in the line that takes no doctor's time: when its turn comes, that is the wait the patient would have had.

What a service knows comes from the events that the feed tells: a QueueReplay, as in a back-test. The feed may be late, may not
know of a doctor's break or notes, or of patients that go before all others.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import simpy

from frontdesk.queues.backtest.replay import HOUR, QueueReplay, ReplayEvent
from frontdesk.queues.model import EventType

Draw = Callable[[Random], float]


def nothing(_: Random) -> float:
    return 0.0


@dataclass(frozen=True)
class Plan:
    """`rate(t)`: patients an hour at t seconds into the day; `length(random)`: seconds of a visit.

    `told` false: the patients go before all others, and the feed tells nothing of them.
    """

    rate: Callable[[float], float]
    length: Draw
    peak_rate: float
    patience: Draw | None = None
    told: bool = True


@dataclass(frozen=True)
class Shift:
    """One doctor's day: from when to when on duty. A doctor that goes off duty ends the visits in progress and takes no more.

    `breaks`: when the doctor, on duty, wants to rest, and for how long; the feed tells nothing of it.
    """

    spans: tuple[tuple[float, float], ...]
    plan_ids: frozenset[int] | None = None
    capacity: int = 1
    breaks: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Scenario:
    """`roster(random)` makes the day's shifts. Newcomers between `measured` are compared, in seconds of the day.

    After each visit the doctor takes `notes`; its end is told `end_told_late`; every event is told `feed_late` seconds late.
    """

    name: str
    plans: dict[int, Plan]
    roster: Callable[[Random], list[Shift]]
    measured: tuple[float, float] = (HOUR, 9 * HOUR)
    default_seconds: float = 900.0
    notes: Draw = nothing
    end_told_late: Draw = nothing
    feed_late: float = 0.0


@dataclass(eq=False)
class Patient:
    number: int
    plan_id: int
    joined_at: float
    length: float
    told: bool = True
    left: bool = False
    estimates: dict[str, Any] = field(default_factory=dict)
    wait: float | None = None


@dataclass(eq=False)
class Worker:
    """A doctor as it really is. `away_until`: notes or a break; `breaks`: those still to come."""

    name: str
    shift: Shift
    breaks: list[tuple[float, float]]
    visits: dict[Patient, float] = field(default_factory=dict)
    on_duty: bool = False
    idle_since: float = 0.0
    away_until: float = 0.0

    def serves(self, plan_id: int, *, told: bool) -> bool:
        return not told or self.shift.plan_ids is None or plan_id in self.shift.plan_ids

    def is_free(self, now: float) -> bool:
        return self.on_duty and len(self.visits) < self.shift.capacity and now >= self.away_until


class Day:
    """The world. `known` is what a service knows of it; each newcomer keeps the estimates that it was given on joining."""

    def __init__(self, scenario: Scenario, seed: int, ask: "Callable[[Day, int], dict[str, Any]]") -> None:
        self.random = Random(seed)
        self.scenario = scenario
        self.ask = ask
        self.env = simpy.Environment()
        self.known = QueueReplay()
        self.line: list[Patient] = []
        shifts = scenario.roster(self.random)
        self.staff = [Worker(f"doctor {i}", shift, list(shift.breaks)) for i, shift in enumerate(shifts)]
        self.joined = 0
        self.newcomers: list[Patient] = []

    def run(self) -> list[Patient]:
        for doctor in self.staff:
            self.env.process(self._work(doctor))
            for start, _ in doctor.breaks:
                self.env.process(self._rest(doctor, start))
        for plan_id, plan in self.scenario.plans.items():
            self.env.process(self._arrive(plan_id, plan))
        self.env.run(until=self.scenario.measured[1] + 6 * HOUR)
        return [patient for patient in self.newcomers if patient.wait is not None]

    def _tell(self, event: ReplayEvent, *, late: float = 0.0) -> None:
        if self.scenario.feed_late + late > 0:
            self.env.process(self._tell_later(replaced_time(event, late), self.scenario.feed_late + late))
        else:
            self.known.apply(event)

    def _tell_later(self, event: ReplayEvent, seconds: float) -> Generator[Any, Any, None]:
        yield self.env.timeout(seconds)
        self.known.apply(event._replace(known_at=self.env.now))

    def _arrive(self, plan_id: int, plan: Plan) -> Generator[Any, Any, None]:
        last = self.scenario.measured[1]
        while True:
            yield self.env.timeout(self.random.expovariate(plan.peak_rate / HOUR))
            if self.env.now > last:
                return
            if self.random.random() * plan.peak_rate < plan.rate(self.env.now):
                self._join(plan_id, plan)

    def _join(self, plan_id: int, plan: Plan) -> None:
        self.joined += 1
        patient = Patient(self.joined, plan_id, self.env.now, plan.length(self.random), plan.told)
        attended = any(doctor.on_duty and doctor.serves(plan_id, told=True) for doctor in self.staff)
        if attended and plan.told and self.env.now >= self.scenario.measured[0]:
            patient.estimates = self.ask(self, plan_id)
            self.newcomers.append(patient)
        if plan.told:
            self.line.append(patient)
            self._tell(ReplayEvent(self.env.now, EventType.PATIENT_JOINED, plan_id, str(patient.number)))
        else:
            self.line.insert(0, patient)
        if plan.patience is not None:
            self.env.process(self._lose_patience(patient, plan.patience(self.random)))
        self._match()

    def _lose_patience(self, patient: Patient, seconds: float) -> Generator[Any, Any, None]:
        yield self.env.timeout(seconds)
        if patient.wait is None:
            patient.left = True
            self._tell(
                ReplayEvent(self.env.now, EventType.PATIENT_LEFT, patient.plan_id, str(patient.number))
            )

    def _work(self, doctor: Worker) -> Generator[Any, Any, None]:
        shift = doctor.shift
        on = ReplayEvent(
            0.0,
            EventType.DOCTOR_ON_DUTY,
            doctor=doctor.name,
            plan_ids=shift.plan_ids,
            capacity=shift.capacity,
        )
        for start, end in shift.spans:
            yield self.env.timeout(start - self.env.now)
            doctor.on_duty, doctor.idle_since = True, self.env.now
            self._tell(on._replace(at=start))
            self._match()
            yield self.env.timeout(end - self.env.now)
            doctor.on_duty = False
            self._tell(ReplayEvent(end, EventType.DOCTOR_OFF_DUTY, doctor=doctor.name))

    def _rest(self, doctor: Worker, start: float) -> Generator[Any, Any, None]:
        """A break begins at its time, or when the visit in progress and its notes are over."""
        yield self.env.timeout(start)
        if doctor.is_free(self.env.now) and not doctor.visits:
            self._step_away(doctor, 0.0)

    def _step_away(self, doctor: Worker, notes: float) -> None:
        until = self.env.now + notes
        while doctor.breaks and doctor.breaks[0][0] <= until:
            until += doctor.breaks.pop(0)[1]
        if until > self.env.now:
            doctor.away_until = until
            self.env.process(self._return(until - self.env.now))

    def _return(self, seconds: float) -> Generator[Any, Any, None]:
        yield self.env.timeout(seconds)
        self._match()

    def _match(self) -> None:
        for patient in list(self.line):
            all_free = [doctor for doctor in self.staff if doctor.is_free(self.env.now)]
            if not all_free:
                return
            free = [doctor for doctor in all_free if doctor.serves(patient.plan_id, told=patient.told)]
            if not free:
                continue
            self.line.remove(patient)
            patient.wait = self.env.now - patient.joined_at
            if not patient.left:
                doctor = min(free, key=lambda doctor: (len(doctor.visits), doctor.idle_since))
                doctor.visits[patient] = self.env.now
                self.env.process(self._visit(doctor, patient))

    def _visit(self, doctor: Worker, patient: Patient) -> Generator[Any, Any, None]:
        told = ReplayEvent(
            self.env.now, EventType.VISIT_STARTED, patient.plan_id, str(patient.number), doctor.name
        )
        if patient.told:
            self._tell(told)
        yield self.env.timeout(patient.length)
        del doctor.visits[patient]
        doctor.idle_since = self.env.now
        if patient.told:
            ended = told._replace(at=self.env.now, type=EventType.VISIT_ENDED)
            self._tell(ended, late=self.scenario.end_told_late(self.random))
        self._step_away(doctor, self.scenario.notes(self.random))
        self._match()


def replaced_time(event: ReplayEvent, late: float) -> ReplayEvent:
    """An end that a doctor tells late bears the time of the telling; a late feed keeps the times."""
    return event._replace(at=event.at + late)
