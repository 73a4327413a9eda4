"""The SQL of delivery: what is due, claimed and changed in sets, the timeline, the hourly windows, the delivery's home.

The conditions of the partial indexes stand here word for word as in `invitations.tables`: SQLite compares the text.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import func, insert, select, text, update

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

# What a change carries for all of its invitations, with the types on PostgreSQL.
_CHANGE = {
    "change": "integer",
    "from_state": "text",
    "state": "text",
    "closes": "integer",
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


_TAKE = (
    "UPDATE invitations SET state = 'claimed', epoch = epoch + 1, due_at = :lease_until, updated_at = :now, "
    "reason = 'claimed', message_id = coalesce(message_id, {fresh} || :domain) WHERE id {among} "
    f"RETURNING {_CLAIMED}, updated_at"
)
_DUE = (
    f"SELECT id {_PENDING} AND account_id = :account_id AND plan_id = :plan_id AND due_at <= :now "
    "ORDER BY due_at, id LIMIT :count"
)
_INTO_TIMELINE = "INSERT INTO invitation_events (invitation_id, at, from_state, to_state, reason, code)"
_IS_CLAIMED = "SELECT id, updated_at, 'pending', 'claimed', 'claimed', NULL"

# One statement: whoever else is claiming takes others, and the timeline is written along.
_TAKE_POSTGRESQL = text(
    "WITH taken AS ("
    + _TAKE.format(
        among=f"= ANY(ARRAY({_DUE} FOR UPDATE SKIP LOCKED))",
        fresh="replace(gen_random_uuid()::text, '-', '')",
    )
    + f"), noted AS ({_INTO_TIMELINE} {_IS_CLAIMED}::integer FROM taken) SELECT {_CLAIMED} FROM taken"
)
# There is nobody else.
_TAKE_SQLITE = text(_TAKE.format(among=f"IN ({_DUE})", fresh="lower(hex(randomblob(16)))"))
_NOTE_SQLITE = f"{_INTO_TIMELINE} {_IS_CLAIMED} FROM invitations WHERE id IN (SELECT value FROM json_each(?))"


def take(tx: Tx, **wanted: Any) -> Sequence[Any]:
    """Claim the `count` invitations of a lane that are due longest, with their timeline; rows of _CLAIMED."""
    if tx.dialect.name != "sqlite":
        return tx.execute(_TAKE_POSTGRESQL, wanted).all()
    rows = tx.execute(_TAKE_SQLITE, wanted).all()
    tx.exec_driver_sql(_NOTE_SQLITE, (orjson.dumps([row.id for row in rows]).decode(),))
    return rows


def _changes(*, prefix: str) -> str:
    """The assignments of a change; `i` is the invitation, `r` what becomes of it."""
    kept = {
        "epoch": "i.epoch + r.closes",
        "attempts": "coalesce(r.attempts, i.attempts)",
        "losses": "coalesce(r.losses, i.losses)",
        "offered_at": "coalesce(r.offered_at, i.offered_at)",
    }
    plain = [name for name in _CHANGE if name not in ("change", "from_state", "closes", *kept)]
    return prefix + ", ".join(f"{name} = {kept.get(name, f'r.{name}')}" for name in (*plain, *kept))


_STILL = "i.id = r.id AND i.epoch = r.epoch AND i.state = r.from_state"


@lru_cache(maxsize=2)
def _change_postgresql(*, is_step: bool) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in _CHANGE.items())
    noted = f", noted AS ({_INTO_TIMELINE} SELECT id, updated_at, from_state, state, reason, relay_code FROM changed)"
    # The ids stand in an array, so that the rows are reached by them whatever the planner thinks of the states.
    return (
        f"WITH c AS (SELECT * FROM json_to_recordset(%s::json) AS c({columns})), "  # noqa: S608
        "r AS (SELECT * FROM json_to_recordset(%s::json) AS o(id bigint, epoch integer, change integer) "
        "JOIN c USING (change)), "
        f"changed AS (UPDATE invitations AS i {_changes(prefix='SET ')} FROM r "
        f"WHERE i.id = ANY(ARRAY(SELECT id FROM r)) AND {_STILL} "
        "RETURNING i.id, i.account_id, i.delivery, i.updated_at, r.from_state, i.state, i.reason, i.relay_code)"
        f"{noted if is_step else ''} SELECT id, account_id, delivery FROM changed"
    )


_CHANGE_SQLITE = (
    "(SELECT {} FROM json_each(?) AS c JOIN json_each(?) AS o ON o.value->>'change' = c.key) AS r".format(
        ", ".join(
            [f"c.value->>'{name}' AS {name}" for name in _CHANGE]
            + [f"o.value->>'{name}' AS {name}" for name in ("id", "epoch")]
        )
    )
)
_CHANGED_SQLITE = f"UPDATE invitations AS i {_changes(prefix='SET ')} FROM {_CHANGE_SQLITE} WHERE {_STILL} "
_CHANGED_SQLITE += "RETURNING id, account_id, delivery"
# Written before the change: nobody else can come between them.
_NOTED_SQLITE = (
    f"{_INTO_TIMELINE} SELECT r.id, r.updated_at, r.from_state, r.state, r.reason, r.relay_code "  # noqa: S608
    f"FROM {_CHANGE_SQLITE} CROSS JOIN invitations AS i ON {_STILL}"
)


def change(tx: Tx, changes: Sequence[Row], ones: Sequence[Row], *, is_step: bool) -> Sequence[Any]:
    """Change those that are still in the state and epoch named, with their timeline; (id, account_id, delivery) of each.

    `ones` (id, epoch, change) name their change by its number.
    """
    if not ones:
        return []
    parameters = (orjson.dumps(changes).decode(), orjson.dumps(ones).decode())
    if tx.dialect.name != "sqlite":
        return tx.exec_driver_sql(_change_postgresql(is_step=is_step), parameters).all()
    if is_step:
        tx.exec_driver_sql(_NOTED_SQLITE, parameters)
    return tx.exec_driver_sql(_CHANGED_SQLITE, parameters).all()


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
_ADDED = (
    "INSERT INTO delivery_counts (account_id, slice, sent) SELECT account_id, slice, sent FROM {rows} WHERE true "
    "ON CONFLICT (account_id, slice) DO UPDATE SET sent = delivery_counts.sent + excluded.sent"
)
_FORGOTTEN = "DELETE FROM delivery_counts WHERE account_id = ? AND slice < ?"

_COUNT_POSTGRESQL = (
    "WITH r AS (SELECT * FROM json_to_recordset(%s::json) AS r({columns})), "  # noqa: S608
    f"measured AS ({_MEASURED} FROM r WHERE w.account_id = r.account_id), "
    "forgotten AS (DELETE FROM delivery_counts c USING r WHERE c.account_id = r.account_id AND c.slice < r.oldest) "
).replace("{columns}", ", ".join(f"{name} {kind}" for name, kind in _COUNTED.items())) + _ADDED.format(
    rows="r"
)

_COUNTED_SQLITE = "(SELECT {} FROM json_each(?)) AS r".format(
    ", ".join(f"value->>'{name}' AS {name}" for name in _COUNTED)
)


def count_into_windows(tx: Tx, rows: Sequence[Row]) -> None:
    """Save the windows' time, count messages into their slices, and drop slices that no window reaches back to."""
    payload = (orjson.dumps([{name: row[name] for name in _COUNTED} for row in rows]).decode(),)
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


def find_pending(tx: Tx, count: int) -> list[Row]:
    query = text(f"SELECT {_CLAIMED} FROM invitations WHERE state = 'pending' ORDER BY id LIMIT :count")  # noqa: S608
    return [dict(row) for row in tx.execute(query, {"count": count}).mappings()]


_MAILED = text(
    "SELECT state, offered_at FROM invitations WHERE address_folded = :address AND offered_at IS NOT NULL"
)


def find_mailed(tx: Tx, address_folded: str) -> list[Row]:
    """The invitations that were offered to the relay for the address, whosever they are."""
    found = tx.execute(_MAILED, {"address": address_folded}).mappings()
    return [dict(row) | {"offered_at": as_time(row["offered_at"])} for row in found]


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
    return min((row["first_due_at"] for row in find_lanes(tx)), default=None)
