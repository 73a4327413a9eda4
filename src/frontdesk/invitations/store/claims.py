"""The SQL of claims and of the changes of state that follow them: one statement each for a whole batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, text

from frontdesk.db import Tx, sets
from frontdesk.db.schema import UtcTime
from frontdesk.db.sets import Row
from frontdesk.invitations import model
from frontdesk.invitations.tables import LAPSES, invitations

# The accounts and plans with pending invitations, by hopping from one to the next in the index: the
# cost grows with their number and not with that of the invitations. Each hop asks for the index's
# whole order. By min() it could be planned, with statistics, on the index of states, which reads
# every pending batched invitation where no immediate one waits.
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
        (SELECT state <> 'active' FROM accounts WHERE id = a.account_id) AS suspended,
        (SELECT immediate_hourly_limit FROM accounts WHERE id = a.account_id) AS immediate_limit
    FROM l AS a WHERE plan_id IS NOT NULL
    """  # noqa: S608 - constants only
).columns(first_due_at=UtcTime)


def find_lanes(tx: Tx) -> list[model.Lane]:
    """One per delivery, account and plan with pending invitations."""
    return [
        model.Lane._make(
            (model.Delivery(delivery), *place, bool(accepts), bool(enabled), bool(suspended), limit)
        )
        for delivery, *place, accepts, enabled, suspended, limit in tx.execute(_LANES)
    ]


_CLAIMED_COLUMNS = ", ".join(model.ClaimedInvitation._fields)
_INTO_TIMELINE = (
    "INSERT INTO invitation_events (invitation_id, at, from_state, to_state, reason, code, actor)"
)
_PENDING_DUE = (
    "SELECT id FROM invitations WHERE state = 'pending' AND delivery = :delivery "
    "AND account_id = :account_id AND plan_id = :plan_id AND due_at <= :now ORDER BY due_at, id LIMIT :count"
)
_CLAIM = f"""
    UPDATE invitations SET state = 'claimed', epoch = epoch + 1, due_at = :lease_until,
        updated_at = :now, reason = 'claimed', message_id = coalesce(message_id, {{fresh}} || :domain)
    WHERE id {{among}} RETURNING {_CLAIMED_COLUMNS}, updated_at
"""  # noqa: S608 - constants only
_CLAIM_EVENTS = (
    f"{_INTO_TIMELINE} SELECT id, updated_at, 'pending', 'claimed', 'claimed', "
    "CAST(NULL AS integer), CAST(NULL AS text)"
)
# Workers that claim at the same time skip each other's rows.
_CLAIMED_POSTGRESQL = _CLAIM.format(
    among=f"= ANY(ARRAY({_PENDING_DUE} FOR UPDATE SKIP LOCKED))",
    fresh="replace(gen_random_uuid()::text, '-', '')",
)
_CLAIM_POSTGRESQL = text(
    f"WITH claimed AS ({_CLAIMED_POSTGRESQL}), "  # noqa: S608 - constants only
    f"noted AS ({_CLAIM_EVENTS} FROM claimed) SELECT {_CLAIMED_COLUMNS} FROM claimed"
).columns(mailbox_at=UtcTime)
_CLAIM_SQLITE = text(
    _CLAIM.format(among=f"IN ({_PENDING_DUE})", fresh="lower(hex(randomblob(16)))")
).columns(mailbox_at=UtcTime)
_CLAIM_EVENTS_SQLITE = (
    f"{_CLAIM_EVENTS} FROM invitations WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants only
)


def claim_pending(tx: Tx, **wanted: Any) -> list[model.ClaimedInvitation]:
    """Claim the `count` invitations of a lane that are due longest, with their timeline.

    The other parameters: account_id, plan_id, delivery, domain, and the times `now` and
    `lease_until`.
    """
    if tx.dialect.name != "sqlite":
        return [model.ClaimedInvitation._make(row) for row in tx.execute(_CLAIM_POSTGRESQL, wanted)]
    claimed = [model.ClaimedInvitation._make(row[:-1]) for row in tx.execute(_CLAIM_SQLITE, wanted)]
    tx.exec_driver_sql(
        _CLAIM_EVENTS_SQLITE, (sets.as_json([invitation.id for invitation in claimed]),)
    )
    return claimed


