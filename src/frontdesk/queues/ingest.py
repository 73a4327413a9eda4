"""Taking events in: known ones are told apart, references are looked up, and what follows from the new ones is written.

The state of an encounter is settled from ALL its events, those stored before and those of the batch, so no order of arrival
can show. It decides nothing of how an event is written on the wire.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.errors import Fault
from frontdesk.queues import store
from frontdesk.queues.encounters import Duty, Encounter, settle_duty, settle_encounter
from frontdesk.queues.events import EventType, QueueEvent

Reference = tuple[str, int]  # of a visit or a doctor, with the provider group


class EventOutcome(StrEnum):
    STORED = "stored"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one event; `faults` are those of a refused one."""

    outcome: EventOutcome
    faults: tuple[Fault, ...] = ()


_NO_GROUP = Fault("provider_group_id", "not_found", "there is no such provider group")
_NO_PLAN = Fault("plan_id", "not_found", "there is no such plan")
_OTHER_GROUP = Fault("plan_id", "not_of_group", "is a plan of another provider group")
_NO_PLANS = Fault("plan_ids", "not_found", "names a plan that does not exist")
_OTHER_GROUPS = Fault("plan_ids", "not_of_group", "names a plan of another provider group")


def ingest(tx: Tx, events: Sequence[QueueEvent], *, now: datetime) -> list[Taken]:
    """Store the events that are new and settle what follows; one outcome per event, in order.

    An event's id is unique among those of its provider group. Batches of one group wait for each other.
    """
    named = {event.plan_id for event in events if event.plan_id is not None}
    named.update(plan for event in events for plan in event.plan_ids or ())
    groups_of = store.groups_of_plans(tx, named) if named else {}
    groups = {event.provider_group_id for event in events if event.provider_group_id is not None}
    locked = store.lock_groups(tx, groups | {groups_of[plan] for plan in named if plan in groups_of})
    placed = [_placed(event, groups_of, locked) for event in events]
    fresh, outcomes = _sorted_out(tx, placed)
    if fresh.events:
        _write(tx, fresh, now)
    return outcomes


@dataclass(frozen=True, slots=True)
class _Fresh:
    """The new events, and what is known of their references."""

    events: list[QueueEvent]
    known: store.KnownReferences


def _placed(
    event: QueueEvent, groups_of: Mapping[int, int], existing: set[int]
) -> QueueEvent | tuple[Fault, ...]:
    """The event with its provider group, or what is wrong with its references."""
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


def _sorted_out(tx: Tx, placed: Sequence[QueueEvent | tuple[Fault, ...]]) -> tuple[_Fresh, list[Taken]]:
    good = [event for event in placed if isinstance(event, QueueEvent)]
    known = store.find_known(
        tx,
        event_ids={event.id for event in good},
        visits={event.visit for event in good if event.visit is not None},
        doctors={event.doctor for event in good if event.visit is None and event.doctor is not None},
    )
    seen = {(row["event_id"], row["provider_group_id"]) for row in known.ids.rows}
    fresh: list[QueueEvent] = []
    outcomes: list[Taken] = []
    for event in placed:
        if not isinstance(event, QueueEvent):
            outcomes.append(Taken(EventOutcome.REFUSED, event))
            continue
        key = (event.id, event.provider_group_id or 0)
        outcomes.append(Taken(EventOutcome.DUPLICATE if key in seen else EventOutcome.STORED))
        if key not in seen:
            seen.add(key)
            fresh.append(event)
    return _Fresh(fresh, known), outcomes


def _write(tx: Tx, fresh: _Fresh, now: datetime) -> None:
    received_at = stored_time(now)
    known = fresh.known
    visits = grouped(event for event in fresh.events if event.visit is not None)
    doctors = grouped(event for event in fresh.events if event.visit is None)
    for reference, stored in grouped(map(as_event, known.events.rows)).items():
        if reference in visits:
            visits[reference] += stored
    ids = {(row["visit"], row["provider_group_id"]): row["id"] for row in known.encounters.rows}
    before = {(row["doctor"], row["provider_group_id"]): row for row in known.duties.rows}
    store.save(
        tx,
        events=[
            store.event_row(event, at=stored_time(event.at), received_at=received_at)
            for event in fresh.events
        ],
        encounter_rows=[
            encounter_row(ids.get(reference), reference, settle_encounter(events))
            for reference, events in visits.items()
        ],
        duty_rows=[
            duty_row(
                before.get(reference, {}).get("id"),
                reference,
                settle_duty(as_duty(before.get(reference)), events),
            )
            for reference, events in doctors.items()
        ],
    )


def grouped(events: Iterable[QueueEvent]) -> dict[Reference, list[QueueEvent]]:
    """The events by what they are about: their visit, or the doctor if there is none."""
    found: defaultdict[Reference, list[QueueEvent]] = defaultdict(list)
    for event in events:
        about = event.visit if event.visit is not None else event.doctor
        found[about or "", event.provider_group_id or 0].append(event)
    return dict(found)


def as_event(row: Mapping[str, Any]) -> QueueEvent:
    """An event from its stored row."""
    return QueueEvent(
        id=row["event_id"],
        type=EventType(row["type"]),
        at=moment(row["at"]),
        provider_group_id=row["provider_group_id"],
        plan_id=row["plan_id"],
        doctor=row["doctor"],
        visit=row["visit"],
        plan_ids=store.ids_of(row["plan_ids"]),
        capacity=row["capacity"],
    )


def as_duty(row: Mapping[str, Any] | None) -> Duty:
    if row is None:
        return Duty()
    on_at, off_at = (None if row[name] is None else moment(row[name]) for name in ("on_at", "off_at"))
    return Duty(on_at, row["on_event"], off_at, store.ids_of(row["plan_ids"]), row["capacity"])


def encounter_row(id_: int | None, reference: Reference, encounter: Encounter) -> dict[str, Any]:
    """As `store.save` takes it; `id_` None: it is new."""
    return {
        "id": id_,
        "visit": reference[0],
        "provider_group_id": reference[1],
        "plan_id": encounter.plan_id,
        "state": encounter.state.value,
        "doctor": encounter.doctor,
        "joined_at": _stored(encounter.joined_at),
        "started_at": _stored(encounter.started_at),
        "ended_at": _stored(encounter.ended_at),
        "last_event_at": _stored(encounter.last_event_at),
    }


def duty_row(id_: int | None, reference: Reference, duty: Duty) -> dict[str, Any]:
    """As `store.save` takes it; `id_` None: it is new."""
    return {
        "id": id_,
        "doctor": reference[0],
        "provider_group_id": reference[1],
        "on_duty": duty.on_duty,
        "on_at": _stored(duty.on_at),
        "on_event": duty.on_event,
        "off_at": _stored(duty.off_at),
        "plan_ids": None if duty.plan_ids is None else list(duty.plan_ids),
        "capacity": duty.capacity,
    }


def moment(value: Any) -> datetime:
    """A time from a set read, which gives it as text on SQLite and inside a shared round trip."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _stored(value: datetime | None) -> str | None:
    return None if value is None else stored_time(value)
