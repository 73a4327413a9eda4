"""The SQL of caught mails."""

from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, insert, select

from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.mail.model import MailMessage
from frontdesk.mailbox.model import CaughtMessage, CaughtOutcome
from frontdesk.mailbox.tables import caught_messages


def insert_message(tx: Tx, message: MailMessage, outcome: CaughtOutcome, *, now: datetime) -> None:
    row = asdict(message) | {"outcome": outcome.value, "caught_at": now}
    tx.execute(insert(caught_messages).values(row))


def has_message_id(tx: Tx, message_id: str) -> bool:
    query = select(caught_messages.c.id).where(caught_messages.c.message_id == message_id).limit(1)
    return tx.execute(query).first() is not None


def list_messages(tx: Tx, *, before_id: int | None = None, limit: int = 100) -> list[CaughtMessage]:
    """The newest first; with `before_id` those before it."""
    query = select(caught_messages).order_by(caught_messages.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(caught_messages.c.id < before_id)
    return [CaughtMessage(*row) for row in tx.execute(query)]


def get_message(tx: Tx, id_: int) -> CaughtMessage:
    """Raises NotFound."""
    row = tx.execute(select(caught_messages).where(caught_messages.c.id == id_)).first()
    if row is None:
        raise NotFound("message")
    return CaughtMessage(*row)


def delete_messages(tx: Tx) -> int:
    """Delete all caught mails; how many there were."""
    return tx.execute(delete(caught_messages)).rowcount
