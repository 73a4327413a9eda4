"""The SQL of delivery: what is due, claimed and changed in sets, the timeline, the hourly windows, the delivery's home.

The conditions of the partial indexes stand here word for word as in `invitations.tables`: SQLite compares the text.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause, delete, func, insert, select, text, update

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Row, find_set, insert_set
from frontdesk.invitations.delivery.tables import (
    delivery_counts,
    delivery_home,
    delivery_windows,
    invitation_events,
)
from frontdesk.invitations.tables import deliverability, invitations
from frontdesk.plans.tables import plans

_CLAIMED = "id, account_id, plan_id, member_id, delivery, epoch, attempts, losses, address, message_id"

# The columns that a change carries beside the key (id, epoch, from_state), with their types on PostgreSQL.
_CHANGED = {
    "state": "text",
    "next_epoch": "integer",
    "due_at": "timestamptz",
    "attempts": "integer",
    "losses": "integer",
    "offered_at": "timestamptz",
    "settled_at": "timestamptz",
    "reason": "text",
    "relay_code": "integer",
    "updated_at": "timestamptz",
}


_PENDING = "FROM invitations WHERE state = 'pending' AND delivery = :delivery"

# Which accounts and plans have something in line, by hopping from one to the next in the index: the cost grows with their
# number and not with that of the invitations.
_LANES = text(
    f"""
    WITH RECURSIVE a(account_id) AS (
        SELECT min(account_id) {_PENDING}
        UNION ALL
        SELECT (SELECT min(account_id) {_PENDING} AND account_id > a.account_id) FROM a WHERE account_id IS NOT NULL
    ), l(account_id, plan_id) AS (
        SELECT account_id, (SELECT min(plan_id) {_PENDING} AND account_id = a.account_id)
        FROM a WHERE account_id IS NOT NULL
        UNION ALL
        SELECT account_id, (SELECT min(plan_id) {_PENDING} AND account_id = l.account_id AND plan_id > l.plan_id)
        FROM l WHERE plan_id IS NOT NULL
    )
    SELECT account_id, plan_id,
        (SELECT min(due_at) {_PENDING} AND account_id = l.account_id AND plan_id = l.plan_id) AS first_due_at,
        (SELECT accepting_patients FROM plans WHERE id = l.plan_id) AS accepting,
        (SELECT enabled FROM deliverability d WHERE d.account_id = l.account_id) AS enabled
    FROM l WHERE plan_id IS NOT NULL
    """  # noqa: S608 - constants only
)


def find_lanes(tx: Tx, delivery: str) -> list[Row]:
    """One row per account and plan with pending invitations of this delivery; `first_due_at` is a time."""
    rows = tx.execute(_LANES, {"delivery": delivery}).mappings()
    return [dict(row) | {"first_due_at": as_time(row["first_due_at"])} for row in rows]


@lru_cache(maxsize=4)
def _take_sql(dialect: str) -> TextClause:
    """One statement: whoever else is claiming takes others (on SQLite there is nobody else)."""
    due = (
        f"SELECT id {_PENDING} AND account_id = :account_id AND plan_id = :plan_id AND due_at <= :now "
        "ORDER BY due_at, id LIMIT :count"
    )
    if dialect == "sqlite":
        among, fresh = f"IN ({due})", "lower(hex(randomblob(16)))"
    else:
        among, fresh = (
            f"= ANY(ARRAY({due} FOR UPDATE SKIP LOCKED))",
            "replace(gen_random_uuid()::text, '-', '')",
        )
    return text(
        "UPDATE invitations SET state = 'claimed', epoch = epoch + 1, due_at = :lease_until, updated_at = :now, "  # noqa: S608
        f"reason = 'claimed', message_id = coalesce(message_id, {fresh} || :domain) "
        f"WHERE id {among} RETURNING {_CLAIMED}"
    )


def take(tx: Tx, **wanted: Any) -> list[Row]:
    """Claim the `count` invitations of a lane that are due longest."""
    return [dict(row) for row in tx.execute(_take_sql(tx.dialect.name), wanted).mappings()]


@lru_cache(maxsize=4)
def _change_sql(dialect: str) -> str:
    names = list(_CHANGED)
    given = {"id": "bigint", "epoch": "integer", "from_state": "text"} | _CHANGED
    if dialect == "sqlite":
        columns = ", ".join(f"value->>'{name}' AS {name}" for name in given)
        rows = f"(SELECT {columns} FROM json_each(?)) AS r"  # noqa: S608
    else:
        columns = ", ".join(f"{name} {kind}" for name, kind in given.items())
        rows = f"json_to_recordset(%s::json) AS r({columns})"
    kept = {"offered_at": "coalesce(r.offered_at, i.offered_at)"}
    changes = ", ".join(
        f"{'epoch' if name == 'next_epoch' else name} = {kept.get(name, f'r.{name}')}" for name in names
    )
    return (
        f"UPDATE invitations AS i SET {changes} FROM {rows} "  # noqa: S608
        "WHERE i.id = r.id AND i.epoch = r.epoch AND i.state = r.from_state RETURNING "
        + ("id, account_id, delivery" if dialect == "sqlite" else "i.id, i.account_id, i.delivery")
    )


def change(tx: Tx, rows: Sequence[Row]) -> list[Any]:
    """Change those that are still in the state and epoch that the row names; (id, account_id, delivery) of each of them."""
    if not rows:
        return []
    keys = ("id", "epoch", "from_state", *_CHANGED)
    payload = json.dumps([{key: row.get(key) for key in keys} for row in rows])
    return list(tx.exec_driver_sql(_change_sql(tx.dialect.name), (payload,)))


def insert_events(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, invitation_events, rows)


_LAPSED = text(
    f"SELECT {_CLAIMED}, state FROM invitations "  # noqa: S608
    "WHERE state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL AND due_at <= :now "
    "ORDER BY due_at LIMIT :count"
)
_LAPSED_LOCKED = text(_LAPSED.text + " FOR UPDATE SKIP LOCKED")


def find_lapsed(tx: Tx, now: datetime, count: int) -> list[Row]:
    """Those whose lease or hold has run out, the longest ago first."""
    query = _LAPSED if tx.dialect.name == "sqlite" else _LAPSED_LOCKED
    return [dict(row) for row in tx.execute(query, {"now": stored_time(now), "count": count}).mappings()]


_HAS_LAPSED = text(
    "SELECT 1 FROM invitations WHERE state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL "
    "AND due_at <= :now LIMIT 1"
)


def has_lapsed(tx: Tx, now: datetime) -> bool:
    return tx.execute(_HAS_LAPSED, {"now": stored_time(now)}).first() is not None


def find_stationery(tx: Tx, plan_ids: Collection[int]) -> dict[int, Row]:
    """By plan: its name and the account's sender and registration page (None where it has set none)."""
    columns = (
        deliverability.c.sender_name,
        deliverability.c.sender_address,
        deliverability.c.registration_url,
    )
    query = (
        select(plans.c.id, plans.c.name, *columns)
        .outerjoin(deliverability, deliverability.c.account_id == plans.c.account_id)
        .where(plans.c.id.in_(sorted(plan_ids)))
    )
    return {row["id"]: dict(row) for row in tx.execute(query).mappings()}


