"""Stores new queue events and the encounters and duties that follow from them.

An encounter is settled from ALL its events, those stored before and those of the batch: the order
of arrival makes no difference.
"""

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from frontdesk import codes
from frontdesk.db import Tx
from frontdesk.errors import Fault, NotFound
from frontdesk.events import publish
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.queues.encounters import settle_duty, settle_encounter
from frontdesk.queues.model import (
    Duty,
    EncounterState,
    EventOutcome,
    EventResult,
    EventType,
    QueueEvent,
    Reference,
)
from frontdesk.queues.store import events as store

_STORED = EventResult(EventOutcome.STORED)
_DUPLICATE = EventResult(EventOutcome.DUPLICATE)


def ingest(
    tx: Tx, events: Sequence[QueueEvent], *, now: datetime, of_feed: bool = True
) -> list[EventResult]:
    """Store the new events and settle what follows from them; one result per event, in order.

    An event's id is unique among those of its provider group. Batches of one group wait for each
    other. Without `of_feed` the age of the groups' feeds stays.
    """
    named = {event.plan_id for event in events if event.plan_id is not None}
    named.update(plan for event in events for plan in event.plan_ids or ())
    groups_of = store.groups_of_plans(tx, named) if named else {}
    groups = {event.provider_group_id for event in events if event.provider_group_id is not None}
    locked = store.lock_groups(tx, groups | set(groups_of.values()))
    resolved = [_resolve(event, groups_of, locked) for event in events]
    known = store.find_known(tx, [event for event in resolved if isinstance(event, QueueEvent)])
    new: dict[Reference, QueueEvent] = {}
    results: list[EventResult] = []
    for event in resolved:
        if not isinstance(event, QueueEvent):
            results.append(EventResult(EventOutcome.REFUSED, event))
        elif (key := (event.id, event.provider_group_id or 0)) in known.event_ids or key in new:
            results.append(_DUPLICATE)
        else:
            results.append(_STORED)
            new[key] = event
    if new:
        _write(tx, [*new.values()], known, now, of_feed=of_feed)
    return results


def _resolve(
    event: QueueEvent, groups_of: Mapping[int, int], existing: set[int]
) -> QueueEvent | tuple[Fault, ...]:
    faults = []
    group = event.provider_group_id
    if group is not None and group not in existing:
        faults.append(
            Fault(
                "provider_group_id", codes.queue_events.NOT_FOUND, "there is no such provider group"
            )
        )
    if event.plan_id is not None:
        own = groups_of.get(event.plan_id)
        if own is None:
            faults.append(Fault("plan_id", codes.queue_events.NOT_FOUND, "there is no such plan"))
        elif group is not None and group != own:
            faults.append(
                Fault(
                    "plan_id",
                    codes.queue_events.NOT_OF_GROUP,
                    "is a plan of another provider group",
                )
            )
        group = own
    if event.plan_ids is not None:
        owners = {groups_of.get(plan) for plan in event.plan_ids}
        if None in owners:
            faults.append(
                Fault("plan_ids", codes.queue_events.NOT_FOUND, "names a plan that does not exist")
            )
        elif owners != {group}:
            faults.append(
                Fault(
                    "plan_ids",
                    codes.queue_events.NOT_OF_GROUP,
                    "names a plan of another provider group",
                )
            )
    if faults:
        return tuple(faults)
    return event if event.provider_group_id == group else event._replace(provider_group_id=group)


def _write(
    tx: Tx, new: Sequence[QueueEvent], known: store.KnownReferences, now: datetime, *, of_feed: bool
) -> None:
    visits = by_reference(event for event in new if event.visit is not None)
    for event in known.events:
        if event.reference in visits:
            visits[event.reference].append(event)
    duty_rows = []
    doctors = by_reference(event for event in new if event.visit is None)
    for reference, events in doctors.items():
        id_, duty = known.duties.get(reference, (None, Duty()))
        duty_rows.append(store.settled_row(reference, settle_duty(duty, events), id_))
    encounter_rows = [
        store.settled_row(reference, settle_encounter(events), known.encounter_ids.get(reference))
        for reference, events in visits.items()
    ]
    with publishing_queue_changes(tx, {group for _, group in doctors}, now):
        store.save(
            tx,
            events=new,
            received_at=now,
            of_feed=of_feed,
            encounter_rows=encounter_rows,
            duty_rows=duty_rows,
        )


