"""The SQL of the signs of life of workers, and of the database that delivery belongs to."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, update

from frontdesk.db import Tx
from frontdesk.invitations import model
from frontdesk.invitations.tables import BOUNCED, delivery_home, delivery_reports, worker_status


def find_worker_status(tx: Tx) -> dict[str, Any]:
    """The stored row, if a worker ever ran, and the number of messages that were reported as
    `bounced`.
    """
    row = tx.execute(select(worker_status)).mappings().first()
    bounced = select(func.count()).select_from(delivery_reports).where(BOUNCED)
    return {**(row or {}), "bounced": tx.execute(bounced).scalar_one()}


def save_worker_status(tx: Tx, status: model.WorkerStatus, *, now: datetime) -> None:
    """Store a sign of life and what the worker knows, and add its counts to those of all workers."""
    known = {"seen_at": now, "relay_up": status.relay_up, "lag_seconds": status.lag_seconds}
    known = {name: value for name, value in known.items() if value is not None}
    added = {name: worker_status.c[name] + count for name, count in status.counts.items()}
    if not tx.execute(update(worker_status).values(known | added)).rowcount:
        tx.execute(insert(worker_status).values({**known, **status.counts, "id": 1}))


def find_home(tx: Tx) -> model.DeliveryHome:
    """The row; an empty one before the first delivery."""
    columns = delivery_home.c
    row = tx.execute(select(*columns[model.DeliveryHome._fields]).where(columns.id == 1)).first()
    return model.DeliveryHome._make(row) if row else model.DeliveryHome(None, 0, None)


def save_home(tx: Tx, **changes: Any) -> None:
    """Change the columns named; the row is made if there is none."""
    if not tx.execute(
        update(delivery_home).where(delivery_home.c.id == 1).values(changes)
    ).rowcount:
        tx.execute(insert(delivery_home).values({"id": 1, "home": None, "offers": 0} | changes))


def count_offers(tx: Tx) -> int:
    """Count one more commit after which mail leaves; returns how many there have been."""
    sql = "UPDATE delivery_home SET offers = offers + 1 WHERE id = 1 RETURNING offers"
    return int(tx.exec_driver_sql(sql).scalar_one())
