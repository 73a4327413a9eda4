"""The SQL of events."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    and_,
    case,
    column,
    delete,
    insert,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)

from frontdesk.db import Tx, sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.errors import NotFound
from frontdesk.events.model import (
    FEED_START,
    AccountEventType,
    DueEndpoint,
    EndpointBacklog,
    EndpointState,
    Event,
    EventPlace,
    NewEvent,
    WebhookEndpoint,
)
from frontdesk.events.tables import event_feeds, events, webhook_endpoints
from frontdesk.text import stored_time

LEASE = timedelta(seconds=60)  # of a claim of an endpoint
_columns = events.c
_endpoint = webhook_endpoints.c
_ORDER = (_columns.account_id, _columns.xid, _columns.id)
_WHOLE = [_endpoint[name] for name in WebhookEndpoint._fields]
# The number of the oldest transaction that is open or to come, on PostgreSQL.
_OLDEST_OPEN = text("(pg_snapshot_xmin(pg_current_snapshot())::text::bigint)")
_SHOWN = [_columns[name] for name in Event._fields]


def find_feeds(tx: SetTransaction, account_ids: Collection[int]) -> Found:
    """Which of the accounts have asked for events. A set read."""
    return sets.find_set(tx, event_feeds, "account_id", account_ids, columns=("account_id",))


def record(
    tx: SetTransaction, feeds: Found, new_events: Iterable[NewEvent], *, now: datetime
) -> None:
    """Store those of the events whose accounts are among `feeds`; nothing is computed when there is
    none.
    """
    accounts = {row["account_id"] for row in feeds.rows}
    if not accounts:
        return
    at = stored_time(now)
    rows = [
        {"account_id": each.account_id, "type": str(each.type), "at": at, "data": each.data}
        | {"request_id": each.request_id, "endpoint_id": each.endpoint_id}
        for each in new_events
        if each.account_id in accounts
    ]
    sets.insert_set(tx, events, rows)


def publish(tx: SetTransaction, new_events: Collection[NewEvent], *, now: datetime) -> None:
    """`record` with the look-up of the feeds, in a trip of its own."""
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


def list_events(
    tx: Tx, account_id: int, *, after: EventPlace, limit: int, tests: bool = False
) -> list[Event]:
    """The account's events after a place, oldest first; with `tests`, those of single endpoints
    too.

    Events of a transaction that is still open may come before events that are visible already, so
    PostgreSQL's are read up to the oldest open transaction. A reader that goes on after the last
    event that it was given misses none.
    """
    query = select(*_SHOWN).order_by(*_ORDER).limit(limit)
    if not tests:
        query = query.where(_columns.endpoint_id.is_(None))
    rows = tx.execute(query.where(*_beyond(tx, account_id, after)))
    return [Event(*row)._replace(type=AccountEventType(row.type)) for row in rows]


def last_place(tx: Tx, account_id: int) -> EventPlace:
    """The place of the account's newest event that a reader may see."""
    query = select(_columns.xid, _columns.id).where(*_beyond(tx, account_id, FEED_START))
    row = tx.execute(query.order_by(*(column.desc() for column in _ORDER)).limit(1)).first()
    return EventPlace(*row) if row else FEED_START


def first_place_since(tx: Tx, account_id: int, since: datetime) -> EventPlace | None:
    """The place of the first event of the feed at that time or later."""
    query = select(_columns.xid, _columns.id).order_by(*_ORDER).limit(1)
    mine = (_columns.at >= since, _columns.endpoint_id.is_(None))
    row = tx.execute(query.where(*_beyond(tx, account_id, FEED_START), *mine)).first()
    return EventPlace(*row) if row else None


def copy_event(tx: Tx, account_id: int, place: EventPlace, endpoint_id: int) -> bool:
    """Store an event of the feed once more, for one endpoint. False if it is not there."""
    names = ("account_id", "type", "at", "data", "request_id")
    mine = _columns.account_id == account_id, _columns.xid == place.xid, _columns.id == place.id
    query = select(
        *(_columns[name] for name in names), literal(endpoint_id), literal(place.event_id)
    )
    found = query.where(*mine, _columns.endpoint_id.is_(None))
    copied = (
        insert(events).from_select([*names, "endpoint_id", "replays"], found).returning(_columns.id)
    )
    return tx.execute(copied).first() is not None