def lock_invitation(tx: Tx, invitation_id: int) -> Row | None:
    query = select(invitations).where(invitations.c.id == invitation_id).with_for_update()
    row = tx.execute(query).mappings().first()
    return dict(row) if row else None


def find_by_message_id(tx: Tx, message_id: str) -> Row | None:
    query = select(invitations).where(invitations.c.message_id == message_id).with_for_update()
    row = tx.execute(query).mappings().first()
    return dict(row) if row else None


def find_invitation(tx: Tx, invitation_id: int) -> Row | None:
    row = tx.execute(select(invitations).where(invitations.c.id == invitation_id)).mappings().first()
    return dict(row) if row else None


def events_of(tx: Tx, invitation_id: int) -> list[Row]:
    query = select(invitation_events).where(invitation_events.c.invitation_id == invitation_id)
    return [dict(row) for row in tx.execute(query.order_by(invitation_events.c.id)).mappings()]


def as_time(value: Any) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


# The hourly windows.


def lock_window(tx: Tx, account_id: int, *, wait: bool) -> Row | None:
    """The account's window, locked until the transaction ends; None when another has it and `wait` is false."""
    query = select(delivery_windows).where(delivery_windows.c.account_id == account_id)
    row = tx.execute(query.with_for_update(skip_locked=not wait)).mappings().first()
    return dict(row) if row else None