_COLUMNS = invitations.c
_LAPSED = (
    select(invitations)
    .where(LAPSES, _COLUMNS.due_at <= bindparam("now"))
    .order_by(_COLUMNS.due_at)
    .limit(bindparam("count"))
    .with_for_update(skip_locked=True)
)


def lock_lapsed(tx: Tx, now: datetime, count: int) -> list[model.Invitation]:
    """Invitations with a lease or hold that has run out, the longest ago first; without those that
    another worker has locked.
    """
    return [
        model.Invitation._make(row) for row in tx.execute(_LAPSED, {"now": now, "count": count})
    ]


def has_lapsed(tx: Tx, now: datetime) -> bool:
    """Whether the lease or the hold of any invitation has run out."""
    query = select(invitations.c.id).where(LAPSES, invitations.c.due_at <= now).limit(1)
    return tx.execute(query).first() is not None


_CHANGE = (
    "key bigint, epoch integer, message_id text, from_state text, state text, reason text, "
    "due_at timestamptz, code integer, attempts integer, losses integer, words text, actor text, "
    "updated_at timestamptz"
)
_VALUES = ", ".join(
    f"value->>'{name}' AS {name}" for name, _ in map(str.split, _CHANGE.split(", "))
)
_ROWS_SQLITE = f"(SELECT {_VALUES} FROM json_each(?)) AS r"  # noqa: S608 - constants only
_ROWS_POSTGRESQL = f"json_to_recordset(%s::json) AS r({_CHANGE})"
# `i` is the invitation, `r` its change.
_IS_CURRENT = "i.epoch = r.epoch AND i.state = r.from_state"
_CHANGED = f"""
    UPDATE invitations AS i SET {{of_claim}}state = r.state, due_at = r.due_at,
        attempts = coalesce(r.attempts, i.attempts), losses = coalesce(r.losses, i.losses),
        offered_at = CASE r.state WHEN 'offered' THEN r.updated_at ELSE i.offered_at END,
        settled_at = CASE WHEN r.state IN ('sent', 'failed', 'cancelled') THEN r.updated_at END,
        reason = r.reason, relay_code = r.code, updated_at = r.updated_at,
        relay_words = CASE WHEN i.address_folded IS NOT NULL THEN r.words END
    FROM {{rows}} WHERE {{same_id}} AND {_IS_CURRENT} RETURNING id, account_id, delivery
"""  # noqa: S608 - constants only
# The relay's words can name the address, so an invitation that was erased meanwhile gets none.
# SQLite writes the index of Message-IDs again whenever an UPDATE names the column.
_OF_CLAIM = "epoch = i.epoch + 1, message_id = r.message_id, "
_STEPS = (
    " SELECT r.key, r.updated_at, r.from_state, r.state, r.reason, r.code, r.actor "
    "FROM {changes} WHERE {is_step}"
)
_EVENTS = _INTO_TIMELINE + _STEPS
_BOTH_POSTGRESQL = (
    "WITH changed AS ({changed}, r.*), events AS ({events}) "
    "SELECT id, account_id, delivery FROM changed"
)
_OLD_SQLITE = f"{_ROWS_SQLITE} CROSS JOIN invitations AS i ON i.id = r.key AND {_IS_CURRENT}"


def change_states(tx: Tx, changes: Sequence[Row], *, keeps_claim: bool) -> Sequence[Any]:
    """Change the invitations that still have the state and epoch named, with their timeline; a
    renewed lease is no step of it.

    The keys of a change: `_CHANGE`. Returns (id, account_id, delivery) of each changed one.
    """
    if not changes:
        return []
    given = (sets.as_json(changes),)
    of_claim, is_step = ("", "r.from_state <> r.state") if keeps_claim else (_OF_CLAIM, "true")
    if tx.dialect.name == "sqlite":  # the timeline first, because its condition reads the old state
        tx.exec_driver_sql(_EVENTS.format(changes=_OLD_SQLITE, is_step=is_step), given)
        sql = _CHANGED.format(of_claim=of_claim, rows=_ROWS_SQLITE, same_id="i.id = r.key")
        return tx.exec_driver_sql(sql, given).all()
    changed = _CHANGED.format(
        of_claim=of_claim, rows=_ROWS_POSTGRESQL, same_id=sets.by_key("i.id", "r.key")
    )
    events = _EVENTS.format(changes="changed AS r", is_step=is_step)
    return tx.exec_driver_sql(_BOTH_POSTGRESQL.format(changed=changed, events=events), given).all()
