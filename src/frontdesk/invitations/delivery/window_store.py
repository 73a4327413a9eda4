"""The SQL of the hourly windows: each account's measured time, its batch, and what left in each slice of that time."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import select, text, update

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Row, as_json, by_key, insert_missing
from frontdesk.invitations.delivery.model import HourlyWindow
from frontdesk.invitations.tables import IN_HAND, delivery_counts, delivery_windows


def find_windows(
    tx: Tx, account_ids: Collection[int] | None = None, *, lock: bool = False, skip_locked: bool = False
) -> list[HourlyWindow]:
    """The accounts' windows (None: all), in the order of the accounts, so that two workers can't deadlock.

    With `lock` they are locked until the transaction ends. Those that another worker has locked are waited for, or left out
    with `skip_locked`.
    """
    query = select(delivery_windows).order_by(delivery_windows.c.account_id)
    if account_ids is not None:
        query = query.where(delivery_windows.c.account_id.in_(account_ids))
    if lock:
        query = query.with_for_update(skip_locked=skip_locked)
    return [HourlyWindow._make(row) for row in tx.execute(query)]


def make_window(tx: Tx, account_id: int, wall_at: datetime) -> None:
    """An empty window, unless there is one."""
    window = HourlyWindow(account_id, 0, 0, wall_at, None, 0)
    insert_missing(tx, delivery_windows, [window._asdict() | {"wall_at": stored_time(wall_at)}])


def save_window(tx: Tx, window: HourlyWindow) -> None:
    mine = delivery_windows.c.account_id == window.account_id
    tx.execute(update(delivery_windows).where(mine).values(window._asdict()))


_HELD = f"SELECT count(*) FROM invitations WHERE {IN_HAND.text} AND account_id = :account_id"  # noqa: S608 - constants only
_USED = f"""
    SELECT ({_HELD})
        + (SELECT coalesce(sum(sent), 0) FROM delivery_counts WHERE account_id = :account_id AND slice >= :since_slice)
"""  # noqa: S608 - constants only


def count_held(tx: Tx, account_id: int) -> int:
    """The account's batched invitations that workers hold."""
    return int(tx.execute(text(_HELD), {"account_id": account_id}).scalar_one())


def count_used(tx: Tx, account_id: int, *, since_slice: int) -> int:
    """The places taken: invitations that workers hold, and those that were counted into the slices."""
    return int(tx.execute(text(_USED), {"account_id": account_id, "since_slice": since_slice}).scalar_one())


def sent_by_slice(tx: Tx, account_id: int, *, since_slice: int) -> list[tuple[int, int]]:
    """(slice, sent) in the order of the slices."""
    mine = (delivery_counts.c.account_id == account_id) & (delivery_counts.c.slice >= since_slice)
    query = (
        select(delivery_counts.c.slice, delivery_counts.c.sent).where(mine).order_by(delivery_counts.c.slice)
    )
    return [(slice_, sent) for slice_, sent in tx.execute(query)]


_COUNTED = {
    "account_id": "bigint",
    "version": "bigint",
    "measured_us": "bigint",
    "wall_at": "timestamptz",
    "slice": "bigint",
    "sent": "integer",
    "oldest": "bigint",
}
_FORGOTTEN = "DELETE FROM delivery_counts WHERE account_id = ? AND slice < ?"
# Both take their rows from `r`; `key` joins them to the windows.
_MEASURED = """
    UPDATE delivery_windows AS w SET version = r.version, measured_us = r.measured_us, wall_at = r.wall_at
    FROM {r} WHERE {key}
"""
_ADDED = """
    INSERT INTO delivery_counts (account_id, slice, sent) SELECT account_id, slice, sent FROM {r} WHERE true
    ON CONFLICT (account_id, slice) DO UPDATE SET sent = delivery_counts.sent + excluded.sent
"""
_TYPED = ", ".join(f"{name} {kind}" for name, kind in _COUNTED.items())
_NAMED = ", ".join(f"value->>'{name}' AS {name}" for name in _COUNTED)
_ROWS_SQLITE = f"(SELECT {_NAMED} FROM json_each(?)) AS r"  # noqa: S608 - constants only
_COUNT_POSTGRESQL = f"""
    WITH r AS (SELECT * FROM json_to_recordset(%s::json) AS r({_TYPED})),
        measured AS ({_MEASURED}),
        forgotten AS (DELETE FROM delivery_counts c USING r WHERE {by_key("c.account_id", "r.account_id")} AND c.slice < r.oldest)
    {_ADDED}
""".format(r="r", key=by_key("w.account_id", "r.account_id"))  # noqa: S608 - constants only


def count_into_windows(tx: Tx, rows: Sequence[Row]) -> None:
    """Save the windows' time, add sent messages to their slices, and delete slices older than every window.

    The keys of a row: at least `_COUNTED`.
    """
    payload = (as_json(rows),)
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql(_COUNT_POSTGRESQL, payload)
        return
    for statement in (_MEASURED, _ADDED):
        tx.exec_driver_sql(statement.format(r=_ROWS_SQLITE, key="w.account_id = r.account_id"), payload)
    tx.exec_driver_sql(_FORGOTTEN, [(row["account_id"], row["oldest"]) for row in rows])
