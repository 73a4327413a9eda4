"""The SQL that takes invitations in hand and changes their state, each together with its step on the timeline.

One statement on PostgreSQL. On SQLite, where a writer is alone, two that see the same.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from frontdesk.db import Tx
from frontdesk.db.bulk import as_json
from frontdesk.db.sets import Row, insert_set
from frontdesk.invitations.delivery.store import CLAIMED
from frontdesk.invitations.delivery.tables import invitation_events

_INTO_TIMELINE = "INSERT INTO invitation_events (invitation_id, at, from_state, to_state, reason, code)"

# Taking in hand: the condition stands here word for word as in the index (`invitations.tables`).

_DUE = (
    "SELECT id FROM invitations WHERE state = 'pending' AND delivery = :delivery AND account_id = :account_id "
    "AND plan_id = :plan_id AND due_at <= :now ORDER BY due_at, id LIMIT :count"
)
_TAKE = f"""
    UPDATE invitations SET state = 'claimed', epoch = epoch + 1, due_at = :lease_until, updated_at = :now,
        reason = 'claimed', message_id = coalesce(message_id, {{fresh}} || :domain)
    WHERE id {{among}} RETURNING {CLAIMED}, updated_at
"""  # noqa: S608 - constants only
_IS_TAKEN = f"{_INTO_TIMELINE} SELECT id, updated_at, 'pending', 'claimed', 'claimed', CAST(NULL AS integer)"

# Whoever else is claiming takes others.
_TAKEN_POSTGRESQL = _TAKE.format(
    among=f"= ANY(ARRAY({_DUE} FOR UPDATE SKIP LOCKED))", fresh="replace(gen_random_uuid()::text, '-', '')"
)
_TAKE_POSTGRESQL = text(
    f"WITH taken AS ({_TAKEN_POSTGRESQL}), noted AS ({_IS_TAKEN} FROM taken) SELECT {CLAIMED} FROM taken"  # noqa: S608
)
_TAKE_SQLITE = text(_TAKE.format(among=f"IN ({_DUE})", fresh="lower(hex(randomblob(16)))"))
_NOTE_SQLITE = f"{_IS_TAKEN} FROM invitations WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608


def take(tx: Tx, **wanted: Any) -> Sequence[Any]:
    """Claim the `count` invitations of a lane that are due longest, with their timeline; rows of CLAIMED."""
    if tx.dialect.name != "sqlite":
        return tx.execute(_TAKE_POSTGRESQL, wanted).all()
    rows = tx.execute(_TAKE_SQLITE, wanted).all()
    tx.exec_driver_sql(_NOTE_SQLITE, (as_json([row.id for row in rows]),))
    return rows


# Changing: what a change carries for all of its invitations, with the types on PostgreSQL.
_CARRIED = {
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
# `i` is the invitation, `r` what becomes of it.
_STILL = "i.id = r.id AND i.epoch = r.epoch AND i.state = r.from_state"
_BECOMES = """
    UPDATE invitations AS i SET state = r.state, epoch = i.epoch + r.closes, due_at = r.due_at,
        attempts = coalesce(r.attempts, i.attempts), losses = coalesce(r.losses, i.losses),
        offered_at = coalesce(r.offered_at, i.offered_at), settled_at = r.settled_at,
        reason = r.reason, relay_code = r.relay_code, updated_at = r.updated_at
"""

# The ids stand in an array, so that the rows are reached by them, whatever the planner thinks of the states.
_CHANGED_POSTGRESQL = f"""
    WITH c AS (
        SELECT * FROM json_to_recordset(%s::json) AS c({", ".join(f"{name} {kind}" for name, kind in _CARRIED.items())})
    ), r AS (
        SELECT * FROM json_to_recordset(%s::json) AS o(id bigint, epoch integer, change integer) JOIN c USING (change)
    ), changed AS (
        {_BECOMES} FROM r WHERE i.id = ANY(ARRAY(SELECT id FROM r)) AND {_STILL}
        RETURNING i.id, i.account_id, i.delivery, i.updated_at, r.from_state, i.state, i.reason, i.relay_code
    ), noted AS (
        {_INTO_TIMELINE} SELECT id, updated_at, from_state, state, reason, relay_code FROM changed WHERE %s::boolean
    )
    SELECT id, account_id, delivery FROM changed
"""  # noqa: S608

_ROWS_SQLITE = f"""
    (SELECT o.value->>'id' AS id, o.value->>'epoch' AS epoch,
        {", ".join(f"c.value->>'{name}' AS {name}" for name in _CARRIED)}
    FROM json_each(?) AS c JOIN json_each(?) AS o ON o.value->>'change' = c.key) AS r
"""  # noqa: S608
_CHANGED_SQLITE = f"{_BECOMES} FROM {_ROWS_SQLITE} WHERE {_STILL} RETURNING id, account_id, delivery"
_NOTED_SQLITE = f"""
    {_INTO_TIMELINE} SELECT r.id, r.updated_at, r.from_state, r.state, r.reason, r.relay_code
    FROM {_ROWS_SQLITE} CROSS JOIN invitations AS i ON {_STILL}
"""  # noqa: S608


def change(tx: Tx, changes: Sequence[Row], ones: Sequence[Row], *, is_step: bool) -> Sequence[Any]:
    """Change those that are still in the state and epoch named, with their timeline if it is a step of it.

    `ones` (id, epoch, change) name their change by its number. Answers (id, account_id, delivery) of each that was changed.
    """
    if not ones:
        return []
    given = (as_json(changes), as_json(ones))
    if tx.dialect.name != "sqlite":
        return tx.exec_driver_sql(_CHANGED_POSTGRESQL, (*given, is_step)).all()
    if is_step:  # noted before the change, which the condition is about
        tx.exec_driver_sql(_NOTED_SQLITE, given)
    return tx.exec_driver_sql(_CHANGED_SQLITE, given).all()


def insert_events(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, invitation_events, rows)
