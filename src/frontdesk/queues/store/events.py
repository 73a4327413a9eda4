"""The SQL of queue events, encounters and duties: writing, reading for a back-test, rebuilding,
deleting old rows.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, Table, and_, delete, func, not_, or_, select, tuple_

from frontdesk.db import Tx
from frontdesk.db.sets import (
    Row,
    delete_set,
    find_set,
    insert_set,
    next_ids,
    one_round_trip,
    update_set,
)
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.queues.events import LATEST, LONGEST_BOOKING
from frontdesk.queues.model import (
    Duty,
    Encounter,
    EncounterState,
    EventType,
    QueueEvent,
    Reference,
    ReplayEvent,
)
from frontdesk.queues.tables import duties, encounters, estimate_log, queue_events
from frontdesk.text import stored_time

PAGE = 1000
# By so much a patient may have joined ahead of our clock: a sender's is ahead by SKEW at most, but
# ours may have been set back since.
MOST_AHEAD = timedelta(hours=2)

Record = TypeVar("Record", QueueEvent, Duty)


class KnownReferences(NamedTuple):
    event_ids: set[Reference]
    events: list[QueueEvent]
    encounter_ids: dict[Reference, int]
    duties: dict[Reference, tuple[int, Duty]]  # with its row's id


def groups_of_plans(tx: Tx, plan_ids: Collection[int]) -> dict[int, int]:
    found = find_set(tx, plans, "id", plan_ids, columns=("id", "provider_group_id"))
    return {row["id"]: row["provider_group_id"] for row in found.rows}


def lock_groups(tx: Tx, group_ids: Collection[int] | None) -> set[int]:
    """Lock those of the provider groups that exist (None: all) until the transaction ends, and
    return their ids.

    Batches of one group follow each other, so each sees every event that was stored before it.
    """
    query = (
        select(provider_groups.c.id).order_by(provider_groups.c.id).with_for_update(key_share=True)
    )
    if group_ids is not None:
        query = query.where(provider_groups.c.id.in_(sorted(group_ids)))
    return set(tx.execute(query).scalars())


def find_open_plans(tx: Tx, group_ids: Collection[int]) -> dict[int, int]:
    """The plans of the groups that a doctor on duty serves, with their accounts."""
    columns = ("id", "account_id", "provider_group_id")
    of_groups = find_set(tx, plans, "provider_group_id", group_ids, columns=columns).rows
    on_duty = select(duties.c.provider_group_id, duties.c.plan_ids).where(
        duties.c.provider_group_id.in_(sorted(group_ids)), duties.c.on_duty
    )
    served: dict[int, list[Any]] = {}
    for group, plan_ids in tx.execute(on_duty):
        served.setdefault(group, []).append(plan_ids)
    return {
        row["id"]: row["account_id"]
        for row in of_groups
        if any(ids is None or row["id"] in ids for ids in served.get(row["provider_group_id"], ()))
    }


def find_known(tx: Tx, events: Iterable[QueueEvent]) -> KnownReferences:
    """The stored rows of the events' ids, visits and doctors, in one round trip."""
    ids = {event.id for event in events}
    visits = {event.visit for event in events if event.visit is not None}
    doctors = {event.doctor for event in events if event.visit is None and event.doctor is not None}
    with one_round_trip(tx):
        same_id = find_set(
            tx, queue_events, "event_id", ids, columns=("event_id", "provider_group_id")
        )
        same_visit = find_set(
            tx, queue_events, "visit", visits, columns=tuple(_COLUMNS[QueueEvent].values())
        )
        rows = find_set(
            tx, encounters, "visit", visits, columns=("id", "visit", "provider_group_id")
        )
        duty_columns = ("id", "provider_group_id", "doctor", *_COLUMNS[Duty])
        same_doctor = find_set(tx, duties, "doctor", doctors, columns=duty_columns)
    return KnownReferences(
        {(row["event_id"], row["provider_group_id"]) for row in same_id.rows},
        [record_of_row(QueueEvent, row) for row in same_visit.rows],
        {(row["visit"], row["provider_group_id"]): row["id"] for row in rows.rows},
        {
            (row["doctor"], row["provider_group_id"]): (row["id"], record_of_row(Duty, row))
            for row in same_doctor.rows
        },
    )


def save(
    tx: Tx,
    *,
    events: Sequence[QueueEvent] = (),
    received_at: datetime | None = None,
    of_feed: bool = True,
    encounter_rows: Sequence[Row] = (),
    duty_rows: Sequence[Row] = (),
) -> None:
    """Insert the events, insert the encounters and duties without an `id`, and update those with
    one. `of_feed`: the events show that the feeds of their groups are alive.
    """
    received = received_at and stored_time(received_at)
    tables = ((encounters, encounter_rows), (duties, duty_rows))
    divided = [(table, *_divided(tx, table, rows)) for table, rows in tables]
    fed = events if of_feed else ()
    groups = sorted({event.provider_group_id or 0 for event in fed})
    with one_round_trip(tx):
        update_set(tx, provider_groups, [{"id": group, "fed_at": received} for group in groups])
        insert_set(
            tx, queue_events, [_stored_fields(event, received_at=received) for event in events]
        )
        for table, new, changed in divided:
            insert_set(tx, table, new)
            update_set(tx, table, changed)


