"""A provider group that is played from its events, one after the other: what the service knows of it at any moment.

It knows no more than the service reads from its tables (queues/store/pools.py), so an estimate made here is the estimate
that the service would have given.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from frontdesk.queues.estimate.late_feed import KNOWN_STARTS, usual_lateness
from frontdesk.queues.estimate.model import (
    KNOWN_VISITS,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
    WaitEstimate,
)
from frontdesk.queues.estimate.records import IntervalRecord, note_wait
from frontdesk.queues.model import EventType

HOUR = 3600.0

KNOWN_WAITS = 200
RECENT = 4 * HOUR
LONGEST_WAIT = 24 * HOUR


class ReplayEvent(NamedTuple):
    """One event at `at` seconds, known from `known_at` on. The other fields are those of a QueueEvent."""

    at: float
    type: EventType
    plan_id: int = 0
    visit: str = ""
    doctor: str = ""
    plan_ids: frozenset[int] | None = None
    capacity: int = 1
    group: int = 0
    known_at: float = 0.0


class SeenPatient(NamedTuple):
    """A doctor took the patient at `seen_at`."""

    plan_id: int
    seen_at: float
    waited_seconds: float


@dataclass(slots=True)
class _Visit:
    plan_id: int
    started_at: float
    waited_seconds: float | None
    known_at: float  # when the service knew of it


@dataclass(slots=True)
class DoctorAtWork:
    """A doctor on duty, with the visits in progress in order of their start."""

    on_at: float
    plan_ids: frozenset[int] | None
    capacity: int
    visits: dict[str, _Visit] = field(default_factory=dict)

    def serves(self, plan_id: int) -> bool:
        return self.plan_ids is None or plan_id in self.plan_ids

    @property
    def is_free(self) -> bool:
        return len(self.visits) < self.capacity


class QueueReplay:
    """`apply` the events in the order of their times; then `pool(now)` is what the service reads at that moment."""

    def __init__(self, longest_visit_seconds: float = 4 * HOUR) -> None:
        self._longest_visit = longest_visit_seconds
        self.staff: dict[str, DoctorAtWork] = {}
        self.line: dict[str, tuple[int, float]] = {}  # by visit: plan, when joined
        self.plan_ids: set[int] = set()  # the plans that patients have joined
        self.arrivals: deque[tuple[int, float]] = deque(maxlen=5000)  # plan, when
        self.seen: deque[SeenPatient] = deque(maxlen=5000)
        self.past: dict[int, deque[tuple[float, PastVisit]]] = {}  # by plan, with the end
        self._doctor_of: dict[str, str] = {}  # of the visits in progress
        self._absent: dict[str, _Visit] = {}  # visits of doctors that are off duty
        self._waits_over: deque[tuple[float, PastWait]] = deque(maxlen=KNOWN_WAITS)
        self._spans: deque[tuple[str, float, float]] = deque()
        self._told: dict[str, WaitEstimate] = {}  # by visit of a patient that waits
        self.records: dict[int, IntervalRecord] = {}  # by plan, how the intervals that were told have held

    def tell(self, visit: str, estimate: WaitEstimate) -> None:
        """The estimate that the patient of the visit got: its interval is compared with the wait that comes."""
        self._told[visit] = estimate

    def apply(self, event: ReplayEvent) -> None:
        match event.type:
            case EventType.DOCTOR_ON_DUTY:
                self._on_duty(event)
            case EventType.DOCTOR_OFF_DUTY:
                self._off_duty(event)
            case EventType.PATIENT_JOINED:
                self._join(event)
            case EventType.PATIENT_LEFT:
                self._leave(event)
            case EventType.VISIT_STARTED:
                self._start(event)
            case EventType.VISIT_ENDED:
                self._end(event)

    def pool(self, now: float) -> DoctorPool:
        """What the service knows at `now`."""
        waiting = [one for one in self.line.values() if one[1] > now - LONGEST_WAIT]
        while self._spans and self._spans[0][2] <= now - RECENT:
            self._spans.popleft()
        return DoctorPool(
            doctors=[self._doctor(name, at_work, now) for name, at_work in self.staff.items()],
            waiting=[plan_id for plan_id, _ in waiting],
            past=[visit._replace(ended_seconds_ago=now - ended) for ended, visit in self._visits()],
            waited=[now - joined for _, joined in waiting],
            past_waits=[wait for ended, wait in self._waits_over if ended > now - RECENT],
            duty=[
                *(DutySpan(name, now - start, now - end) for name, start, end in self._spans),
                *(DutySpan(name, now - at_work.on_at, 0.0) for name, at_work in self.staff.items()),
            ],
            feed_late_seconds=self._feed_late(now),
        )

    def _feed_late(self, now: float) -> float:
        """As `feed_lateness` of the service: over the visits in progress that began last."""
        visits = [visit for at_work in self.staff.values() for visit in at_work.visits.values()]
        recent = [
            visit
            for visit in (*visits, *self._absent.values())
            if visit.started_at > now - self._longest_visit
        ]
        recent.sort(key=attrgetter("started_at"), reverse=True)
        return usual_lateness(
            (visit.known_at, visit.known_at - visit.started_at) for visit in recent[:KNOWN_STARTS]
        )

    def recent_arrivals(self, since: float) -> list[int]:
        """The plans of the patients that have joined since then."""
        return [plan for plan, _ in takewhile(lambda one: one[1] > since, reversed(self.arrivals))]

    def _visits(self) -> Iterator[tuple[float, PastVisit]]:
        for visits in self.past.values():
            yield from visits

    def _doctor(self, name: str, at_work: DoctorAtWork, now: float) -> Doctor:
        visits = tuple(
            OngoingVisit(visit.plan_id, now - visit.started_at, visit.waited_seconds)
            for visit in reversed(at_work.visits.values())
            if visit.started_at > now - self._longest_visit
        )
        return Doctor(
            at_work.plan_ids, at_work.capacity, visits[: at_work.capacity], name, now - at_work.on_at
        )

    def _on_duty(self, event: ReplayEvent) -> None:
        before = self.staff.get(event.doctor)
        at_work = DoctorAtWork(
            before.on_at if before else event.at,
            event.plan_ids,
            event.capacity,
            before.visits if before else {},
        )
        self.staff[event.doctor] = at_work

    def _off_duty(self, event: ReplayEvent) -> None:
        at_work = self.staff.pop(event.doctor, None)
        if at_work is not None:
            self._spans.append((event.doctor, at_work.on_at, event.at))
            self._absent.update(at_work.visits)

    def _join(self, event: ReplayEvent) -> None:
        """A patient that waits for the plan already keeps the place; one that is with a doctor does not wait."""
        if event.visit in self._doctor_of or self._waits(event):
            return
        self.line.pop(event.visit, None)
        self.line[event.visit] = (event.plan_id, event.at)
        self.arrivals.append((event.plan_id, event.at))
        self.plan_ids.add(event.plan_id)

    def _leave(self, event: ReplayEvent) -> None:
        if self._waits(event):
            _, joined = self.line.pop(event.visit)
            self._told.pop(event.visit, None)
            self._waits_over.append((event.at, PastWait(event.at - joined, left=True)))

    def _waits(self, event: ReplayEvent) -> bool:
        waiting = self.line.get(event.visit)
        return waiting is not None and waiting[0] == event.plan_id

    def _start(self, event: ReplayEvent) -> None:
        """A second start hands the visit over to another doctor."""
        visit = self._taken_from_doctor(event.visit)
        if visit is None:
            joined = self.line[event.visit][1] if self._waits(event) else None
            self.line.pop(event.visit, None)
            waited = event.at - joined if joined is not None else None
            if waited is not None:
                self._waits_over.append((event.at, PastWait(waited, left=False)))
                self.seen.append(SeenPatient(event.plan_id, event.at, waited))
                if (told := self._told.pop(event.visit, None)) is not None:
                    note_wait(self.records, event.plan_id, waited, told.low_seconds, told.high_seconds)
            visit = _Visit(event.plan_id, event.at, waited, max(event.at, event.known_at))
        self._doctor_of[event.visit] = event.doctor
        at_work = self.staff.get(event.doctor)
        (at_work.visits if at_work else self._absent)[event.visit] = visit

    def _end(self, event: ReplayEvent) -> None:
        self.line.pop(event.visit, None)
        doctor = self._doctor_of.get(event.visit, "")
        visit = self._taken_from_doctor(event.visit)
        if visit is not None:
            past = self.past.setdefault(visit.plan_id, deque(maxlen=KNOWN_VISITS))
            seconds = event.at - visit.started_at
            past.append((event.at, PastVisit(visit.plan_id, seconds, 0.0, doctor, visit.waited_seconds)))

    def _taken_from_doctor(self, visit: str) -> _Visit | None:
        """The visit in progress, which its doctor has no more."""
        at_work = self.staff.get(self._doctor_of.pop(visit, ""))
        found = at_work.visits.pop(visit, None) if at_work else None
        return found or self._absent.pop(visit, None)
