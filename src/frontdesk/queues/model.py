"""The nouns of the encounter queue. Doctors, patients and visits are opaque references; times are
aware UTC datetimes.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Generic, NamedTuple, TypeVar

from frontdesk.errors import Fault
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.estimate.record import EstimateBasis, PlanRecord, WaitEstimate

INTERVAL_SHARE = 0.8  # of the waits are expected to fall into the interval
LONGEST_WAIT = timedelta(hours=24)  # an older wait is ignored: the event that ended it never came
LONGEST_VISIT = timedelta(hours=4)  # an older visit without an end is ignored
KNOWN_WAITS = 200  # of each provider group, the latest: how patients leave
STALE_TTLS = (
    4  # while no newer snapshot can be had, an expired one is served for this many ttls more
)

PATIENT_CLASS = re.compile(r"[a-z0-9-]{1,40}")  # what the class of a patient looks like
PATIENT_CLASS_FORM = "1 to 40 lower-case letters a to z, digits and hyphens"
PATIENT_CLASS_RULE = f"must be {PATIENT_CLASS_FORM}"

# A visit or a doctor, with the provider group: references are unique in a group only.
Reference = tuple[str, int]
At = TypeVar("At", datetime, float)


class EventType(StrEnum):
    DOCTOR_ON_DUTY = "doctor.on_duty"
    DOCTOR_OFF_DUTY = "doctor.off_duty"
    DOCTOR_PAUSED = "doctor.paused"
    PATIENT_JOINED = "patient.joined"
    PATIENT_LEFT = "patient.left"
    VISIT_STARTED = "visit.started"
    VISIT_ENDED = "visit.ended"


class QueueEvent(NamedTuple):
    """One event. Without a `visit` it is about a doctor. `provider_group_id` None: that of the
    plan.

    `plan_ids` None: the doctor serves all plans of the group; `capacity`: how many visits at a
    time. `not_before`: a booked patient is not in the line until then. `until`: the expected end of
    a pause.
    """

    id: str
    type: EventType
    at: datetime
    provider_group_id: int | None = None
    plan_id: int | None = None
    doctor: str | None = None
    visit: str | None = None
    plan_ids: tuple[int, ...] | None = None
    capacity: int | None = None
    patient_class: str | None = None
    priority: int | None = None
    not_before: datetime | None = None
    until: datetime | None = None

    @property
    def reference(self) -> Reference:
        """The subject of the event: its visit, else its doctor."""
        return (
            self.visit if self.visit is not None else self.doctor
        ) or "", self.provider_group_id or 0


class ReplayEvent(NamedTuple):
    """An event of a back-test: at `at` seconds, known from `known_at` on. The other fields are
    those of a QueueEvent.
    """

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
    patient_class: str | None = None
    priority: int | None = None
    not_before: float | None = None
    until: float | None = None


class ParsedEvent(NamedTuple):
    """An event as sent: the event or its faults, its `id` if it could be read, and the fields that
    were ignored.
    """

    id: str | None
    event: QueueEvent | None
    faults: tuple[Fault, ...] = ()
    ignored: tuple[str, ...] = ()


class EventOutcome(StrEnum):
    """The outcome of an event; a duplicate has an id that its provider group has already sent."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


class EventResult(NamedTuple):
    """The outcome of one event; a refused event has faults."""

    outcome: EventOutcome
    faults: tuple[Fault, ...] = ()


class EncounterState(StrEnum):
    """Waiting for a doctor, with a doctor, ended, or left without a visit (docs/states.md)."""

    WAITING = "waiting"
    IN_VISIT = "in_visit"
    ENDED = "ended"
    LEFT = "left"


@dataclass(slots=True)
class Encounter(Generic[At]):
    """One patient's way through the queue; a provider group's reference `visit` names it.

    Its times are datetimes; in a back-test, seconds. `joined_at`: when the patient enters the line,
    which is in the future while a booked patient is not in it yet. A higher `priority` goes first.
    """

    plan_id: int
    state: EncounterState
    last_event_at: At
    doctor: str | None = None
    joined_at: At | None = None
    started_at: At | None = None
    ended_at: At | None = None
    patient_class: str | None = None
    priority: int = 0

    def waits_for(self, plan_id: int | None) -> bool:
        """Waits for the plan, or is booked for it."""
        return self.state is EncounterState.WAITING and self.plan_id == plan_id

    def is_booked_at(self, at: At) -> bool:
        """At that time the patient is booked, and not yet in the line."""
        return (
            self.state is EncounterState.WAITING
            and self.joined_at is not None
            and self.joined_at > at
        )


@dataclass(frozen=True, slots=True)
class Duty:
    """A doctor of a provider group. The latest `doctor.on_duty` sets the plans and the number of
    visits at a time. `paused_at`, `paused_until`: of the latest pause, whether it has ended or not.
    """

    on_at: datetime | None = None
    on_event: str | None = None
    off_at: datetime | None = None
    plan_ids: tuple[int, ...] | None = None
    capacity: int = 1
    paused_at: datetime | None = None
    paused_until: datetime | None = None

    @property
    def on_duty(self) -> bool:
        """At the same instant `on` wins: a shift begins when the one before it ends."""
        return self.on_at is not None and (self.off_at is None or self.on_at >= self.off_at)


