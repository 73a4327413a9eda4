"""A provider group that is played from its events, one after the other: what the service knows of it at any moment.

It knows no more than the service reads from its tables (queues/store/pools.py), so an estimate made here is the estimate
that the service would have given.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from frontdesk.queues.estimate.intervals import IntervalRecord, note_wait
from frontdesk.queues.estimate.late_feed import KNOWN_STARTS, usual_lateness
from frontdesk.queues.estimate.model import (
    KNOWN_VISITS,
    RECENT_SECONDS,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
    WaitEstimate,
)
from frontdesk.queues.model import KNOWN_WAITS, LONGEST_WAIT, EventType

HOUR = 3600.0


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
    id: str = ""


@dataclass(slots=True)
class _Visit:
    plan_id: int
    doctor: str
    started_at: float
    waited_seconds: float | None
    known_at: float  # when the service knew of it


class _Duty(NamedTuple):
    """A doctor on duty, on the terms of the latest event; `on_at`: the time of each event, the first is the shift's start."""

    on_at: tuple[float, ...]
    plan_ids: frozenset[int] | None
    capacity: int


class QueueReplay:
    """`apply` the events in the order of their times; then `pool(now)` is what the service reads at that moment."""

    def __init__(self, longest_visit_seconds: float = 4 * HOUR) -> None:
        self._longest_visit = longest_visit_seconds
        self._staff: dict[str, _Duty] = {}
        self._line: dict[str, tuple[int, float]] = {}  # by visit: plan, when joined
        self.plan_ids: set[int] = set()  # the plans that patients have joined
        self.last_waits: dict[int, float] = {}  # by plan, of the patient that was seen last
        self.past: dict[int, deque[tuple[float, PastVisit]]] = {}  # by plan, with the end
        self._in_visit: dict[str, _Visit] = {}
        self._endless: dict[str, _Visit] = {}  # older than the longest visit: their ends may never be told
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
        waiting = self.waiting(now)
        while self._spans and self._spans[0][2] <= now - RECENT_SECONDS:
            self._spans.popleft()
        latest_first = self._ongoing(now)
        return DoctorPool(
            doctors=self._doctors(latest_first, now),
            waiting=[plan_id for plan_id, _ in waiting],
            past=[visit._replace(ended_seconds_ago=now - ended) for ended, visit in self._visits()],
            waited=[now - joined for _, joined in waiting],
            past_waits=[wait for ended, wait in self._waits_over if ended > now - RECENT_SECONDS],
            duty=[
                *(DutySpan(name, now - start, now - end) for name, start, end in self._spans),
                *(DutySpan(name, now - _known_since(duty, now), 0.0) for name, duty in self._staff.items()),
            ],
            # As the service: over the visits in progress that began last.
            feed_late_seconds=usual_lateness(
                (visit.known_at, visit.known_at - visit.started_at) for visit in latest_first[:KNOWN_STARTS]
            ),
        )

    def waiting(self, now: float) -> list[tuple[int, float]]:
        """The patients in the line: the plan, and when each joined."""
        return [one for one in self._line.values() if one[1] > now - LONGEST_WAIT.total_seconds()]

    def doctors(self, now: float) -> list[Doctor]:
        """The doctors on duty, with their visits in progress."""
        return self._doctors(self._ongoing(now), now)

    def _visits(self) -> Iterator[tuple[float, PastVisit]]:
        for visits in self.past.values():
            yield from visits

    def _ongoing(self, now: float) -> list[_Visit]:
        """The visits in progress, the latest first, without those that have lasted too long."""
        for visit in [
            name for name, one in self._in_visit.items() if one.started_at <= now - self._longest_visit
        ]:
            self._endless[visit] = self._in_visit.pop(visit)
        latest = sorted(self._in_visit.items(), key=lambda item: (-item[1].started_at, item[0]))
        return [visit for _, visit in latest]

    def _doctors(self, latest_first: Sequence[_Visit], now: float) -> list[Doctor]:
        visits: defaultdict[str, list[OngoingVisit]] = defaultdict(list)
        for visit in latest_first:
            elapsed = now - visit.started_at
            visits[visit.doctor].append(OngoingVisit(visit.plan_id, elapsed, visit.waited_seconds))
        return [
            Doctor(
                duty.plan_ids, duty.capacity, tuple(visits[name][: duty.capacity]), name, now - duty.on_at[-1]
            )
            for name, duty in self._staff.items()
        ]

    def _on_duty(self, event: ReplayEvent) -> None:
        before = self._staff.get(event.doctor)
        on_at = (*before.on_at, event.at) if before else (event.at,)
        self._staff[event.doctor] = _Duty(on_at, event.plan_ids, event.capacity)

    def _off_duty(self, event: ReplayEvent) -> None:
        duty = self._staff.pop(event.doctor, None)
        if duty is not None:
            self._spans.append((event.doctor, duty.on_at[0], event.at))

    def _join(self, event: ReplayEvent) -> None:
        """A patient that waits for the plan already keeps the place; one that is with a doctor does not wait."""
        if event.visit in self._in_visit or event.visit in self._endless or self._waits(event):
            return
        self._line.pop(event.visit, None)
        self._line[event.visit] = (event.plan_id, event.at)
        self.plan_ids.add(event.plan_id)

    def _leave(self, event: ReplayEvent) -> None:
        if self._waits(event):
            _, joined = self._line.pop(event.visit)
            self._told.pop(event.visit, None)
            self._waits_over.append((event.at, PastWait(event.at - joined, left=True)))

    def _waits(self, event: ReplayEvent) -> bool:
        waiting = self._line.get(event.visit)
        return waiting is not None and waiting[0] == event.plan_id

    def _start(self, event: ReplayEvent) -> None:
        """A second start hands the visit over to another doctor."""
        visit = self._in_visit.get(event.visit) or self._endless.get(event.visit)
        if visit is not None:
            visit.doctor = event.doctor
            return
        joined = self._line[event.visit][1] if self._waits(event) else None
        self._line.pop(event.visit, None)
        waited = event.at - joined if joined is not None else None
        if waited is not None:
            self._waits_over.append((event.at, PastWait(waited, left=False)))
            self.last_waits[event.plan_id] = waited
            if (told := self._told.pop(event.visit, None)) is not None:
                note_wait(self.records, event.plan_id, waited, told.low_seconds, told.high_seconds)
        known_at = max(event.at, event.known_at)
        self._in_visit[event.visit] = _Visit(event.plan_id, event.doctor, event.at, waited, known_at)

    def _end(self, event: ReplayEvent) -> None:
        self._line.pop(event.visit, None)
        visit = self._in_visit.pop(event.visit, None) or self._endless.pop(event.visit, None)
        if visit is not None:
            past = self.past.setdefault(visit.plan_id, deque(maxlen=KNOWN_VISITS))
            seconds = event.at - visit.started_at
            past.append(
                (event.at, PastVisit(visit.plan_id, seconds, 0.0, visit.doctor, visit.waited_seconds))
            )


def _known_since(duty: _Duty, now: float) -> float:
    """The start of a duty, as far as the service looks back at events."""
    return next((at for at in duty.on_at if at >= now - RECENT_SECONDS), duty.on_at[-1])
