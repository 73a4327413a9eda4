"""The SQL of limits in time: hourly windows, places of immediate invitations, mails of a mailbox in a day."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, bindparam, false, func, or_, select, text, update

from frontdesk.db import Tx, sets
from frontdesk.db.schema import UtcTime
from frontdesk.db.sets import SetTransaction
from frontdesk.invitations import model
from frontdesk.invitations.tables import IN_HAND, delivery_windows, invitations
from frontdesk.text import stored_time


def find_windows(
    tx: Tx,
    keys: Collection[tuple[int, model.Delivery]] | None = None,
    *,
    lock: bool = False,
    skip_locked: bool = False,
) -> list[model.HourlyWindow]:
    """The windows of these accounts and kinds of delivery (None: all), in their order, so that two
    workers can't deadlock.

    With `lock` they are locked until the transaction ends. Those that another worker has locked are
    waited for, or left out with `skip_locked`.
    """
    columns = delivery_windows.c
    query = select(*columns[model.HourlyWindow._fields]).order_by(
        columns.account_id, columns.delivery
    )
    if keys is not None:
        query = query.where(_is_one_of(keys))
    if lock:
        query = query.with_for_update(skip_locked=skip_locked)
    return [model.HourlyWindow._make(row) for row in tx.execute(query)]


def _is_one_of(keys: Collection[tuple[int, model.Delivery]]) -> ColumnElement[bool]:
    columns = delivery_windows.c
    return or_(
        false(),
        *(and_(columns.account_id == of, columns.delivery == kind) for of, kind in sorted(keys)),
    )


def make_window(tx: Tx, key: tuple[int, model.Delivery], wall_at: datetime) -> None:
    """An empty window, unless there is one."""
    account_id, delivery = key
    window = model.HourlyWindow.empty(account_id, delivery, wall_at)
    sets.insert_missing(
        tx, delivery_windows, [window._asdict() | {"wall_at": stored_time(wall_at)}]
    )


def save_windows(tx: Tx, windows: Sequence[model.HourlyWindow]) -> None:
    columns = delivery_windows.c
    is_own = and_(
        columns.account_id == bindparam("of_account"), columns.delivery == bindparam("of_delivery")
    )
    names = {"account_id": "of_account", "delivery": "of_delivery"}
    rows = [
        {names.get(name, name): value for name, value in window._asdict().items()}
        for window in windows
    ]
    tx.execute(update(delivery_windows).where(is_own), rows)


def count_held(tx: Tx, key: tuple[int, model.Delivery]) -> int:
    """The account's invitations of this kind of delivery that workers hold."""
    account_id, delivery = key
    columns = invitations.c
    query = (
        select(func.count()).select_from(invitations).where(IN_HAND, columns.delivery == delivery)
    )
    return int(tx.execute(query.where(columns.account_id == account_id)).scalar_one())


_IS_ACCOUNT = {
    "sqlite": "a.id IN (SELECT value FROM json_each(?))",
    "postgresql": "a.id = ANY(ARRAY(SELECT value::bigint FROM json_array_elements_text(%s::json)))",
}


def find_immediate_limits(tx: Tx, account_ids: Collection[int]) -> dict[int, int]:
    """How many immediate invitations each of the accounts may send in any 60 minutes."""
    sql = (
        f"SELECT id, immediate_hourly_limit FROM accounts AS a WHERE {_IS_ACCOUNT[tx.dialect.name]}"  # noqa: S608
    )
    return dict(tx.exec_driver_sql(sql, (sets.as_json(sorted(account_ids)),)).all())


_PLACES = ("account_id", "hourly_limit", "measured_us", "wall_at", "sent", "in_line")
MOST_COUNTED = 10_000  # pending invitations of one account
_PLACES_SQL = f"""
    SELECT a.id AS account_id, a.immediate_hourly_limit AS hourly_limit, w.measured_us, w.wall_at, w.sent,
        (SELECT count(*) FROM (
            SELECT 1 FROM invitations WHERE state = 'pending' AND delivery = 'immediate' AND account_id = a.id
            LIMIT {MOST_COUNTED}) AS waiting)
        + (SELECT count(*) FROM invitations
            WHERE state IN ('claimed', 'offered') AND delivery = 'immediate' AND account_id = a.id) AS in_line
    FROM accounts AS a LEFT JOIN delivery_windows AS w ON w.account_id = a.id AND w.delivery = 'immediate'
    WHERE {{is_account}}
"""  # noqa: S608 - constants only


def find_immediate_places(tx: SetTransaction, account_ids: Collection[int]) -> sets.Found:
    """Of each account its limit, its window, and the immediate invitations that wait or that
    workers hold: a set read.
    """
    sql = _PLACES_SQL.format(is_account=_IS_ACCOUNT[tx.dialect.name])
    return sets.read_set(tx, sql, parameters=(sets.as_json(sorted(account_ids)),), columns=_PLACES)


_MAILBOX_TIMES = """
    SELECT i.id, i.mailbox_digest, i.mailbox_at FROM {digests} AS m JOIN invitations AS i ON i.id {among}
"""
_OF_MAILBOX = (
    "SELECT id FROM invitations WHERE mailbox_digest = m.value AND mailbox_at > :since "
    "AND mailbox_at IS NOT NULL{more} ORDER BY mailbox_at DESC LIMIT :count"
)
_IS_WAITING = "(state = 'pending' AND coalesce(reason, '') = 'mailbox_limit')"
_NOT_WAITING = f" AND mailbox_at <= :until AND NOT {_IS_WAITING}"
# A CASE, into which no planner looks: without statistics PostgreSQL reads all that the account has
# pending for each mailbox.
_WAITING_OF_ACCOUNT = f" AND CASE WHEN account_id = :account_id THEN {_IS_WAITING} ELSE false END"


def find_mailbox_times(
    tx: Tx,
    digests: Collection[str],
    *,
    window: tuple[datetime, datetime],
    count: int,
    waiting_of: int | None = None,
) -> dict[str, list[tuple[datetime, int]]]:
    """By mailbox, the newest `count` moments in the window at which an invitation of any account to
    it counts, each with its id. With `waiting_of`, an account, the places after the window's start
    for which invitations of this account wait.
    """
    is_sqlite = tx.dialect.name == "sqlite"
    sql = _OF_MAILBOX.format(more=_NOT_WAITING if waiting_of is None else _WAITING_OF_ACCOUNT)
    among = f"IN ({sql})" if is_sqlite else f"= ANY(ARRAY({sql}))"
    given = (
        "json_each(:digests)" if is_sqlite else "json_array_elements_text(CAST(:digests AS json))"
    )
    query = text(_MAILBOX_TIMES.format(digests=given, among=among)).columns(mailbox_at=UtcTime)
    since, until = map(stored_time, window)
    asked = {
        "digests": sets.as_json(sorted(digests)),
        "since": since,
        "until": until,
        "count": count,
    }
    found: dict[str, list[tuple[datetime, int]]] = {}
    for id_, digest, at in tx.execute(query, asked | {"account_id": waiting_of}):
        found.setdefault(digest, []).append((at, id_))
    return found


def set_mailbox_times(tx: Tx, times: Mapping[int, datetime]) -> None:
    """The moments at which invitations count for their mailboxes, by their ids."""
    rows = [{"id": id_, "mailbox_at": stored_time(at)} for id_, at in sorted(times.items())]
    sets.update_set(tx, invitations, rows)
