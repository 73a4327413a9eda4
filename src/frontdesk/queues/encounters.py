"""The state of an encounter and of a doctor, from their events.

The events count as a SET, in the order of their times: late, doubled and shuffled events lead to
the same state.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from frontdesk.queues.model import (
    Duty,
    Encounter,
    EncounterState,
    EventType,
    QueueEvent,
    ReplayEvent,
)

AnyEvent = QueueEvent | ReplayEvent


def settle_encounter(events: Iterable[QueueEvent]) -> Encounter[datetime]:
    """The state that the events of one visit lead to; there is at least one event.

    >>> from frontdesk.queues.model import EventType as Type
    >>> noon = datetime(2026, 11, 20, 12)
    >>> started = QueueEvent("2", Type.VISIT_STARTED, noon, plan_id=1, visit="v", doctor="dr")
    >>> joined = QueueEvent("1", Type.PATIENT_JOINED, noon, plan_id=1, visit="v")
    >>> settle_encounter([started, joined]).state
    <EncounterState.IN_VISIT: 'in_visit'>
    """
    ordered = sorted(events, key=event_order)
    first = ordered[0]
    encounter = Encounter[datetime](first.plan_id or 0, EncounterState.LEFT, ordered[-1].at)
    for event in ordered:
        TRANSITIONS[event.type](encounter, event)
    return encounter


def settle_duty(duty: Duty, events: Iterable[QueueEvent]) -> Duty:
    """The duty after more events of the doctor, in any order: only the latest of each type counts.

    >>> noon = datetime(2026, 11, 20, 12)
    >>> begin = QueueEvent("1", EventType.DOCTOR_ON_DUTY, noon, doctor="dr")
    >>> settle_duty(Duty(), [begin]).on_duty
    True
    """
    for event in events:
        if event.type is EventType.DOCTOR_ON_DUTY:
            latest = (duty.on_at, duty.on_event or "") if duty.on_at is not None else None
            if latest is None or (event.at, event.id) > latest:
                duty = replace(
                    duty,
                    on_at=event.at,
                    on_event=event.id,
                    plan_ids=event.plan_ids,
                    capacity=event.capacity or 1,
                )
        elif event.type is EventType.DOCTOR_PAUSED:
            duty = _paused(duty, event)
        elif duty.off_at is None or event.at > duty.off_at:
            duty = replace(duty, off_at=event.at)
    return duty


def _paused(duty: Duty, event: QueueEvent) -> Duty:
    """Of two pauses that begin at the same instant, the longer one counts."""
    latest = duty.paused_at, duty.paused_until
    if duty.paused_at is not None and (event.at, event.until) <= latest:
        return duty
    return replace(duty, paused_at=event.at, paused_until=event.until)


def _join(encounter: Encounter[Any], event: AnyEvent) -> None:
    """A waiting patient keeps the place, moves when it joins another plan or is booked for later,
    and does not wait while with a doctor. A booked patient gets the time of the later event:
    without one, it is there now. A later event without class or priority keeps the earlier ones.
    """
    if encounter.state is EncounterState.IN_VISIT:
        return
    is_new = encounter.state is not EncounterState.WAITING
    if is_new or event.patient_class is not None:
        encounter.patient_class = event.patient_class
    if is_new or event.priority is not None:
        encounter.priority = event.priority or 0
    enters_line_at = _enters_line_at(event)
    is_in_line = encounter.waits_for(event.plan_id) and not encounter.is_booked_at(event.at)
    if is_in_line and enters_line_at == event.at:
        return
    encounter.plan_id = event.plan_id or 0
    encounter.state = EncounterState.WAITING
    encounter.joined_at = enters_line_at
    encounter.started_at = None
    encounter.ended_at = None
    encounter.doctor = None


def _enters_line_at(event: AnyEvent) -> Any:
    times: list[Any] = [event.at]
    if event.not_before is not None:
        times.append(event.not_before)
    return max(times)


def _leave(encounter: Encounter[Any], event: AnyEvent) -> None:
    """Leaving a plan where the patient does not wait changes nothing."""
    if encounter.waits_for(event.plan_id):
        _forget_booking(encounter, event)
        encounter.state = EncounterState.LEFT
        encounter.ended_at = event.at


def _start(encounter: Encounter[Any], event: AnyEvent) -> None:
    """A second start hands the visit over to another doctor. A start without a wait before it
    measures no wait, and so does that of a booked patient before its time. Class and priority are
    those of the wait.
    """
    encounter.doctor = event.doctor
    if encounter.state is EncounterState.IN_VISIT:
        return
    if encounter.state is not EncounterState.WAITING:
        encounter.patient_class = None
        encounter.priority = 0
    if not encounter.waits_for(event.plan_id) or encounter.is_booked_at(event.at):
        encounter.joined_at = None
    encounter.plan_id = event.plan_id or 0
    encounter.state = EncounterState.IN_VISIT
    encounter.started_at = event.at
    encounter.ended_at = None


def _end(encounter: Encounter[Any], event: AnyEvent) -> None:
    """The first end counts. An end without a start ends the wait, and measures no visit."""
    if encounter.state is not EncounterState.ENDED:
        _forget_booking(encounter, event)
        encounter.state = EncounterState.ENDED
        encounter.ended_at = event.at


def _forget_booking(encounter: Encounter[Any], event: AnyEvent) -> None:
    """A booked patient whose time has not come was never in the line."""
    if encounter.is_booked_at(event.at):
        encounter.joined_at = None


TRANSITIONS: dict[EventType, Callable[[Encounter[Any], AnyEvent], None]] = {
    EventType.PATIENT_JOINED: _join,
    EventType.VISIT_STARTED: _start,
    EventType.VISIT_ENDED: _end,
    EventType.PATIENT_LEFT: _leave,
}
_SHIFTS = (EventType.DOCTOR_OFF_DUTY, EventType.DOCTOR_ON_DUTY, EventType.DOCTOR_PAUSED)
_RANKS = {type_: rank for rank, type_ in enumerate((*_SHIFTS, *TRANSITIONS))}


def event_order(event: AnyEvent) -> tuple[datetime | float, int, str]:
    """The order in which events count. Those of one instant follow the course of a shift and of a
    visit, so that the order of arrival makes no difference.
    """
    return event.at, _RANKS[event.type], event.id
