"""A simulated day at a clinic's queue, event by event: what really happens, and what a service can know of it.

Patients are served in order of arrival by the first free doctor that serves their plan. A patient that leaves unseen keeps a
ghost in the line that takes no doctor's time: when its turn comes, that is the wait the patient would have had.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import simpy

from frontdesk.queues.estimate.model import Doctor, DoctorPool, DutySpan, OngoingVisit, PastVisit, PastWait

HOUR = 3600.0
KNOWN_WAITS = 200
KNOWN_VISITS = 60  # per plan: what the service reads of the past
RECENT = 4 * HOUR


@dataclass(frozen=True)
class Plan:
    """`rate(t)`: patients an hour at t seconds into the day; `length(random)`: seconds of a visit."""

    rate: Callable[[float], float]
    length: Callable[[Random], float]
    peak_rate: float
    patience: Callable[[Random], float] | None = None


@dataclass(frozen=True)
class Shift:
    """One doctor's day: from when to when on duty. Who goes off duty ends the visits in progress and takes no more."""

    spans: tuple[tuple[float, float], ...]
    plan_ids: frozenset[int] | None = None
    capacity: int = 1


@dataclass(frozen=True)
class Scenario:
    """`roster(random)` makes the day's shifts. Newcomers between `measured` are compared, in seconds of the day."""

    name: str
    plans: dict[int, Plan]
    roster: Callable[[Random], list[Shift]]
    measured: tuple[float, float] = (HOUR, 9 * HOUR)
    default_seconds: float = 900.0


@dataclass(eq=False)
class Patient:
    plan_id: int
    joined_at: float
    length: float
    left: bool = False
    estimates: dict[str, float] = field(default_factory=dict)
    wait: float | None = None


@dataclass(eq=False)
class OnDuty:
    name: str
    shift: Shift
    visits: dict[Patient, float] = field(default_factory=dict)
    on_duty: bool = False
    idle_since: float = 0.0

    def serves(self, plan_id: int) -> bool:
        return self.shift.plan_ids is None or plan_id in self.shift.plan_ids

    def is_free(self) -> bool:
        return self.on_duty and len(self.visits) < self.shift.capacity


class Day:
    """The world. `newcomers` are those compared, each with the estimates it was given when it joined."""

    def __init__(self, scenario: Scenario, seed: int, ask: "Callable[[Day, int], dict[str, float]]") -> None:
        self.random = Random(seed)
        self.scenario = scenario
        self.ask = ask
        self.env = simpy.Environment()
        self.line: list[Patient] = []
        self.staff = [OnDuty(f"doctor {i}", shift) for i, shift in enumerate(scenario.roster(self.random))]
        self.past: dict[int, deque[tuple[float, float]]] = {
            plan_id: deque(maxlen=KNOWN_VISITS) for plan_id in scenario.plans
        }
        self.joined: list[tuple[int, float]] = []
        self.seen: list[tuple[int, float, float]] = []  # plan, when seen, wait
        self.waits_over: deque[tuple[float, bool]] = deque(
            maxlen=KNOWN_WAITS
        )  # seconds, whether they left unseen
        self.duty: list[tuple[str, float, float | None]] = []
        self.newcomers: list[Patient] = []

    def run(self) -> list[Patient]:
        for doctor in self.staff:
            self.env.process(self._work(doctor))
        for plan_id, plan in self.scenario.plans.items():
            self.env.process(self._arrive(plan_id, plan))
        self.env.run(until=self.scenario.measured[1] + 6 * HOUR)
        return [patient for patient in self.newcomers if patient.wait is not None]

    def pool(self) -> DoctorPool:
        """What the service knows."""
        now = self.env.now
        waiting = [patient for patient in self.line if not patient.left]
        return DoctorPool(
            doctors=[
                Doctor(
                    doctor.shift.plan_ids,
                    doctor.shift.capacity,
                    tuple(OngoingVisit(patient.plan_id, now - at) for patient, at in doctor.visits.items()),
                )
                for doctor in self.staff
                if doctor.on_duty
            ],
            waiting=[patient.plan_id for patient in waiting],
            past=[
                PastVisit(plan_id, seconds, now - at)
                for plan_id, visits in self.past.items()
                for at, seconds in visits
            ],
            waited=[now - patient.joined_at for patient in waiting],
            past_waits=[PastWait(seconds, left) for seconds, left in self.waits_over],
            duty=[
                DutySpan(doctor, now - start, 0.0 if end is None else now - end)
                for doctor, start, end in self.duty
                if end is None or end > now - RECENT
            ],
        )

    def _arrive(self, plan_id: int, plan: Plan) -> Generator[Any, Any, None]:
        last = self.scenario.measured[1]
        while True:
            yield self.env.timeout(self.random.expovariate(plan.peak_rate / HOUR))
            if self.env.now > last:
                return
            if self.random.random() * plan.peak_rate < plan.rate(self.env.now):
                self._join(plan_id, plan)

    def _join(self, plan_id: int, plan: Plan) -> None:
        patient = Patient(plan_id, self.env.now, plan.length(self.random))
        attended = any(doctor.on_duty and doctor.serves(plan_id) for doctor in self.staff)
        if attended and self.env.now >= self.scenario.measured[0]:
            patient.estimates = self.ask(self, plan_id)
            self.newcomers.append(patient)
        self.joined.append((plan_id, self.env.now))
        self.line.append(patient)
        if plan.patience is not None:
            self.env.process(self._lose_patience(patient, plan.patience(self.random)))
        self._match()

    def _lose_patience(self, patient: Patient, seconds: float) -> Generator[Any, Any, None]:
        yield self.env.timeout(seconds)
        if patient.wait is None:
            patient.left = True
            self.waits_over.append((seconds, True))

    def _work(self, doctor: OnDuty) -> Generator[Any, Any, None]:
        for start, end in doctor.shift.spans:
            yield self.env.timeout(start - self.env.now)
            doctor.on_duty, doctor.idle_since = True, self.env.now
            row = len(self.duty)
            self.duty.append((doctor.name, start, None))
            self._match()
            yield self.env.timeout(end - self.env.now)
            doctor.on_duty = False
            self.duty[row] = (doctor.name, start, end)

    def _match(self) -> None:
        for patient in list(self.line):
            all_free = [doctor for doctor in self.staff if doctor.is_free()]
            if not all_free:
                return
            free = [doctor for doctor in all_free if doctor.serves(patient.plan_id)]
            if not free:
                continue
            self.line.remove(patient)
            patient.wait = self.env.now - patient.joined_at
            if not patient.left:
                self.waits_over.append((patient.wait, False))
                self.seen.append((patient.plan_id, self.env.now, patient.wait))
                doctor = min(free, key=lambda doctor: (len(doctor.visits), doctor.idle_since))
                doctor.visits[patient] = self.env.now
                self.env.process(self._visit(doctor, patient))

    def _visit(self, doctor: OnDuty, patient: Patient) -> Generator[Any, Any, None]:
        yield self.env.timeout(patient.length)
        del doctor.visits[patient]
        doctor.idle_since = self.env.now
        self.past[patient.plan_id].append((self.env.now, patient.length))
        self._match()
