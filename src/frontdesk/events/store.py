"""The SQL of events."""

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, select, tuple_

from frontdesk.db import Tx, sets
from frontdesk.db.schema import OldestOpenTransaction
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.events.model import AccountEventType, Event, EventPlace, NewEvent
from frontdesk.events.tables import event_feeds, events
from frontdesk.text import stored_time

_columns = events.c
_SHOWN = [_columns[name] for name in Event._fields]


def find_feeds(tx: SetTransaction, account_ids: Collection[int]) -> Found:
    """Which of the accounts have asked for events. A set read."""
    return sets.find_set(tx, event_feeds, "account_id", account_ids, columns=("account_id",))


def record(tx: SetTransaction, feeds: Found, new_events: Iterable[NewEvent], *, now: datetime) -> None:
    """Store those of the events whose accounts are among `feeds`; nothing is computed when there is none."""
    accounts = {row["account_id"] for row in feeds.rows}
    if not accounts:
        return
    at = stored_time(now)
    rows = [
        {"account_id": each.account_id, "type": str(each.type), "at": at, "data": each.data}
        | {"request_id": each.request_id}
        for each in new_events
        if each.account_id in accounts
    ]
    sets.insert_set(tx, events, rows)


def publish(tx: SetTransaction, new_events: Collection[NewEvent], *, now: datetime) -> None:
    """`record` with the look-up of the feeds, in a trip of its own."""
    if not new_events:
        return
    with sets.one_round_trip(tx):
        feeds = find_feeds(tx, {each.account_id for each in new_events})
    record(tx, feeds, new_events, now=now)


def has_feed(tx: Tx, account_id: int) -> bool:
    query = select(event_feeds.c.account_id).where(event_feeds.c.account_id == account_id)
    return tx.execute(query).first() is not None


def begin_feed(tx: Tx, account_id: int, now: datetime) -> bool:
    """From now on events of the account are stored. False if they were already."""
    if has_feed(tx, account_id):
        return False
    row = {"account_id": account_id, "since": stored_time(now)}
    sets.insert_missing(tx, event_feeds, [row])
    return True


def list_events(tx: Tx, account_id: int, *, after: EventPlace, limit: int) -> list[Event]:
    """The account's events after a place, oldest first.

    Events of a transaction that is still open may come before events that are visible already, so PostgreSQL's are read up to the
    oldest open transaction. A reader that goes on after the last event that it was given misses none.
    """
    query = select(*_SHOWN).order_by(_columns.account_id, _columns.xid, _columns.id).limit(limit)
    rows = tx.execute(query.where(*_beyond(tx, account_id, after)))
    return [
        Event(row.xid, row.id, AccountEventType(row.type), row.at, row.data, row.request_id) for row in rows
    ]


def _beyond(tx: Tx, account_id: int, after: EventPlace) -> tuple[ColumnElement[bool], ...]:
    """A range of the index in its own order (eligibility.store.list_ids_under has the reason for two forms)."""
    account = _columns.account_id
    if tx.dialect.name == "sqlite":  # one writer: its ids commit in order
        return account == account_id, _columns.xid == 0, _columns.id > after.id
    place = tuple_(account, _columns.xid, _columns.id) > tuple_(account_id, *after)
    return place, account <= account_id, _columns.xid < OldestOpenTransaction()
