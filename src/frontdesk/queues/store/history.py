"""Reads the stored events of a time, for a back-test."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import or_, select

from frontdesk.db import Tx
from frontdesk.queues.backtest.replay import ReplayEvent
from frontdesk.queues.model import EventType
from frontdesk.queues.tables import queue_events


def list_history(tx: Tx, since: datetime) -> Iterator[ReplayEvent]:
    """The events since then, and all that are kept of doctors: one that came on duty before may still be. In any order."""
    columns = queue_events.c
    names = "type", "at", "received_at", "plan_id", "doctor", "visit", "plan_ids", "capacity", "event_id"
    query = select(*columns[*names, "provider_group_id"])
    query = query.where(or_(columns.at >= since, columns.visit.is_(None)))
    for type_, at, received_at, plan_id, doctor, visit, plan_ids, capacity, id_, group in tx.execute(query):
        yield ReplayEvent(
            at.timestamp(),
            EventType(type_),
            plan_id or 0,
            visit or "",
            doctor or "",
            None if plan_ids is None else frozenset(plan_ids),
            capacity or 1,
            group,
            received_at.timestamp(),
            id_,
        )
