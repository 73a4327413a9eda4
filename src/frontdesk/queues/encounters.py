"""What follows from events: the state of an encounter, and whether a doctor is on duty; pure, whatever order they came in.

An encounter is decided by the SET of its events, taken in the order of their times, so that late, doubled and shuffled
events lead to one and the same state.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from frontdesk.queues.events import EventType, QueueEvent


class EncounterState(StrEnum):
    WAITING = "waiting"
    IN_VISIT = "in_visit"
    ENDED = "ended"
    LEFT = "left"


@dataclass(slots=True)
class Encounter:
    """One patient's way through the queue, by the reference `visit` of a provider group."""

    plan_id: int
    state: EncounterState
    last_event_at: datetime
    doctor: str | None = None
    joined_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """A doctor of a provider group. The latest `doctor.on_duty` says which plans and how many visits at a time."""

    on_at: datetime | None = None
    on_event: str | None = None
    off_at: datetime | None = None
    plan_ids: tuple[int, ...] | None = None
    capacity: int = 1

    @property
    def on_duty(self) -> bool:
        """At the same instant on duty wins: a shift begins when the one before it ends."""
        return self.on_at is not None and (self.off_at is None or self.on_at >= self.off_at)


def settle_encounter(events: Iterable[QueueEvent]) -> Encounter:
    """The state that a visit's events lead to; there is at least one."""
    ordered = sorted(events, key=_in_order)
    first = ordered[0]
    encounter = Encounter(first.plan_id or 0, EncounterState.LEFT, ordered[-1].at)
    for event in ordered:
        _STEPS[event.type](encounter, event)
    return encounter


def settle_duty(duty: Duty, events: Iterable[QueueEvent]) -> Duty:
    """The duty after more events of the doctor, old or new ones: only the latest of each kind counts."""
    for event in events:
        if event.type is EventType.DOCTOR_ON_DUTY:
            known = (duty.on_at, duty.on_event or "") if duty.on_at is not None else None
            if known is None or (event.at, event.id) > known:
                duty = replace(
                    duty,
                    on_at=event.at,
                    on_event=event.id,
                    plan_ids=event.plan_ids,
                    capacity=event.capacity or 1,
                )
        elif duty.off_at is None or event.at > duty.off_at:
            duty = replace(duty, off_at=event.at)
    return duty


def _joined(encounter: Encounter, event: QueueEvent) -> None:
    """Who waits keeps the place; who joins another plan moves there; who is with a doctor does not wait."""
    waits_here = encounter.state is EncounterState.WAITING and encounter.plan_id == event.plan_id
    if encounter.state is EncounterState.IN_VISIT or waits_here:
        return
    encounter.plan_id, encounter.state = event.plan_id or 0, EncounterState.WAITING
    encounter.joined_at, encounter.started_at, encounter.ended_at = event.at, None, None
    encounter.doctor = None


def _left(encounter: Encounter, event: QueueEvent) -> None:
    """Leaving a plan where the patient does not wait (any more) changes nothing."""
    if encounter.state is EncounterState.WAITING and encounter.plan_id == event.plan_id:
        encounter.state, encounter.ended_at = EncounterState.LEFT, event.at


def _started(encounter: Encounter, event: QueueEvent) -> None:
    """A second start hands the visit over to another doctor; without a wait before it, none is measured."""
    encounter.doctor = event.doctor
    if encounter.state is EncounterState.IN_VISIT:
        return
    if encounter.state is not EncounterState.WAITING or encounter.plan_id != event.plan_id:
        encounter.joined_at = None
    encounter.plan_id, encounter.state = event.plan_id or 0, EncounterState.IN_VISIT
    encounter.started_at, encounter.ended_at = event.at, None


def _ended(encounter: Encounter, event: QueueEvent) -> None:
    """The first end counts. An end without a start ends the wait, and no visit is measured."""
    if encounter.state is not EncounterState.ENDED:
        encounter.state, encounter.ended_at = EncounterState.ENDED, event.at


_STEPS: dict[EventType, Callable[[Encounter, QueueEvent], None]] = {
    EventType.PATIENT_JOINED: _joined,
    EventType.VISIT_STARTED: _started,
    EventType.VISIT_ENDED: _ended,
    EventType.PATIENT_LEFT: _left,
}
_RANKS = {type_: rank for rank, type_ in enumerate(_STEPS)}


def _in_order(event: QueueEvent) -> tuple[datetime, int, str]:
    """Events of one instant are taken in the order of a visit, so that no order of arrival can show."""
    return event.at, _RANKS[event.type], event.id