def make_window(tx: Tx, account_id: int, wall_at: datetime) -> None:
    """An empty window, unless there is one."""
    sql = text(
        "INSERT INTO delivery_windows (account_id, version, measured_us, wall_at, batch_us, batch_left) "
        "VALUES (:account_id, 0, 0, :wall_at, NULL, 0) ON CONFLICT (account_id) DO NOTHING"
    )
    tx.execute(sql, {"account_id": account_id, "wall_at": stored_time(wall_at)})


def save_window(tx: Tx, row: Row) -> None:
    mine = delivery_windows.c.account_id == row["account_id"]
    tx.execute(
        update(delivery_windows).where(mine).values({k: v for k, v in row.items() if k != "account_id"})
    )


def window_versions(tx: Tx) -> dict[int, int]:
    return {
        row[0]: row[1]
        for row in tx.execute(select(delivery_windows.c.account_id, delivery_windows.c.version))
    }


_IN_HAND = text(
    "SELECT count(*) FROM invitations WHERE state IN ('claimed', 'offered') AND delivery = 'batched' "
    "AND account_id = :account_id"
)


def count_in_hand(tx: Tx, account_id: int) -> int:
    """The account's batched invitations that a worker has in hand."""
    return int(tx.execute(_IN_HAND, {"account_id": account_id}).scalar_one())


def count_sent(tx: Tx, account_id: int, *, since_slice: int) -> int:
    mine = (delivery_counts.c.account_id == account_id) & (delivery_counts.c.slice >= since_slice)
    return int(
        tx.execute(select(func.coalesce(func.sum(delivery_counts.c.sent), 0)).where(mine)).scalar_one()
    )


def sent_by_slice(tx: Tx, account_id: int, *, since_slice: int) -> list[tuple[int, int]]:
    mine = (delivery_counts.c.account_id == account_id) & (delivery_counts.c.slice >= since_slice)
    query = (
        select(delivery_counts.c.slice, delivery_counts.c.sent).where(mine).order_by(delivery_counts.c.slice)
    )
    return [(row[0], row[1]) for row in tx.execute(query)]


def add_sent(tx: Tx, account_id: int, *, slice_: int, count: int, forget_before: int) -> None:
    """Count messages into a slice, and drop slices that no window reaches back to."""
    sql = text(
        "INSERT INTO delivery_counts (account_id, slice, sent) VALUES (:account_id, :slice, :count) "
        "ON CONFLICT (account_id, slice) DO UPDATE SET sent = delivery_counts.sent + excluded.sent"
    )
    tx.execute(sql, {"account_id": account_id, "slice": slice_, "count": count})
    mine = (delivery_counts.c.account_id == account_id) & (delivery_counts.c.slice < forget_before)
    tx.execute(delete(delivery_counts).where(mine))


# Where the database lives.


def find_home(tx: Tx) -> Row | None:
    row = tx.execute(select(delivery_home).where(delivery_home.c.id == 1)).mappings().first()
    return dict(row) if row else None


def make_home(tx: Tx) -> None:
    tx.execute(insert(delivery_home).values(id=1, home=None, offers=0))


def save_home(tx: Tx, **changes: Any) -> None:
    tx.execute(update(delivery_home).where(delivery_home.c.id == 1).values(changes))


