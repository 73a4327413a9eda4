"""The SQL of delivery: what is due, found and read, the hourly windows, the delivery's home.

The conditions of the partial indexes stand here word for word as in `invitations.tables`: SQLite compares the text.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, text, update

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.bulk import as_json
from frontdesk.db.sets import Row
from frontdesk.invitations.delivery.tables import (
    delivery_counts,
    delivery_home,
    delivery_windows,
    invitation_events,
)
from frontdesk.invitations.tables import deliverability, invitations
from frontdesk.plans.tables import plans

# What a worker needs to know of an invitation that it takes in hand.
CLAIMED = "id, account_id, plan_id, member_id, delivery, epoch, attempts, losses, address, message_id"

# Which accounts and plans have something in line, by hopping from one to the next in the index: the cost grows with their
# number and not with that of the invitations.
_HOP = "FROM invitations WHERE state = 'pending' AND delivery = a.delivery"
_LANES = text(
    f"""
    WITH RECURSIVE a(delivery, account_id) AS (
        SELECT delivery, (SELECT min(account_id) {_HOP})
        FROM (SELECT 'immediate' AS delivery UNION ALL SELECT 'batched') AS a
        UNION ALL
        SELECT delivery, (SELECT min(account_id) {_HOP} AND account_id > a.account_id)
        FROM a WHERE account_id IS NOT NULL
    ), l(delivery, account_id, plan_id) AS (
        SELECT delivery, account_id, (SELECT min(plan_id) {_HOP} AND account_id = a.account_id)
        FROM a WHERE account_id IS NOT NULL
        UNION ALL
        SELECT delivery, account_id,
            (SELECT min(plan_id) {_HOP} AND account_id = a.account_id AND plan_id > a.plan_id)
        FROM l AS a WHERE plan_id IS NOT NULL
    )
    SELECT delivery, account_id, plan_id,
        (SELECT min(due_at) {_HOP} AND account_id = a.account_id AND plan_id = a.plan_id) AS first_due_at,
        (SELECT accepting_patients FROM plans WHERE id = a.plan_id) AS accepting,
        (SELECT enabled FROM deliverability d WHERE d.account_id = a.account_id) AS enabled
    FROM l AS a WHERE plan_id IS NOT NULL
    """  # noqa: S608 - constants only
)


def find_lanes(tx: Tx) -> list[Row]:
    """One row per delivery, account and plan with pending invitations; `first_due_at` is a time."""
    rows = tx.execute(_LANES).mappings()
    return [dict(row) | {"first_due_at": as_time(row["first_due_at"])} for row in rows]


_LAPSED = text(
    f"SELECT {CLAIMED}, state FROM invitations "  # noqa: S608
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


def lock_windows(tx: Tx, account_ids: Collection[int]) -> list[Row]:
    """The accounts' windows, locked in the order of the accounts, each waited for."""
    mine = delivery_windows.c.account_id.in_(sorted(account_ids))
    query = select(delivery_windows).where(mine).order_by(delivery_windows.c.account_id).with_for_update()
    return [dict(row) for row in tx.execute(query).mappings()]


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


_USED = text(
    f"SELECT ({_IN_HAND.text}) + (SELECT coalesce(sum(sent), 0) FROM delivery_counts "  # noqa: S608
    "WHERE account_id = :account_id AND slice >= :since_slice)"
)


def count_used(tx: Tx, account_id: int, *, since_slice: int) -> int:
    """Those in hand, and those that were counted into the slices."""
    return int(tx.execute(_USED, {"account_id": account_id, "since_slice": since_slice}).scalar_one())


def sent_by_slice(tx: Tx, account_id: int, *, since_slice: int) -> list[tuple[int, int]]:
    mine = (delivery_counts.c.account_id == account_id) & (delivery_counts.c.slice >= since_slice)
    query = (
        select(delivery_counts.c.slice, delivery_counts.c.sent).where(mine).order_by(delivery_counts.c.slice)
    )
    return [(row[0], row[1]) for row in tx.execute(query)]


_COUNTED = {
    "account_id": "bigint",
    "version": "bigint",
    "measured_us": "bigint",
    "wall_at": "timestamptz",
    "slice": "bigint",
    "sent": "integer",
    "oldest": "bigint",
}
_MEASURED = (
    "UPDATE delivery_windows AS w SET version = r.version, measured_us = r.measured_us, wall_at = r.wall_at"
)
_ADDED = """
    INSERT INTO delivery_counts (account_id, slice, sent) SELECT account_id, slice, sent FROM {rows} WHERE true
    ON CONFLICT (account_id, slice) DO UPDATE SET sent = delivery_counts.sent + excluded.sent
"""
_FORGOTTEN = "DELETE FROM delivery_counts WHERE account_id = ? AND slice < ?"