@contextmanager
def publishing_queue_changes(tx: Tx, groups: Collection[int], now: datetime) -> Iterator[None]:
    """Publish, after the block has changed duties of these groups, the events of the plans whose
    first doctor has come, or whose last one has left.
    """
    if not groups:
        yield
        return
    before = store.find_open_plans(tx, groups)
    yield
    after = store.find_open_plans(tx, groups)
    opened = dict.fromkeys(after.keys() - before.keys(), AccountEventType.QUEUE_OPENED)
    closed = dict.fromkeys(before.keys() - after.keys(), AccountEventType.QUEUE_CLOSED)
    accounts = {**before, **after}
    changes = sorted((opened | closed).items())
    if changes:
        publish(
            tx,
            [NewEvent(accounts[plan], type_, {"plan_id": plan}) for plan, type_ in changes],
            now=now,
        )


def by_reference(events: Iterable[QueueEvent]) -> dict[Reference, list[QueueEvent]]:
    """The events of each visit, and of each doctor where they have no visit."""
    found: defaultdict[Reference, list[QueueEvent]] = defaultdict(list)
    for event in events:
        found[event.reference].append(event)
    return found


# Single changes by hand: each is an event like those of a clinical system.


def set_duty(tx: Tx, provider_group_id: int, doctor: str, *, on_duty: bool, now: datetime) -> bool:
    """False if the doctor's duty is unchanged; an earlier start time is kept. Raises NotFound for
    an unknown group.
    """
    if not store.lock_groups(tx, [provider_group_id]):
        raise NotFound("provider group")
    type_ = EventType.DOCTOR_ON_DUTY if on_duty else EventType.DOCTOR_OFF_DUTY
    event = QueueEvent(_new_id(), type_, now, provider_group_id, doctor=doctor)
    _, duty = store.find_known(tx, [event]).duties.get(event.reference, (None, Duty()))
    if duty.on_duty is on_duty:
        return False
    at = _after(now, duty.on_at, duty.off_at)
    ingest(tx, [event._replace(at=at)], now=at)
    return True


def set_waiting(tx: Tx, plan_id: int, patient: str, *, waiting: bool, now: datetime) -> bool:
    """The patient joins the plan's queue or leaves it; a booked patient joins before its time, or
    cancels. False if it waits there already, is with a doctor and can't join, or does not wait
    there and can't leave. Raises NotFound for an unknown plan.
    """
    group = store.groups_of_plans(tx, [plan_id]).get(plan_id)
    if group is None:
        raise NotFound("plan")
    event = QueueEvent(_new_id(), EventType.PATIENT_JOINED, now, group, plan_id, visit=patient)
    events = by_reference(store.find_known(tx, [event]).events).get(event.reference)
    known = settle_encounter(events) if events else None
    if waiting and known is not None and known.state is EncounterState.IN_VISIT:
        return False
    is_there = known is not None and known.waits_for(plan_id)
    if waiting and known is not None and known.is_booked_at(now):
        is_there = False
    if is_there is waiting:
        return False
    type_ = EventType.PATIENT_JOINED if waiting else EventType.PATIENT_LEFT
    at = _after(now, known.last_event_at if known else None)
    ingest(tx, [event._replace(type=type_, at=at)], now=at)
    return True


def _after(now: datetime, *known: datetime | None) -> datetime:
    """Now, or just after the latest known time: a command changes the present, even if a feeder's
    clock was ahead.
    """
    return max(
        [now, *(moment + timedelta(microseconds=1) for moment in known if moment is not None)]
    )


def _new_id() -> str:
    return f"frontdesk-{secrets.token_hex(12)}"