class QueueInfo(NamedTuple):
    """One plan's queue. `estimated_wait_seconds` is -1 exactly when no doctor is on duty; then
    there is no interval.

    `basis`: what the estimate is compared with later; `classes`: the estimates for newcomers of
    each class that the plan had in the last hours.
    """

    estimated_wait_seconds: int
    queue_length: int
    doctors_on_duty: bool
    low_seconds: int | None = None
    high_seconds: int | None = None
    basis: EstimateBasis | None = None
    classes: Mapping[str, WaitEstimate] = {}

    def of_class(self, patient_class: str | None) -> "QueueInfo":
        """The queue as a newcomer of the class meets it; of a class that the plan had not lately,
        and of None, as anyone does.
        """
        estimate = self.classes.get(patient_class or "")
        if estimate is None:
            return self
        seconds, low, high, basis = estimate
        return self._replace(
            estimated_wait_seconds=seconds, low_seconds=low, high_seconds=high, basis=basis
        )


class PlanQueue(NamedTuple):
    """A plan's queue, the number of doctors on duty that serve it, of those with a patient, and of
    those without one in a reported pause.
    """

    info: QueueInfo
    doctors: int
    in_visit: int
    paused: int


class EstimateRecords(NamedTuple):
    """By plan, what the estimates have taught whose waits ended by `until`."""

    until: datetime
    plans: dict[int, PlanRecord]


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """The queues of all plans of an account at `taken_at`, to be renewed from `expires_at` on."""

    queues: dict[int, QueueInfo]
    ttl_seconds: int
    taken_at: datetime
    expires_at: datetime
    records: EstimateRecords | None = None

    def in_time(self, now: datetime) -> bool:
        """False when it has expired, or when a clock that was set back makes it one of the future."""
        return self.taken_at - timedelta(seconds=self.ttl_seconds) <= now < self.expires_at

    def covers(self, plan_ids: Collection[int], now: datetime) -> bool:
        return self.in_time(now) and all(plan_id in self.queues for plan_id in plan_ids)

    def is_usable(self, now: datetime) -> bool:
        """True if it may be served while no newer snapshot is available."""
        ttl = timedelta(seconds=self.ttl_seconds)
        return self.taken_at - ttl <= now < self.expires_at + STALE_TTLS * ttl


class WaitOutcome(NamedTuple):
    """An estimate and the wait that followed, in seconds. `patient_class`: the class for which the
    estimate was, None for that of anyone.
    """

    plan_id: int
    joined_at: datetime
    estimate: WaitEstimate
    wait_seconds: float
    patient_class: str | None = None

    @property
    def side(self) -> int | None:
        """-1, 0, 1: the wait was shorter than the interval, inside, longer. None without an
        interval, as for a ready doctor (0 to 0). The ends are whole seconds, so a wait in the last
        second is inside.

        >>> WaitOutcome(1, datetime(2026, 11, 20), WaitEstimate(300, 200, 400), 500.0).side
        1
        """
        low = self.estimate.low_seconds
        high = self.estimate.high_seconds
        if low is None or not high:
            return None
        return (self.wait_seconds >= high + 1) - (self.wait_seconds < low)


class EstimateAccuracy(NamedTuple):
    """The accuracy of a plan's estimates, in seconds; `bias_seconds` above 0: patients waited less
    than the estimate said.

    `wrong_zero_share`: the share of the estimates of 0 after which the patient waited over 30 s.
    `coverage_share`: of the patients with an interval, the share whose wait was inside; 0 to 0 is
    none. Both are None where there is nothing to count.
    """

    plan_id: int
    matched: int
    mean_wait_seconds: float
    mean_error_seconds: float
    bias_seconds: float
    p90_error_seconds: float
    wrong_zero_share: float | None
    coverage_share: float | None


def measure_accuracy(outcomes: Iterable[WaitOutcome]) -> list[EstimateAccuracy]:
    """The accuracy of the estimates of each plan, in the order of their ids.

    >>> at = datetime(2026, 11, 20)
    >>> long, short = (WaitEstimate(seconds, None, None) for seconds in (300, 100))
    >>> outcomes = [WaitOutcome(1, at, long, 200.0), WaitOutcome(1, at, short, 160.0)]
    >>> [found] = measure_accuracy(outcomes)
    >>> found.mean_error_seconds, found.bias_seconds
    (80.0, 20.0)
    """
    by_plan: defaultdict[int, list[WaitOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_plan[outcome.plan_id].append(outcome)
    return [accuracy_of(own, plan_id) for plan_id, own in sorted(by_plan.items())]


def accuracy_of(outcomes: Sequence[WaitOutcome], plan_id: int = 0) -> EstimateAccuracy:
    """Of one outcome at least; `plan_id` 0: of several plans."""
    errors = [outcome.estimate.seconds - outcome.wait_seconds for outcome in outcomes]
    zeros = [
        outcome.wait_seconds > READY_SECONDS
        for outcome in outcomes
        if outcome.estimate.seconds == 0
    ]
    sides = [outcome.side for outcome in outcomes if outcome.side is not None]
    sizes = sorted(map(abs, errors))
    count = len(errors)
    return EstimateAccuracy(
        plan_id=plan_id,
        matched=count,
        mean_wait_seconds=sum(outcome.wait_seconds for outcome in outcomes) / count,
        mean_error_seconds=sum(sizes) / count,
        bias_seconds=sum(errors) / count,
        p90_error_seconds=sizes[ceil(0.9 * count) - 1],
        wrong_zero_share=sum(zeros) / len(zeros) if zeros else None,
        coverage_share=sides.count(0) / len(sides) if sides else None,
    )