def has_event(tx: Tx, account_id: int, place: EventPlace) -> bool:
    """Whether the account has the event, of the feed or of one endpoint. After a backup was
    restored its number may be 0 by now (`number_anew`).
    """
    known = (_columns.xid.in_((place.xid, 0)), _columns.id == place.id)
    query = select(_columns.id).where(_columns.account_id == account_id, *known).limit(1)
    return tx.execute(query).first() is not None


def first_place(tx: Tx, account_id: int) -> EventPlace | None:
    """The place of the account's oldest event."""
    query = select(_columns.xid, _columns.id).order_by(*_ORDER).limit(1)
    row = tx.execute(query.where(_columns.account_id == account_id)).first()
    return EventPlace(*row) if row else None


def feed_since(tx: Tx, account_id: int) -> datetime | None:
    """When the account's feed began."""
    query = select(event_feeds.c.since).where(event_feeds.c.account_id == account_id)
    return tx.execute(query).scalar()


def _beyond(tx: Tx, account_id: int, after: EventPlace) -> tuple[ColumnElement[bool], ...]:
    """A range of the index in its own order (eligibility.store.list_ids_under has the reason for
    two forms). A place with a transaction that is still to come is one of before a restored backup
    (`number_anew`).
    """
    account = _columns.account_id
    if tx.dialect.name == "sqlite":  # one writer: its ids commit in order
        return account == account_id, _columns.xid == 0, _columns.id > after.id
    xid = case((literal(after.xid) < _OLDEST_OPEN, after.xid), else_=0)
    place = tuple_(*_ORDER) > tuple_(account_id, xid, after.id)
    return place, account <= account_id, _columns.xid < _OLDEST_OPEN


def number_anew(tx: Tx) -> None:
    """After a backup was restored on another server: its transactions are numbered from the
    beginning, so the restored events and places get the number 0, before all new ones.
    """
    if tx.dialect.name != "sqlite":
        tx.execute(update(events).where(_columns.xid >= _OLDEST_OPEN).values(xid=0))
        places = _endpoint.place_xid >= _OLDEST_OPEN
        tx.execute(update(webhook_endpoints).where(places).values(place_xid=0))


def list_endpoints(tx: Tx, account_id: int) -> list[WebhookEndpoint]:
    query = select(*_WHOLE).where(_endpoint.account_id == account_id).order_by(_endpoint.id)
    return [WebhookEndpoint(*row) for row in tx.execute(query)]


def get_endpoint(
    tx: Tx, account_id: int, endpoint_id: int, *, lock: bool = False
) -> WebhookEndpoint:
    """Raises NotFound, also for another account's endpoint."""
    query = select(*_WHOLE).where(_endpoint.id == endpoint_id, _endpoint.account_id == account_id)
    row = tx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFound("webhook endpoint")
    return WebhookEndpoint(*row)


_BEHIND = """
    SELECT e.id, e.account_id, e.state, e.attempts, e.failing_since, e.last_error, (
        SELECT count(*) FROM (
            SELECT 1 FROM events v WHERE v.account_id = e.account_id
            AND (v.xid, v.id) > (e.place_xid, e.place_id) LIMIT {most}
        ) AS counted
    ) AS behind FROM webhook_endpoints e
"""


def list_backlogs(tx: Tx, *, most: int) -> list[EndpointBacklog]:
    """Each webhook endpoint, and how many events of its account it has not had, `most` at most; events
    that it does not want are among them.
    """
    typed = text(_BEHIND.format(most=most)).columns(
        *(_endpoint[name] for name in EndpointBacklog._fields[:-1]), column("behind", Integer)
    )
    return [EndpointBacklog(*row) for row in tx.execute(typed)]


