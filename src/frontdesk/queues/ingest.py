"""Stores new queue events and the encounters and duties that follow from them.

An encounter is settled from ALL its events, those stored before and those of the batch: the order of arrival makes no
difference.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.errors import Fault
from frontdesk.queues.encounters import settle_duty, settle_encounter
from frontdesk.queues.model import Duty, EventOutcome, EventResult, QueueEvent, Reference
from frontdesk.queues.store import events as store

_NO_GROUP = Fault("provider_group_id", "not_found", "there is no such provider group")
_NO_PLAN = Fault("plan_id", "not_found", "there is no such plan")
_OTHER_GROUP = Fault("plan_id", "not_of_group", "is a plan of another provider group")
_NO_PLANS = Fault("plan_ids", "not_found", "names a plan that does not exist")
_OTHER_GROUPS = Fault("plan_ids", "not_of_group", "names a plan of another provider group")

_STORED, _DUPLICATE = EventResult(EventOutcome.STORED), EventResult(EventOutcome.DUPLICATE)


def ingest(tx: Tx, events: Sequence[QueueEvent], *, now: datetime) -> list[EventResult]:
    """Store the new events and settle what follows from them; one result per event, in order.

    An event's id is unique among those of its provider group. Batches of one group wait for each other.
    """
    named = {event.plan_id for event in events if event.plan_id is not None}
    named.update(plan for event in events for plan in event.plan_ids or ())
    groups_of = store.groups_of_plans(tx, named) if named else {}
    groups = {event.provider_group_id for event in events if event.provider_group_id is not None}
    locked = store.lock_groups(tx, groups | set(groups_of.values()))
    resolved = [_resolve(event, groups_of, locked) for event in events]
    known = store.find_known(tx, [event for event in resolved if isinstance(event, QueueEvent)])
    new: list[QueueEvent] = []
    results: list[EventResult] = []
    for event in resolved:
        if not isinstance(event, QueueEvent):
            results.append(EventResult(EventOutcome.REFUSED, event))
            continue
        key = (event.id, event.provider_group_id or 0)
        results.append(_DUPLICATE if key in known.event_ids else _STORED)
        if key not in known.event_ids:
            known.event_ids.add(key)
            new.append(event)
    if new:
        _write(tx, new, known, now)
    return results


def _resolve(
    event: QueueEvent, groups_of: Mapping[int, int], existing: set[int]
) -> QueueEvent | tuple[Fault, ...]:
    """The event with its provider group, or the faults of its references."""
    faults = []
    group = event.provider_group_id
    if group is not None and group not in existing:
        faults.append(_NO_GROUP)
    if event.plan_id is not None:
        own = groups_of.get(event.plan_id)
        if own is None:
            faults.append(_NO_PLAN)
        elif group is not None and group != own:
            faults.append(_OTHER_GROUP)
        group = own
    if event.plan_ids is not None:
        owners = {groups_of.get(plan) for plan in event.plan_ids}
        if None in owners:
            faults.append(_NO_PLANS)
        elif owners != {group}:
            faults.append(_OTHER_GROUPS)
    if faults:
        return tuple(faults)
    return event if event.provider_group_id == group else replace(event, provider_group_id=group)


def _write(tx: Tx, new: Sequence[QueueEvent], known: store.KnownReferences, now: datetime) -> None:
    visits = by_reference(event for event in new if event.visit is not None)
    for event in known.events:
        if event.reference in visits:
            visits[event.reference].append(event)
    duty_rows = []
    for reference, events in by_reference(event for event in new if event.visit is None).items():
        id_, duty = known.duties.get(reference, (None, Duty()))
        duty_rows.append(store.settled_row(reference, settle_duty(duty, events), id_))
    store.save(
        tx,
        events=new,
        received_at=now,
        encounter_rows=[
            store.settled_row(reference, settle_encounter(events), known.encounter_ids.get(reference))
            for reference, events in visits.items()
        ],
        duty_rows=duty_rows,
    )


def by_reference(events: Iterable[QueueEvent]) -> dict[Reference, list[QueueEvent]]:
    """The events of each visit, and of each doctor where they have no visit."""
    found: defaultdict[Reference, list[QueueEvent]] = defaultdict(list)
    for event in events:
        found[event.reference].append(event)
    return found