def _divided(tx: Tx, table: Table, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The new rows with ids of their own, and the known rows."""
    new = [row for row in rows if row["id"] is None]
    ids = next_ids(tx, table, len(new)) if new else ()
    numbered: list[Row] = [{**row, "id": id_} for row, id_ in zip(new, ids, strict=True)]
    return numbered, [row for row in rows if row["id"] is not None]


def list_waiting(tx: Tx, now: datetime, *, booked: bool = False) -> Sequence[Any]:
    """The patients in the line (`plan_id`, `patient`, `joined_at`, `patient_class`, `priority`), by
    plan in the order in which they are served; without booked patients whose time has not come.
    `booked`: these instead, by plan and by their time, which is `joined_at`.
    """
    columns = encounters.c
    in_line = is_in_line(now, now + MOST_AHEAD)
    query = select(columns.plan_id, columns.visit.label("patient"), columns.joined_at)
    query = query.add_columns(columns.patient_class, columns.priority)
    query = query.where(
        columns.state == EncounterState.WAITING.value, not_(in_line) if booked else in_line
    )
    in_turn: list[ColumnElement[Any]] = [columns.joined_at, columns.visit]
    if not booked:
        in_turn.insert(0, columns.priority.desc())
    return tx.execute(query.order_by(columns.plan_id, *in_turn)).all()


def is_in_line(now: Any, latest: Any) -> ColumnElement[bool]:
    """Of waiting patients: not a booked one whose time has not come. A patient that joined by a
    clock that is ahead of ours is in the line at once. `latest`: `now` and MOST_AHEAD.
    """
    columns = encounters.c
    # The bound keeps the bookings of later days out of the range of the index that is read.
    return and_(
        columns.joined_at <= latest,
        or_(columns.joined_at <= now, columns.joined_at <= columns.last_event_at),
    )


def list_in_visit(tx: Tx) -> Sequence[Any]:
    """The patients that are with a doctor (`plan_id`, `visit`, `doctor`, `started_at`), by start of
    the visit.
    """
    query = select(*encounters.c["plan_id", "visit", "doctor", "started_at"])
    query = query.where(encounters.c.state == EncounterState.IN_VISIT.value)
    return tx.execute(query.order_by(*encounters.c["started_at", "visit"])).all()


def list_history(tx: Tx, since: datetime) -> Iterator[ReplayEvent]:
    """The events since then; all events of doctors, because they may have been on duty before; and
    earlier events of visits that were booked for a time since then. In any order.
    """
    columns = queue_events.c
    booked_since = since - LONGEST_BOOKING - LATEST  # such a booking may itself have come late
    visit = tuple_(columns.visit, columns.provider_group_id)
    booked = select(*columns["visit", "provider_group_id"]).where(
        columns.at >= booked_since, columns.not_before >= since
    )
    of_booked = and_(columns.at >= booked_since, visit.in_(booked))
    query = select(queue_events).where(or_(columns.at >= since, columns.visit.is_(None), of_booked))
    for row in tx.execute(query):
        yield ReplayEvent(
            at=row.at.timestamp(),
            type=EventType(row.type),
            plan_id=row.plan_id or 0,
            visit=row.visit or "",
            doctor=row.doctor or "",
            plan_ids=None if row.plan_ids is None else frozenset(row.plan_ids),
            capacity=row.capacity or 1,
            group=row.provider_group_id,
            known_at=row.received_at.timestamp(),
            id=row.event_id,
            patient_class=row.patient_class,
            priority=row.priority,
            not_before=row.not_before and row.not_before.timestamp(),
            until=row.until and row.until.timestamp(),
        )


def pages_of_visits(tx: Tx) -> Iterator[list[str]]:
    """The references of all visits that have events, a page at a time."""
    visit = queue_events.c.visit
    last = ""
    while True:
        query = select(visit).where(visit > last).distinct().order_by(visit).limit(PAGE)
        page = list(tx.execute(query).scalars())
        if not page:
            return
        yield page
        last = page[-1]


def select_events(tx: Tx, visits: Collection[str] | None) -> list[QueueEvent]:
    """The events of the visits; None: those of all doctors."""
    visit = queue_events.c.visit
    query = select(queue_events).where(visit.is_(None) if visits is None else visit.in_(visits))
    return [record_of_row(QueueEvent, row) for row in tx.execute(query).mappings()]


def select_settled(tx: Tx, visits: Collection[str] | None) -> dict[Reference, Row]:
    """The rows of the visits (None: of all doctors) by reference, in the form of
    `events.settled_row`.
    """
    table, name = (duties, "doctor") if visits is None else (encounters, "visit")
    query = select(table) if visits is None else select(table).where(table.c.visit.in_(visits))
    return {
        (row[name], row["provider_group_id"]): {
            column: stored_time(value) if isinstance(value, datetime) else value
            for column, value in row.items()
        }
        for row in tx.execute(query).mappings()
    }


def delete_encounters_without_events(tx: Tx) -> int:
    known = (queue_events.c.visit == encounters.c.visit) & (
        queue_events.c.provider_group_id == encounters.c.provider_group_id
    )
    bare = ~select(queue_events.c.event_id).where(known).exists()
    return tx.execute(delete(encounters).where(bare)).rowcount


def delete_duties(tx: Tx, ids: Collection[int]) -> None:
    tx.execute(delete(duties).where(duties.c.id.in_(ids)))


def prune_encounters(tx: Tx, before: datetime) -> tuple[int, int]:
    """Delete up to a page of the encounters with an older last event, and of their events; how many
    of each. A booking stays until its time is as old.
    """
    columns = encounters.c
    old = select(*columns["visit", "provider_group_id"]).where(
        columns.last_event_at < before,
        func.coalesce(columns.joined_at, columns.last_event_at) < before,
    )
    page = _page(tx, old.order_by(columns.last_event_at, columns.id))
    events = delete_set(tx, queue_events, page)
    return delete_set(tx, encounters, page), events


def prune_duties(tx: Tx, before: datetime) -> int:
    """Delete up to a page of the doctors' events that are older and no longer the latest of their
    type; how many.
    """
    event = queue_events.c
    duty = duties.c
    still_counts = or_(
        and_(event.type == EventType.DOCTOR_ON_DUTY.value, duty.on_event == event.event_id),
        and_(event.type == EventType.DOCTOR_OFF_DUTY.value, duty.off_at == event.at),
        and_(event.type == EventType.DOCTOR_PAUSED.value, duty.paused_at == event.at),
    )
    same_doctor = (duty.doctor == event.doctor) & (
        duty.provider_group_id == event.provider_group_id
    )
    counts = select(duty.id).where(same_doctor, still_counts).exists()
    old = select(*event["event_id", "provider_group_id"]).where(
        event.at < before, event.visit.is_(None), ~counts
    )
    return delete_set(tx, queue_events, _page(tx, old))


def prune_estimates(tx: Tx, before: datetime) -> int:
    """Delete up to a page of the estimates that are older; how many."""
    columns = estimate_log.c
    old = select(columns.id).where(columns.taken_at < before).order_by(columns.taken_at)
    return delete_set(tx, estimate_log, _page(tx, old))


def _page(tx: Tx, query: Select[Any]) -> list[Row]:
    rows = tx.execute(query.limit(PAGE)).mappings()
    # The names of its columns are no plain str, and orjson takes no other kind.
    return [{str(name): value for name, value in row.items()} for row in rows]


def settled_row(
    reference: Reference, settled: Encounter[datetime] | Duty, id_: int | None
) -> dict[str, Any]:
    """The row of `save`; `id_` None: a new one."""
    visit_or_doctor, group = reference
    if isinstance(settled, Encounter):
        return _stored_fields(settled, id=id_, visit=visit_or_doctor, provider_group_id=group)
    on_duty = settled.on_duty
    return _stored_fields(
        settled, id=id_, doctor=visit_or_doctor, provider_group_id=group, on_duty=on_duty
    )


def _stored_fields(
    record: QueueEvent | Encounter[datetime] | Duty, **others: Any
) -> dict[str, Any]:
    fields = _COLUMNS[type(record)].items()
    return {column: _stored_value(getattr(record, name)) for name, column in fields} | others


def _stored_value(value: Any) -> Any:
    match value:
        case datetime():
            return stored_time(value)
        case StrEnum():
            return value.value
        case tuple():
            return list(value)
    return value


def record_of_row(kind: type[Record], row: Mapping[Any, Any]) -> Record:
    """The record of a stored row. A set read gives times and JSON as text on SQLite and inside a
    shared round trip.
    """
    values = ((name, row[column]) for name, column in _COLUMNS[kind].items())
    return kind(
        **{
            name: _READERS[name](value) if name in _READERS and value is not None else value
            for name, value in values
        }
    )


def _time(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(json.loads(value) if isinstance(value, str) else value)


# The fields that are read from a stored value of another type.
_READERS: dict[str, Callable[[Any], Any]] = {"type": EventType, "plan_ids": _ids} | dict.fromkeys(
    ("at", "not_before", "until", "on_at", "off_at", "paused_at", "paused_until"), _time
)

# The column of each field, in order.
_COLUMNS: dict[type[Any], dict[str, str]] = {
    kind: {name: "event_id" if name == "id" else name for name in kind.__annotations__}
    for kind in (QueueEvent, Encounter, Duty)
}
