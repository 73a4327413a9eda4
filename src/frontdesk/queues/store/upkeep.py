"""The SQL of rebuilding encounters and duties from their events, and of deleting old rows."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, delete, or_, select

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Row, delete_set
from frontdesk.queues.model import EventType, QueueEvent, Reference
from frontdesk.queues.store.events import record_of_row
from frontdesk.queues.tables import duties, encounters, estimate_log, queue_events

PAGE = 1000


def pages_of_visits(tx: Tx) -> Iterator[list[str]]:
    """The references of all visits that have events, a page at a time."""
    visit, last = queue_events.c.visit, ""
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
    """The rows of the visits (None: of all doctors) by reference, in the form of `events.settled_row`."""
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
    """Delete up to a page of the encounters with an older last event, and of their events; how many of each."""
    columns = encounters.c
    old = select(*columns["visit", "provider_group_id"]).where(columns.last_event_at < before)
    page = _page(tx, old.order_by(columns.last_event_at, columns.id))
    events = delete_set(tx, queue_events, page)
    return delete_set(tx, encounters, page), events


def prune_duties(tx: Tx, before: datetime) -> int:
    """Delete up to a page of the doctors' events that are older and no longer the latest of their type; how many."""
    event, duty = queue_events.c, duties.c
    still_counts = or_(
        and_(event.type == EventType.DOCTOR_ON_DUTY.value, duty.on_event == event.event_id),
        and_(event.type == EventType.DOCTOR_OFF_DUTY.value, duty.off_at == event.at),
    )
    same_doctor = (duty.doctor == event.doctor) & (duty.provider_group_id == event.provider_group_id)
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
    return [
        {str(name): value for name, value in row.items()} for row in tx.execute(query.limit(PAGE)).mappings()
    ]