_COUNT_POSTGRESQL = f"""
    WITH r AS (
        SELECT * FROM json_to_recordset(%s::json) AS r({", ".join(f"{name} {kind}" for name, kind in _COUNTED.items())})
    ), measured AS (
        {_MEASURED} FROM r WHERE w.account_id = r.account_id
    ), forgotten AS (
        DELETE FROM delivery_counts c USING r WHERE c.account_id = r.account_id AND c.slice < r.oldest
    )
    {_ADDED.format(rows="r")}
"""  # noqa: S608
_COUNTED_SQLITE = (
    "(SELECT " + ", ".join(f"value->>'{name}' AS {name}" for name in _COUNTED) + " FROM json_each(?)) AS r"  # noqa: S608
)


def count_into_windows(tx: Tx, rows: Sequence[Row]) -> None:
    """Save the windows' time, count messages into their slices, and drop slices that no window reaches back to."""
    payload = (as_json([{name: row[name] for name in _COUNTED} for row in rows]),)
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql(_COUNT_POSTGRESQL, payload)
        return
    tx.exec_driver_sql(f"{_MEASURED} FROM {_COUNTED_SQLITE} WHERE w.account_id = r.account_id", payload)
    tx.exec_driver_sql(_ADDED.format(rows=_COUNTED_SQLITE), payload)
    tx.exec_driver_sql(_FORGOTTEN, [(row["account_id"], row["oldest"]) for row in rows])


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


_ROWS = f"SELECT {CLAIMED}, state FROM invitations WHERE "  # noqa: S608 - constants only
_PENDING_BY_ID = text(_ROWS + "state = 'pending' AND id > :after ORDER BY id LIMIT :count")
_LAPSING_BY_ID = text(
    _ROWS + "state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL "
    "AND id > :after ORDER BY id LIMIT :count"
)


def find_pending(tx: Tx, *, after: int, count: int) -> list[Row]:
    """In order of their ids, from the one after `after`."""
    return [dict(row) for row in tx.execute(_PENDING_BY_ID, {"after": after, "count": count}).mappings()]


def find_lapsing(tx: Tx, *, after: int, count: int) -> list[Row]:
    """Those with a lease or a hold that runs out, or has: in hand, or ambiguous and to be sent once more. By id, as above."""
    return [dict(row) for row in tx.execute(_LAPSING_BY_ID, {"after": after, "count": count}).mappings()]


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


def find_window(tx: Tx, account_id: int) -> Row | None:
    query = select(delivery_windows).where(delivery_windows.c.account_id == account_id)
    row = tx.execute(query).mappings().first()
    return dict(row) if row else None


_WAITING = (
    "FROM invitations i JOIN plans p ON p.id = i.plan_id "
    "WHERE state = 'pending' AND i.delivery = 'batched' AND i.account_id = :account_id"
)
# What is due counts as one moment, so that the answer is as short as the list of those that are tried again later.
_DUE = text(
    f"SELECT CASE WHEN due_at > :now THEN due_at END, count(*) {_WAITING} AND p.accepting_patients GROUP BY 1"
)
_HELD_BACK = text(f"SELECT count(*) {_WAITING} AND NOT p.accepting_patients")


def count_due(tx: Tx, account_id: int, *, now: datetime) -> list[tuple[datetime, int]]:
    """When how many of the account's batched invitations in line are due, `now` or later, whose plan accepts patients."""
    found = tx.execute(_DUE, {"account_id": account_id, "now": stored_time(now)})
    return [(now if row[0] is None else as_time(row[0]), int(row[1])) for row in found]


def count_held_back(tx: Tx, account_id: int) -> int:
    """The account's batched invitations in line whose plan accepts no patients."""
    return int(tx.execute(_HELD_BACK, {"account_id": account_id}).scalar_one())


def count_by_state(tx: Tx) -> dict[str, int]:
    query = select(invitations.c.state, func.count()).group_by(invitations.c.state)
    return {str(row[0]): int(row[1]) for row in tx.execute(query)}


def oldest_due(tx: Tx) -> datetime | None:
    """Since when the one that is due longest has been due."""
    return min((row["first_due_at"] for row in find_lanes(tx)), default=None)
