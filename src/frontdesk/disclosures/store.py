"""The SQL of disclosures."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select

from frontdesk.db import Tx
from frontdesk.disclosures.model import MOST_READ, Disclosure
from frontdesk.disclosures.tables import disclosures

_columns = disclosures.c


def list_of_member(tx: Tx, member_id: int, times: tuple[datetime, datetime]) -> list[Disclosure]:
    """The newest disclosures of the member in these times, newest first."""
    return _list(tx, _columns.member_id == member_id, times)


def list_by_actor(tx: Tx, actor: str, times: tuple[datetime, datetime]) -> list[Disclosure]:
    """The newest disclosures to the user in these times, newest first."""
    return _list(tx, _columns.actor == actor, times)


def _list(tx: Tx, mine: ColumnElement[bool], times: tuple[datetime, datetime]) -> list[Disclosure]:
    after, until = times
    query: Any = select(*_columns[Disclosure._fields]).where(
        mine, _columns.at > after, _columns.at <= until
    )
    rows = tx.execute(query.order_by(_columns.at.desc()).limit(MOST_READ))
    return [Disclosure(*row) for row in rows]


def add(tx: Tx, disclosure: Disclosure, times: tuple[datetime, datetime]) -> None:
    """Insert the disclosure, and delete up to 20 old ones outside the times, by the primary key. So
    the table stays small.
    """
    after, until = times
    oldest = select(_columns.id).order_by(_columns.id).limit(20)
    # Another process is already deleting locked rows, and waiting for it could be a deadlock.
    mine = _columns.id.in_(oldest.with_for_update(skip_locked=True))
    over = (_columns.at <= after) | (_columns.at > until)
    tx.execute(delete(disclosures).where(mine & over))
    tx.execute(insert(disclosures).values(disclosure._asdict()))
