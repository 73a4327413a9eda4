"""The SQL of the delivery protocol: what can be claimed, what lapsed, and each change of state with its step on the timeline.

A change is one statement on PostgreSQL, and two on SQLite, which has a single writer. The conditions of the partial indexes
stand here word for word as in `invitations.tables`: SQLite compares the text.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select, text

from frontdesk.db import Tx
from frontdesk.db.sets import Row, as_json, by_key
from frontdesk.invitations.delivery.model import Lane
from frontdesk.invitations.model import ClaimedInvitation, Delivery, Invitation
from frontdesk.invitations.tables import LAPSES, invitations

# The accounts and plans with pending invitations, by hopping from one to the next in the index: the cost grows with their
# number and not with that of the invitations. Each hop asks for the index's whole order. By min() it could be planned, with
# statistics, on the index of states, which reads every pending batched invitation where no immediate one waits.
_WAITING = "FROM invitations WHERE state = 'pending' AND delivery = a.delivery"
_OF_ACCOUNT = f"{_WAITING} AND account_id = a.account_id"
_BY_ACCOUNT = "ORDER BY account_id, plan_id, due_at, id LIMIT 1"
_BY_PLAN = "ORDER BY plan_id, due_at, id LIMIT 1"
_LANES = text(
    f"""
    WITH RECURSIVE a(delivery, account_id) AS (
        SELECT delivery, (SELECT account_id {_WAITING} {_BY_ACCOUNT})
        FROM (SELECT 'immediate' AS delivery UNION ALL SELECT 'batched') AS a
        UNION ALL
        SELECT delivery, (SELECT account_id {_WAITING} AND account_id > a.account_id {_BY_ACCOUNT})
        FROM a WHERE account_id IS NOT NULL
    ), l(delivery, account_id, plan_id) AS (
        SELECT delivery, account_id, (SELECT plan_id {_OF_ACCOUNT} {_BY_PLAN})
        FROM a WHERE account_id IS NOT NULL
        UNION ALL
        SELECT delivery, account_id, (SELECT plan_id {_OF_ACCOUNT} AND plan_id > a.plan_id {_BY_PLAN})
        FROM l AS a WHERE plan_id IS NOT NULL
    )
    SELECT delivery, account_id, plan_id,
        (SELECT due_at {_OF_ACCOUNT} AND plan_id = a.plan_id ORDER BY due_at, id LIMIT 1) AS first_due_at,
        (SELECT accepting_patients FROM plans WHERE id = a.plan_id) AS accepting,
        (SELECT enabled FROM deliverability d WHERE d.account_id = a.account_id) AS enabled,
        (SELECT state <> 'active' FROM accounts WHERE id = a.account_id) AS suspended
    FROM l AS a WHERE plan_id IS NOT NULL
    """  # noqa: S608 - constants only
)


def find_lanes(tx: Tx) -> list[Lane]:
    """One per delivery, account and plan with pending invitations."""
    return [
        Lane(Delivery(delivery), account_id, plan_id, as_time(first_due_at), *map(bool, flags))
        for delivery, account_id, plan_id, first_due_at, *flags in tx.execute(_LANES)
    ]


def as_time(value: datetime | str) -> datetime:
    """The time in a column that raw SQL read: SQLite gives it as text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


_CLAIMED_COLUMNS = ", ".join(ClaimedInvitation._fields)
_INTO_TIMELINE = "INSERT INTO invitation_events (invitation_id, at, from_state, to_state, reason, code)"

_PENDING_DUE = (
    "SELECT id FROM invitations WHERE state = 'pending' AND delivery = :delivery AND account_id = :account_id "
    "AND plan_id = :plan_id AND due_at <= :now ORDER BY due_at, id LIMIT :count"
)
_CLAIM = f"""
    UPDATE invitations SET state = 'claimed', epoch = epoch + 1, due_at = :lease_until, updated_at = :now,
        reason = 'claimed', message_id = coalesce(message_id, {{fresh}} || :domain)
    WHERE id {{among}} RETURNING {_CLAIMED_COLUMNS}, updated_at
"""  # noqa: S608 - constants only
_CLAIM_EVENTS = (
    f"{_INTO_TIMELINE} SELECT id, updated_at, 'pending', 'claimed', 'claimed', CAST(NULL AS integer)"
)

# Workers that claim at the same time skip each other's rows.
_CLAIMED_POSTGRESQL = _CLAIM.format(
    among=f"= ANY(ARRAY({_PENDING_DUE} FOR UPDATE SKIP LOCKED))",
    fresh="replace(gen_random_uuid()::text, '-', '')",
)
_CLAIM_POSTGRESQL = text(
    f"WITH claimed AS ({_CLAIMED_POSTGRESQL}), noted AS ({_CLAIM_EVENTS} FROM claimed) SELECT {_CLAIMED_COLUMNS} FROM claimed"  # noqa: S608 - constants only
)
_CLAIM_SQLITE = text(_CLAIM.format(among=f"IN ({_PENDING_DUE})", fresh="lower(hex(randomblob(16)))"))
_CLAIM_EVENTS_SQLITE = f"{_CLAIM_EVENTS} FROM invitations WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants only


