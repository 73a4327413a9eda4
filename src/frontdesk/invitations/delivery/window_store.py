"""The SQL of the hourly windows: each account's measured time, its batch, and what left in each slice of that time."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import select, text, update

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Row, as_json, insert_missing
from frontdesk.invitations.delivery.model import HourlyWindow
from frontdesk.invitations.delivery.tables import delivery_counts, delivery_windows


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


_HELD = text(
    "SELECT count(*) FROM invitations WHERE state IN ('claimed', 'offered') AND delivery = 'batched' "
    "AND account_id = :account_id"
)


def count_held(tx: Tx, account_id: int) -> int:
    """The account's batched invitations that workers hold."""
    return int(tx.execute(_HELD, {"account_id": account_id}).scalar_one())


_USED = text(
    f"SELECT ({_HELD.text}) + (SELECT coalesce(sum(sent), 0) FROM delivery_counts "  # noqa: S608
    "WHERE account_id = :account_id AND slice >= :since_slice)"
)


def count_used(tx: Tx, account_id: int, *, since_slice: int) -> int:
    """The places taken: invitations that workers hold, and those that were counted into the slices."""
    return int(tx.execute(_USED, {"account_id": account_id, "since_slice": since_slice}).scalar_one())


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
    """Save the windows' time, add sent messages to their slices, and delete slices older than every window.

    The keys of a row: at least `_COUNTED`.
    """
    payload = (as_json(rows),)
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql(_COUNT_POSTGRESQL, payload)
        return
    tx.exec_driver_sql(f"{_MEASURED} FROM {_COUNTED_SQLITE} WHERE w.account_id = r.account_id", payload)
    tx.exec_driver_sql(_ADDED.format(rows=_COUNTED_SQLITE), payload)
    tx.exec_driver_sql(_FORGOTTEN, [(row["account_id"], row["oldest"]) for row in rows])