def insert_endpoint(tx: Tx, values: dict[str, Any]) -> WebhookEndpoint:
    return WebhookEndpoint(
        *tx.execute(insert(webhook_endpoints).values(values).returning(*_WHOLE)).one()
    )


def change_endpoint(tx: Tx, endpoint_id: int, **values: Any) -> None:
    """Change the endpoint. The later writes of a worker that has claimed it are void; its lease
    lasts until it finds out (`end_claim`), so that the next worker does not send beside it.
    """
    changed = update(webhook_endpoints).where(_endpoint.id == endpoint_id)
    tx.execute(changed.values(**values, epoch=_endpoint.epoch + 1))


def delete_endpoint(tx: Tx, endpoint_id: int) -> None:
    tx.execute(delete(webhook_endpoints).where(_endpoint.id == endpoint_id))


def find_due(tx: Tx, now: datetime, limit: int) -> list[DueEndpoint]:
    """Endpoints with an event or a test to send now, that with the oldest last turn first. Nothing
    is sent for accounts that don't work.
    """
    is_there: ColumnElement[bool] = and_(_columns.xid == 0, _columns.id > _endpoint.place_id)
    if tx.dialect.name != "sqlite":
        place = tuple_(_columns.xid, _columns.id) > tuple_(_endpoint.place_xid, _endpoint.place_id)
        is_there = and_(place, _columns.xid < _OLDEST_OPEN)
    of_account = sets.SameKey(_columns.account_id, _endpoint.account_id)
    first = select(_columns.id).where(of_account, is_there).order_by(*_ORDER).limit(1)
    works = text("(SELECT state FROM accounts WHERE id = webhook_endpoints.account_id) = 'active'")
    query = select(_endpoint.id, _endpoint.account_id, _endpoint.url).where(*_is_due(now), works)
    has_event = first.correlate(webhook_endpoints).scalar_subquery().is_not(None)
    # The test of an address is no event of the feed.
    query = query.where(or_(_endpoint.state == EndpointState.UNVERIFIED, has_event))
    return [DueEndpoint(*row) for row in tx.execute(query.order_by(_endpoint.turn_at).limit(limit))]


def _is_due(now: datetime) -> tuple[ColumnElement[bool], ...]:
    is_free = or_(_endpoint.lease_until.is_(None), _endpoint.lease_until < now)
    return _endpoint.state != EndpointState.PAUSED, _endpoint.next_at <= now, is_free


def claim_due(tx: Tx, ids: Sequence[int], now: datetime) -> list[WebhookEndpoint]:
    """Claim those of the endpoints that are still due and free, until `delivery.save` with `ends`."""
    values = {"epoch": _endpoint.epoch + 1, "lease_until": now + LEASE, "turn_at": now}
    mine = and_(_endpoint.id.in_(sorted(ids)), *_is_due(now))
    claimed = update(webhook_endpoints).where(mine).values(values).returning(*_WHOLE)
    return [WebhookEndpoint(*row) for row in tx.execute(claimed)]


def pass_over(tx: Tx, ids: Collection[int], now: datetime) -> None:
    """Let others have their turns before these endpoints, as after a turn of theirs."""
    passed = update(webhook_endpoints).where(_endpoint.id.in_(sorted(ids)))
    tx.execute(passed.values(turn_at=now))


def save_claimed(tx: Tx, endpoint_id: int, epoch: int, **values: Any) -> bool:
    """Change a claimed endpoint. False if the claim was lost: then nothing is written."""
    mine = and_(_endpoint.id == endpoint_id, _endpoint.epoch == epoch)
    return tx.execute(update(webhook_endpoints).where(mine).values(values)).rowcount == 1


def end_claim(tx: Tx, endpoint: WebhookEndpoint) -> None:
    """End the lease of a claim that was lost to a change of the endpoint. A later claim has another
    lease.
    """
    mine = and_(_endpoint.id == endpoint.id, _endpoint.lease_until == endpoint.lease_until)
    tx.execute(update(webhook_endpoints).where(mine).values(lease_until=None))