def count_offers(tx: Tx) -> int:
    """One more commit after which mail leaves; how many there have been."""
    sql = "UPDATE delivery_home SET offers = offers + 1 WHERE id = 1 RETURNING offers"
    return int(tx.exec_driver_sql(sql).scalar_one())


# For operators.


def forget_message_id(tx: Tx, invitation_id: int) -> None:
    """The next claim gives it a new one."""
    tx.execute(update(invitations).where(invitations.c.id == invitation_id).values(message_id=None))


_ROWS = f"SELECT {_CLAIMED}, state FROM invitations WHERE "  # noqa: S608 - constants only
_PENDING_BY_ID = text(_ROWS + "state = 'pending' ORDER BY id LIMIT :count")
_LAPSING_BY_ID = text(
    _ROWS + "state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL ORDER BY id LIMIT :count"
)


def find_pending(tx: Tx, count: int) -> list[Row]:
    return [dict(row) for row in tx.execute(_PENDING_BY_ID, {"count": count}).mappings()]


def find_lapsing(tx: Tx, count: int) -> list[Row]:
    """Those with a lease or a hold that runs out, or has: in hand, or ambiguous and to be sent once more."""
    return [dict(row) for row in tx.execute(_LAPSING_BY_ID, {"count": count}).mappings()]


def lock_address(tx: Tx, address_folded: str) -> None:
    """Be the only one that decides about this address until the transaction ends; on SQLite a writer is alone anyway."""
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (address_folded,))


# No index leads from an address to what is in line: putting members in line would have to pay for it. So the line is read,
# by its own indexes.
_IN_LINE = text(
    "SELECT 1 FROM invitations WHERE state = 'pending' AND address_folded = :address UNION ALL "
    "SELECT 1 FROM invitations WHERE state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL "
    "AND state <> 'ambiguous' AND address_folded = :address LIMIT 1"
)


def is_in_line(tx: Tx, address_folded: str) -> bool:
    """Whether any invitation to the address waits or is in hand."""
    return tx.execute(_IN_LINE, {"address": address_folded}).first() is not None


_MAILED = text(
    "SELECT offered_at FROM invitations WHERE address_folded = :address AND offered_at IS NOT NULL"
)


def find_mailed(tx: Tx, address_folded: str) -> list[datetime]:
    """When invitations were offered to the relay for the address, whosever they are."""
    return [as_time(row[0]) for row in tx.execute(_MAILED, {"address": address_folded})]


def find_of_members(tx: Tx, member_ids: Collection[int]) -> Sequence[Row]:
    """The invitations of the members."""
    columns = ("id", "epoch", "state", "attempts", "losses")
    return find_set(tx, invitations, "member_id", member_ids, columns=columns).rows


def find_window(tx: Tx, account_id: int) -> Row | None:
    query = select(delivery_windows).where(delivery_windows.c.account_id == account_id)
    row = tx.execute(query).mappings().first()
    return dict(row) if row else None


_WAITING = text(
    "SELECT p.accepting_patients, count(*) FROM invitations i JOIN plans p ON p.id = i.plan_id "
    "WHERE state = 'pending' AND i.delivery = 'batched' AND i.account_id = :account_id GROUP BY p.accepting_patients"
)


def count_pending(tx: Tx, account_id: int) -> dict[bool, int]:
    """The account's batched invitations in line, by whether their plan accepts patients."""
    found = tx.execute(_WAITING, {"account_id": account_id})
    return {bool(row[0]): int(row[1]) for row in found}


def count_by_state(tx: Tx) -> dict[str, int]:
    query = select(invitations.c.state, func.count()).group_by(invitations.c.state)
    return {str(row[0]): int(row[1]) for row in tx.execute(query)}


def oldest_due(tx: Tx) -> datetime | None:
    """Since when the one that is due longest has been due."""
    found = [row["first_due_at"] for delivery in ("immediate", "batched") for row in find_lanes(tx, delivery)]
    return min(found, default=None)
