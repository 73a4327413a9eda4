"""The SQL of caught mails."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select

from frontdesk.db import Tx
from frontdesk.mailbox.tables import caught_messages


def insert_message(tx: Tx, row: Mapping[str, Any]) -> None:
    tx.execute(insert(caught_messages).values(row))


def has_message_id(tx: Tx, message_id: str) -> bool:
    query = select(caught_messages.c.id).where(caught_messages.c.message_id == message_id).limit(1)
    return tx.execute(query).first() is not None


def newest_messages(tx: Tx, *, before_id: int | None, limit: int) -> list[dict[str, Any]]:
    query = select(caught_messages).order_by(caught_messages.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(caught_messages.c.id < before_id)
    return [dict(row) for row in tx.execute(query).mappings()]


def find_message(tx: Tx, id_: int) -> dict[str, Any] | None:
    row = tx.execute(select(caught_messages).where(caught_messages.c.id == id_)).mappings().first()
    return None if row is None else dict(row)


def delete_messages(tx: Tx) -> int:
    return tx.execute(delete(caught_messages)).rowcount