def claim_pending(tx: Tx, **wanted: Any) -> list[ClaimedInvitation]:
    """Claim the `count` invitations of a lane that are due longest, with their timeline.

    The other parameters: account_id, plan_id, delivery, domain, and the times `now` and `lease_until`.
    """
    if tx.dialect.name != "sqlite":
        return [ClaimedInvitation._make(row) for row in tx.execute(_CLAIM_POSTGRESQL, wanted)]
    claimed = [ClaimedInvitation._make(row[:-1]) for row in tx.execute(_CLAIM_SQLITE, wanted)]
    tx.exec_driver_sql(_CLAIM_EVENTS_SQLITE, (as_json([invitation.id for invitation in claimed]),))
    return claimed


def lock_lapsed(tx: Tx, now: datetime, count: int) -> list[Invitation]:
    """Invitations with a lease or hold that has run out, the longest ago first; without those that another worker has locked."""
    query = select(invitations).where(LAPSES, invitations.c.due_at <= now).order_by(invitations.c.due_at)
    return [Invitation._make(row) for row in tx.execute(query.limit(count).with_for_update(skip_locked=True))]


def has_lapsed(tx: Tx, now: datetime) -> bool:
    """Whether the lease or the hold of any invitation has run out."""
    query = select(invitations.c.id).where(LAPSES, invitations.c.due_at <= now).limit(1)
    return tx.execute(query).first() is not None


# What a change carries for all of its invitations, with the types on PostgreSQL.
_CHANGE_COLUMNS = {
    "change": "integer",
    "from_state": "text",
    "state": "text",
    "reason": "text",
    "due_at": "timestamptz",
    "code": "integer",
    "closes": "integer",
    "attempts": "integer",
    "losses": "integer",
    "updated_at": "timestamptz",
}
# `i` is the invitation, `r` its change.
_IS_UNCHANGED = "i.epoch = r.epoch AND i.state = r.from_state"
_BECOMES = """
    UPDATE invitations AS i SET state = r.state, epoch = i.epoch + r.closes, due_at = r.due_at,
        attempts = coalesce(r.attempts, i.attempts), losses = coalesce(r.losses, i.losses),
        offered_at = CASE r.state WHEN 'offered' THEN r.updated_at ELSE i.offered_at END,
        settled_at = CASE WHEN r.state IN ('sent', 'failed', 'cancelled') THEN r.updated_at END,
        reason = r.reason, relay_code = r.code, updated_at = r.updated_at
"""

_CHANGED_POSTGRESQL = f"""
    WITH c AS (
        SELECT * FROM json_to_recordset(%s::json) AS c({", ".join(f"{name} {kind}" for name, kind in _CHANGE_COLUMNS.items())})
    ), r AS (
        SELECT * FROM json_to_recordset(%s::json) AS o(id bigint, epoch integer, change integer) JOIN c USING (change)
    ), changed AS (
        {_BECOMES} FROM r WHERE {by_key("i.id", "r.id")} AND {_IS_UNCHANGED}
        RETURNING i.id, i.account_id, i.delivery, i.updated_at, r.from_state, i.state, i.reason, i.relay_code
    ), events AS (
        {_INTO_TIMELINE} SELECT id, updated_at, from_state, state, reason, relay_code FROM changed WHERE %s::boolean
    )
    SELECT id, account_id, delivery FROM changed
"""  # noqa: S608 - constants only

_ROWS_SQLITE = f"""
    (SELECT o.value->>'id' AS id, o.value->>'epoch' AS epoch,
        {", ".join(f"c.value->>'{name}' AS {name}" for name in _CHANGE_COLUMNS)}
    FROM json_each(?) AS c JOIN json_each(?) AS o ON o.value->>'change' = c.key) AS r
"""  # noqa: S608 - constants only
_CHANGED_SQLITE = (
    f"{_BECOMES} FROM {_ROWS_SQLITE} WHERE i.id = r.id AND {_IS_UNCHANGED} RETURNING id, account_id, delivery"
)
_EVENTS_SQLITE = f"""
    {_INTO_TIMELINE} SELECT r.id, r.updated_at, r.from_state, r.state, r.reason, r.code
    FROM {_ROWS_SQLITE} CROSS JOIN invitations AS i ON i.id = r.id AND {_IS_UNCHANGED}
"""  # noqa: S608 - constants only


def change_states(tx: Tx, changes: Sequence[Row], versions: Sequence[Row], *, is_step: bool) -> Sequence[Any]:
    """Change the invitations that still have the state and epoch named, with their timeline if `is_step`.

    `versions` (id, epoch, change) name their change by its number. Returns (id, account_id, delivery) of each changed one.
    """
    if not versions:
        return []
    given = (as_json(changes), as_json(versions))
    if tx.dialect.name != "sqlite":
        return tx.exec_driver_sql(_CHANGED_POSTGRESQL, (*given, is_step)).all()
    if is_step:  # before the change, because the condition reads the old state
        tx.exec_driver_sql(_EVENTS_SQLITE, given)
    return tx.exec_driver_sql(_CHANGED_SQLITE, given).all()
