"""Replays a provider group from its events, one after the other.

At each moment it has the data that the service would read from its tables (queues/store/pools.py),
so its estimates are those that the service would have given.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from frontdesk.queues.encounters import TRANSITIONS
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
)
from frontdesk.queues.estimate.record import PlanRecord, WaitEstimate, note_wait
from frontdesk.queues.model import (
    KNOWN_WAITS,
    LONGEST_VISIT,
    LONGEST_WAIT,
    Encounter,
    EncounterState,
    EventType,
    ReplayEvent,
)

Of = TypeVar("Of")

# The first number of patients at which the replay looks for some that it can set aside.
FEWEST_TO_SET_ASIDE = 200
# An older state does not count: the event that ended it never came.
LONGEST_SECONDS = {
    EncounterState.WAITING: LONGEST_WAIT.total_seconds(),
    EncounterState.IN_VISIT: LONGEST_VISIT.total_seconds(),
}


@dataclass(slots=True)
class ReplayedEncounter(Encounter[float]):
    """`since`: when the present state began; `known_at`: when the service knew of it."""

    since: float = 0.0
    known_at: float = 0.0
    waited_seconds: float | None = None  # before the visit


class _Duty(NamedTuple):
    """A doctor on duty, on the terms of the latest event; `on_at`: the times of the shift's start
    and of each later event that may still count.
    """

    on_at: tuple[float, ...]
    plan_ids: frozenset[int] | None
    capacity: int


class _Pause(NamedTuple):
    """`until`: its end, as far as it is known."""

    at: float
    until: float


class QueueReplay:
    """`apply` the events in the order of their times; then `pool(now)` is what the service reads at
    that moment.
    """

    def __init__(self) -> None:
        self.staff: dict[str, _Duty] = {}
        self.pauses: dict[str, _Pause] = {}  # by doctor, until it has ended before its time
        self._pauses_over: deque[tuple[str, _Pause]] = deque()
        # By visit: the patients that wait, in order of joining, and those that are with a doctor.
        self.present: dict[str, ReplayedEncounter] = {}
        # Of these, some whose state is too old to count. Its end may still be told.
        self._set_aside: dict[str, ReplayedEncounter] = {}
        self._look_at = FEWEST_TO_SET_ASIDE
        self.plan_ids: set[int] = set()  # the plans that patients have joined
        self.last_waits: dict[int, float] = {}  # by plan, of the patient that was seen last
        self.past: dict[int, deque[tuple[float, PastVisit]]] = {}  # by plan, with the end
        self._waits_over: deque[tuple[float, PastWait]] = deque(maxlen=KNOWN_WAITS)
        self._spans: deque[tuple[str, float, float]] = deque()
        self._estimates: dict[str, WaitEstimate] = {}  # by visit of a patient that waits
        # By plan, what the estimates that were told have taught.
        self.records: dict[int, PlanRecord] = {}

    def note_estimate(self, visit: str, estimate: WaitEstimate) -> None:
        """Store the estimate of the visit's patient; it is compared with the wait that follows."""
        self._estimates[visit] = estimate

    def apply(self, event: ReplayEvent) -> None:
        match event.type:
            case EventType.DOCTOR_ON_DUTY:
                self._on_duty(event)
            case EventType.DOCTOR_OFF_DUTY:
                self._off_duty(event)
            case EventType.DOCTOR_PAUSED:
                self._pause(event)
            case _:
                self._advance(event)

    def pool(self, now: float) -> DoctorPool:
        self._set_old_aside(now)
        line = self._line(now)
        visits = self._in_state(EncounterState.IN_VISIT, now)
        by_start = sorted(visits, key=lambda item: (-item[1].since, item[0]))
        latest_first = [visit for _, visit in by_start]
        while self._spans and self._spans[0][2] <= now - RECENT_SECONDS:
            self._spans.popleft()
        return DoctorPool(
            doctors=self._doctors(latest_first, now),
            waiting=[one.plan_id for one in line],
            past=[
                PastVisit(plan_id, seconds, now - ended, doctor, waited, patient_class)
                for visits in self.past.values()
                for ended, (plan_id, seconds, _, doctor, waited, patient_class) in visits
            ],
            waited=[now - one.since for one in line],
            classes=_unless_all(None, [one.patient_class for one in line]),
            priorities=_unless_all(0, [one.priority for one in line]),
            resumed=self._resumed(now),
            past_waits=[wait for ended, wait in self._waits_over if ended > now - RECENT_SECONDS],
            duty=[
                *(DutySpan(name, now - start, now - end) for name, start, end in self._spans),
                *(
                    DutySpan(name, now - _known_since(duty, now), 0.0)
                    for name, duty in self.staff.items()
                ),
            ],
            # As the service: over the visits in progress that began last.
            feed_late_seconds=usual_lateness(
                (visit.known_at, visit.known_at - visit.since)
                for visit in latest_first[:KNOWN_STARTS]
            ),
        )

    def _line(self, now: float) -> list[ReplayedEncounter]:
        """The patients that wait, in order of arrival; not yet those that are booked for later."""
        waiting = self._in_state(EncounterState.WAITING, now)
        line = [one for _, one in waiting if one.since <= now]
        line.sort(key=lambda one: one.since)
        return line

    def _in_state(
        self, state: EncounterState, now: float
    ) -> Iterator[tuple[str, ReplayedEncounter]]:
        """The patients that are in the state now, and not for longer than counts."""
        after = now - LONGEST_SECONDS[state]
        return (
            (visit, one)
            for visit, one in self.present.items()
            if one.state is state and one.since > after
        )

    def _set_old_aside(self, now: float) -> None:
        """Look through the patients only when their number has doubled since the last look."""
        if len(self.present) < self._look_at:
            return
        old = [
            visit
            for visit, one in self.present.items()
            if one.since <= now - LONGEST_SECONDS[one.state]
        ]
        for visit in old:
            self._set_aside[visit] = self.present.pop(visit)
        self._look_at = max(FEWEST_TO_SET_ASIDE, 2 * len(self.present))

    def _encounter(self, event: ReplayEvent) -> ReplayedEncounter:
        """That of the visit; a new one of a patient that is in no line and with no doctor."""
        old = self._set_aside.pop(event.visit, None)
        if old is not None:
            self.present[event.visit] = old
        new = ReplayedEncounter(event.plan_id, EncounterState.LEFT, event.at)
        return self.present.get(event.visit, new)

    def _doctors(self, latest_first: Sequence[ReplayedEncounter], now: float) -> list[Doctor]:
        visits: defaultdict[str, list[OngoingVisit]] = defaultdict(list)
        for visit in latest_first:
            elapsed = now - visit.since
            visits[visit.doctor or ""].append(
                OngoingVisit(visit.plan_id, elapsed, visit.waited_seconds, visit.patient_class)
            )
        return [
            Doctor(
                duty.plan_ids,
                duty.capacity,
                tuple(visits[name][: duty.capacity]),
                name,
                now - duty.on_at[-1],
                max(0.0, self.pauses[name].until - now) if name in self.pauses else 0.0,
            )
            for name, duty in self.staff.items()
        ]

    def _on_duty(self, event: ReplayEvent) -> None:
        self._end_pause(event)
        before = self.staff.get(event.doctor)
        on_at: tuple[float, ...] = (event.at,)
        if before is not None:
            start, *later = before.on_at
            recent = [at for at in later if at >= event.at - RECENT_SECONDS]
            on_at = (start, *recent, event.at)
        self.staff[event.doctor] = _Duty(on_at, event.plan_ids, event.capacity)

    def _pause(self, event: ReplayEvent) -> None:
        """Of two pauses that begin at the same instant, the longer one counts."""
        until = event.at if event.until is None else event.until
        before = self.pauses.get(event.doctor)
        if before is not None and before.at == event.at:
            until = max(until, before.until)
        self._break_off_pause(event)
        self.pauses[event.doctor] = _Pause(event.at, until)

    def _break_off_pause(self, event: ReplayEvent) -> None:
        """A pause that goes on in another one, or in the end of the shift, has no end."""
        pause = self.pauses.pop(event.doctor, None)
        if pause is not None and pause.until < event.at:
            self._pauses_over.append((event.doctor, pause))

    def _end_pause(self, event: ReplayEvent) -> None:
        """The doctor comes on duty or starts a visit; not before the pause, if that is told late."""
        pause = self.pauses.get(event.doctor)
        if pause is not None and event.at >= pause.at:
            del self.pauses[event.doctor]
            ended = pause._replace(until=min(pause.until, event.at))
            self._pauses_over.append((event.doctor, ended))

    def _resumed(self, now: float) -> list[tuple[str, float]]:
        """As the service: of the pauses that began in the last four hours."""
        while self._pauses_over and self._pauses_over[0][1].until < now - RECENT_SECONDS:
            self._pauses_over.popleft()
        self.pauses = {
            doctor: pause
            for doctor, pause in self.pauses.items()
            if pause.until > now or pause.at >= now - RECENT_SECONDS
        }
        return [
            (doctor, now - pause.until)
            for doctor, pause in (*self._pauses_over, *self.pauses.items())
            if pause.until <= now and pause.at >= now - RECENT_SECONDS
        ]

    def _off_duty(self, event: ReplayEvent) -> None:
        self._break_off_pause(event)
        duty = self.staff.pop(event.doctor, None)
        if duty is not None:
            self._spans.append((event.doctor, duty.on_at[0], event.at))

    def _advance(self, event: ReplayEvent) -> None:
        """Move the patient by the rules of queues/encounters.py, and note what that ends."""
        one = self._encounter(event)
        before = (one.state, one.plan_id)
        goes_on = one.state is EncounterState.IN_VISIT and one.doctor == event.doctor
        since = one.since
        TRANSITIONS[event.type](one, event)
        if event.type is EventType.VISIT_STARTED and not goes_on:
            self._end_pause(event)
        if (one.state, one.plan_id) == before:
            if one.state is EncounterState.WAITING:
                one.since = one.joined_at or 0.0  # a booking may have moved
            return
        one.since = event.at
        if one.state is EncounterState.WAITING and one.joined_at is not None:
            one.since = one.joined_at
        one.known_at = max(event.at, event.known_at)
        self.present.pop(event.visit, None)
        if one.state in (EncounterState.WAITING, EncounterState.IN_VISIT):
            self.present[event.visit] = one
        if one.state is EncounterState.WAITING:
            self.plan_ids.add(one.plan_id)
            return
        estimate = self._estimates.pop(event.visit, None)
        if one.state is not EncounterState.ENDED:
            self._note_wait(event, one, estimate)
        elif before[0] is EncounterState.IN_VISIT:
            visit = PastVisit(
                plan_id=one.plan_id,
                seconds=event.at - since,
                ended_seconds_ago=0.0,
                doctor=one.doctor,
                waited_seconds=one.waited_seconds,
                patient_class=one.patient_class,
            )
            self.past.setdefault(one.plan_id, deque(maxlen=KNOWN_VISITS)).append((event.at, visit))

    def _note_wait(
        self, event: ReplayEvent, one: ReplayedEncounter, estimate: WaitEstimate | None
    ) -> None:
        """The patient is seen, or has left unseen; the wait is not known of one that did not wait
        for the plan.
        """
        if one.joined_at is None:
            return
        waited = event.at - one.joined_at
        left = one.state is EncounterState.LEFT
        wait = PastWait(waited, left, one.plan_id, one.patient_class, one.priority)
        self._waits_over.append((event.at, wait))
        if left:
            return
        one.waited_seconds = self.last_waits[one.plan_id] = waited
        if estimate is not None:
            note_wait(self.records, one.plan_id, waited, estimate, one.patient_class)


def _unless_all(usual: Of, values: Sequence[Of]) -> Sequence[Of]:
    """The values of the patients in the line; none where all are the usual one."""
    return values if any(value != usual for value in values) else ()


def _known_since(duty: _Duty, now: float) -> float:
    """The start of a duty, as far as the service looks back at events."""
    return next((at for at in duty.on_at if at >= now - RECENT_SECONDS), duty.on_at[-1])
