"""The SQL of invitations: settings, what is enqueued, links, senders, templates, delivery reports, suppressed addresses."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, delete, func, insert, or_, select, text, update

from frontdesk.db import Tx, sets
from frontdesk.db.schema import UtcTime
from frontdesk.db.sets import Row, SameKey, SetTransaction
from frontdesk.errors import NotFound
from frontdesk.invitations import model
from frontdesk.invitations.tables import (
    BOUNCED,
    IN_HAND,
    IS_PENDING,
    LAPSES,
    OFFERED,
    deliverability,
    delivery_home,
    delivery_reports,
    delivery_windows,
    invitation_events,
    invitation_links,
    invitation_templates,
    invitations,
    suppressions,
    worker_status,
)
from frontdesk.plans.tables import plans
from frontdesk.text import fold_email, keyed_hash, stored_time


def get_deliverability(tx: Tx, account_id: int) -> model.DeliverabilitySettings:
    """The account's settings; the defaults (off) where none were ever set."""
    row = tx.execute(select(deliverability).where(deliverability.c.account_id == account_id)).first()
    return model.DeliverabilitySettings(*row) if row else model.DeliverabilitySettings(account_id)


def set_deliverability(tx: Tx, account_id: int, **changes: object) -> model.DeliverabilitySettings:
    """Change the settings named in `changes`, keep the others."""
    settings = replace(get_deliverability(tx, account_id), **changes)  # type: ignore[arg-type]
    tx.execute(delete(deliverability).where(deliverability.c.account_id == account_id))
    tx.execute(insert(deliverability).values(asdict(settings)))
    return settings


def find_suppressed(
    tx: SetTransaction, addresses: Collection[str]
) -> Callable[[], set[tuple[int | None, str]]]:
    """Which of the folded addresses must not be mailed, each with the account that mailed it; of an erased member the list has a
    hash. Returns a function that gives them once the round trip has ended."""
    hashed = _hashing(tx)
    asked = {hashed(address): address for address in addresses} | {each: each for each in addresses}
    found = sets.find_set(tx, suppressions, "address_folded", asked, columns=("address_folded", "account_id"))
    return lambda: {(row["account_id"], asked[row["address_folded"]]) for row in found.rows}


def hash_suppressions(tx: Tx, addresses: Collection[str]) -> int:
    """Keep only keyed hashes of those of the folded addresses that are suppressed; how many there were."""
    hashed, column = _hashing(tx), suppressions.c.address_folded
    plain = tx.execute(select(column).where(column.in_(sorted(addresses)))).scalars().all()
    for address in plain:
        # Its hash is on the list already when the address was suppressed again after an erasure.
        tx.execute(delete(suppressions).where(column == hashed(address)))
        tx.execute(update(suppressions).where(column == address).values(address_folded=hashed(address)))
    return len(plain)


def _hashing(tx: SetTransaction) -> Callable[[str], str]:
    """Gives the keyed hash of an address. No address looks like a hash, which has no `@`."""
    hasher = sets.keyed_hasher(tx, size=32, person=b"suppression")
    return lambda address: "#" + keyed_hash(address, hasher)


def list_invitations(
    tx: Tx, *, account_id: int | None, state: model.InvitationState | None, limit: int
) -> list[model.Invitation]:
    """The newest `limit` invitations of the account and in the state (None: any), newest first."""
    query = select(invitations).order_by(invitations.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(invitations.c.account_id == account_id)
    if state is not None:
        query = query.where(invitations.c.state == state)
    return [model.Invitation._make(row) for row in tx.execute(query)]


def find_link_target(tx: Tx, purpose: model.LinkPurpose, token_hash: str) -> model.LinkTarget | None:
    query = (
        select(*invitations.c["id", "account_id", "address"], plans.c.name, deliverability.c.registration_url)
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .join(plans, SameKey(plans.c.id, invitations.c.plan_id))
        .outerjoin(deliverability, SameKey(deliverability.c.account_id, invitations.c.account_id))
        .where(invitation_links.c[f"{purpose}_hash"] == token_hash)
    )
    row = tx.execute(query).first()
    return model.LinkTarget._make(row) if row else None


def lock_by_message_id(tx: Tx, message_id: str) -> model.Invitation | None:
    """The invitation of the message that has, or ever had, this Message-ID; locked against its worker and other reports."""
    query = (
        select(invitations)
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .where(invitation_links.c.message_id == message_id)
        .limit(1)
        .with_for_update(of=invitations, key_share=True)
    )
    row = tx.execute(query).first()
    return model.Invitation._make(row) if row else None


_TEMPLATE = invitation_templates.c["subject", "text", "html"]
_SENDERS = (  # made once: to make a statement takes longer than to send it
    select(plans.c.id, *_TEMPLATE, plans.c.name, *deliverability.c[model.SenderProfile._fields[1:4]])
    .outerjoin(deliverability, SameKey(deliverability.c.account_id, plans.c.account_id))
    .outerjoin(invitation_templates, SameKey(invitation_templates.c.account_id, plans.c.account_id))
    .where(plans.c.id.in_(bindparam("plan_ids", expanding=True)))
)


def find_senders(tx: Tx, plan_ids: Collection[int]) -> dict[int, model.SenderProfile]:
    """The plans' names with their accounts' senders and templates, by plan id."""
    rows = tx.execute(_SENDERS, {"plan_ids": sorted(plan_ids)})
    return {row[0]: model.SenderProfile._make((*row[4:], model.MessageTemplate(*row[1:4]))) for row in rows}


def get_template(tx: Tx, account_id: int) -> model.MessageTemplate:
    """The account's own templates; all None where it has set none."""
    row = tx.execute(select(*_TEMPLATE).where(invitation_templates.c.account_id == account_id)).first()
    return model.MessageTemplate(*row) if row else model.MessageTemplate()


def save_template(tx: Tx, account_id: int, template: model.MessageTemplate, *, now: datetime) -> None:
    """Keep the account's own templates; nothing is kept when it has none."""
    tx.execute(delete(invitation_templates).where(invitation_templates.c.account_id == account_id))
    if template != model.MessageTemplate():
        row = asdict(template) | {"account_id": account_id, "updated_at": now}
        tx.execute(insert(invitation_templates).values(row))


def insert_report(tx: Tx, report: model.DeliveryReport, *, invitation_id: int, now: datetime) -> bool:
    """False if a report of this kind about the message is stored already."""
    if any(known.event is report.event for known in find_reports(tx, [report.message_id])):
        return False
    row = (report.message_id, report.event, invitation_id, report.status, now)
    tx.execute(insert(delivery_reports).values(row))
    return True


def find_reports(tx: Tx, message_ids: Collection[str]) -> list[model.DeliveryReport]:
    """The stored reports about the messages; each without `permanent`, which is not stored."""
    columns = ("message_id", "kind", "status")
    rows = sets.find_set(tx, delivery_reports, "message_id", message_ids, columns=columns).rows
    return [
        model.DeliveryReport(row["message_id"], model.ReportEvent(row["kind"]), row["status"]) for row in rows
    ]


def suppress(
    tx: Tx, address: str, reason: model.SuppressionReason, *, now: datetime, account_id: int | None = None
) -> bool:
    """Suppress the address in any spelling. False if it was on the list; its first reason stays.

    `account_id` is the account that mailed the address: only this account is told when it names the address again.
    """
    folded = fold_email(address)
    if find_suppressed(tx, {folded})():
        return False
    row = {"address_folded": folded, "reason": reason, "created_at": now, "account_id": account_id}
    tx.execute(insert(suppressions).values(row))
    return True


def unsuppress(tx: Tx, address: str) -> bool:
    """Take the address off the list. False if it was not on it."""
    folded, column = fold_email(address), suppressions.c.address_folded
    stored = (folded, _hashing(tx)(folded))
    return tx.execute(delete(suppressions).where(column.in_(stored))).rowcount > 0


def list_suppressions(tx: Tx, *, limit: int, address: str | None = None) -> list[Any]:
    """The first `limit` (`address`, `reason`, `created_at`), in the order of the addresses; of one folded address, or of all."""
    columns = suppressions.c
    query = select(columns.address_folded.label("address"), columns.reason, columns.created_at)
    if address is not None:
        query = query.where(columns.address_folded.in_((address, _hashing(tx)(address))))
    return list(tx.execute(query.order_by(columns.address_folded).limit(limit)))


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
).columns(first_due_at=UtcTime)


def find_lanes(tx: Tx) -> list[model.Lane]:
    """One per delivery, account and plan with pending invitations."""
    return [
        model.Lane(model.Delivery(delivery), account_id, plan_id, first_due_at, *map(bool, flags))
        for delivery, account_id, plan_id, first_due_at, *flags in tx.execute(_LANES)
    ]


_CLAIMED_COLUMNS = ", ".join(model.ClaimedInvitation._fields)
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


def claim_pending(tx: Tx, **wanted: Any) -> list[model.ClaimedInvitation]:
    """Claim the `count` invitations of a lane that are due longest, with their timeline.

    The other parameters: account_id, plan_id, delivery, domain, and the times `now` and `lease_until`.
    """
    if tx.dialect.name != "sqlite":
        return [model.ClaimedInvitation._make(row) for row in tx.execute(_CLAIM_POSTGRESQL, wanted)]
    claimed = [model.ClaimedInvitation._make(row[:-1]) for row in tx.execute(_CLAIM_SQLITE, wanted)]
    tx.exec_driver_sql(_CLAIM_EVENTS_SQLITE, (sets.as_json([invitation.id for invitation in claimed]),))
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
    """Invitations with a lease or hold that has run out, the longest ago first; without those that another worker has locked."""
    return [model.Invitation._make(row) for row in tx.execute(_LAPSED, {"now": now, "count": count})]


def has_lapsed(tx: Tx, now: datetime) -> bool:
    """Whether the lease or the hold of any invitation has run out."""
    query = select(invitations.c.id).where(LAPSES, invitations.c.due_at <= now).limit(1)
    return tx.execute(query).first() is not None


_CHANGE = (
    "key bigint, epoch integer, message_id text, from_state text, state text, reason text, due_at timestamptz, "
    "code integer, attempts integer, losses integer, words text, updated_at timestamptz"
)
_VALUES = ", ".join(f"value->>'{name}' AS {name}" for name, _ in map(str.split, _CHANGE.split(", ")))
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
_STEPS = " SELECT r.key, r.updated_at, r.from_state, r.state, r.reason, r.code FROM {changes} WHERE {is_step}"
_EVENTS = _INTO_TIMELINE + _STEPS
_BOTH_POSTGRESQL = (
    "WITH changed AS ({changed}, r.*), events AS ({events}) SELECT id, account_id, delivery FROM changed"
)
_OLD_SQLITE = f"{_ROWS_SQLITE} CROSS JOIN invitations AS i ON i.id = r.key AND {_IS_CURRENT}"


def change_states(tx: Tx, changes: Sequence[Row], *, keeps_claim: bool) -> Sequence[Any]:
    """Change the invitations that still have the state and epoch named, with their timeline; a renewed lease is no step of it.

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
    changed = _CHANGED.format(of_claim=of_claim, rows=_ROWS_POSTGRESQL, same_id=sets.by_key("i.id", "r.key"))
    events = _EVENTS.format(changes="changed AS r", is_step=is_step)
    return tx.exec_driver_sql(_BOTH_POSTGRESQL.format(changed=changed, events=events), given).all()


def find_windows(
    tx: Tx, account_ids: Collection[int] | None = None, *, lock: bool = False, skip_locked: bool = False
) -> list[model.HourlyWindow]:
    """The accounts' windows (None: all), in the order of the accounts, so that two workers can't deadlock.

    With `lock` they are locked until the transaction ends. Those that another worker has locked are waited for, or left out
    with `skip_locked`.
    """
    query = select(delivery_windows).order_by(delivery_windows.c.account_id)
    if account_ids is not None:
        query = query.where(delivery_windows.c.account_id.in_(account_ids))
    if lock:
        query = query.with_for_update(skip_locked=skip_locked)
    return [model.HourlyWindow._make(row) for row in tx.execute(query)]


def make_window(tx: Tx, account_id: int, wall_at: datetime) -> None:
    """An empty window, unless there is one."""
    window = model.HourlyWindow(account_id, 0, 0, wall_at, None, 0, [])
    sets.insert_missing(tx, delivery_windows, [window._asdict() | {"wall_at": stored_time(wall_at)}])


def save_windows(tx: Tx, windows: Sequence[model.HourlyWindow]) -> None:
    query = update(delivery_windows).where(delivery_windows.c.account_id == bindparam("key"))
    tx.execute(query, [window._asdict() | {"key": window.account_id} for window in windows])


def count_held(tx: Tx, account_id: int) -> int:
    """The account's batched invitations that workers hold."""
    query = select(func.count()).select_from(invitations).where(IN_HAND)
    return int(tx.execute(query.where(invitations.c.account_id == account_id)).scalar_one())


def find_invitation(tx: Tx, invitation_id: int, *, lock: bool = False) -> model.Invitation:
    """Raises NotFound. With `lock` no other transaction changes the invitation until this one ends."""
    query = select(invitations).where(invitations.c.id == invitation_id)
    row = tx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFound("invitation")
    return model.Invitation._make(row)


def find_of_members(tx: Tx, member_ids: Collection[int]) -> list[model.Invitation]:
    """The invitations of the members."""
    query = select(invitations).where(invitations.c.member_id.in_(member_ids))
    return [model.Invitation._make(row) for row in tx.execute(query)]


def find_states(tx: Tx, member_ids: Collection[int]) -> dict[int, model.InvitationChange]:
    """The last change of each member's invitation, by member id."""
    columns = ("member_id", *model.InvitationChange._fields)
    rows = sets.find_set(tx, invitations, "member_id", member_ids, columns=columns).rows
    for row in rows:
        if isinstance(row["updated_at"], str):  # SQLite keeps times as text
            row["updated_at"] = datetime.fromisoformat(row["updated_at"])
        row["state"] = model.InvitationState(row["state"])
        row["reason"] = row["reason"] and model.InvitationStep(row["reason"])
    return {row.pop("member_id"): model.InvitationChange(**row) for row in rows}


def find_events(tx: Tx, invitation_id: int) -> list[model.InvitationEvent]:
    columns = invitation_events.c
    query = select(*columns[model.InvitationEvent._fields]).where(columns.invitation_id == invitation_id)
    rows = tx.execute(query.order_by(columns.id))
    return [model.InvitationEvent._make(row) for row in rows]


def insert_event(tx: Tx, invitation_id: int, event: model.InvitationEvent) -> None:
    tx.execute(insert(invitation_events).values(invitation_id=invitation_id, **event._asdict()))


def find_unsettled(tx: Tx, *, after: int, count: int) -> list[model.Invitation]:
    """Invitations that would be sent or held by themselves, in the order of their ids, from the one after `after`."""
    query = select(invitations).where(or_(IS_PENDING, LAPSES), invitations.c.id > after)
    return [model.Invitation._make(row) for row in tx.execute(query.order_by(invitations.c.id).limit(count))]


def is_queued(tx: Tx, address_folded: str) -> bool:
    """Whether any invitation to the address is pending, claimed or offered. Reads all of these, by the index of states: an index
    of their addresses would cost each new member."""
    return _has_invitation(tx, address_folded, invitations.c.state.in_(model.IN_LINE))


def was_offered(tx: Tx, address_folded: str, *, since: datetime) -> bool:
    """Whether an invitation to the address, of any account, was offered to the relay after `since`."""
    return _has_invitation(tx, address_folded, and_(OFFERED, invitations.c.offered_at > since))


def _has_invitation(tx: Tx, address_folded: str, condition: ColumnElement[bool]) -> bool:
    query = select(invitations.c.id).where(condition, invitations.c.address_folded == address_folded).limit(1)
    return tx.execute(query).first() is not None


def count_pending(
    tx: Tx, account_id: int, delivery: model.Delivery, *, now: datetime
) -> tuple[list[tuple[float, int]], int]:
    """In how many seconds how many of the account's pending invitations are due; and the number of batched ones of plans that
    accept no patients, which are not among them."""
    columns = invitations.c
    # Those that are due count as one moment, so that the result is as short as the list of those that are tried again later.
    due_at = case((columns.due_at > now, columns.due_at), else_=None)
    query = (
        select(plans.c.accepting_patients, due_at, func.count())
        .join(plans, SameKey(plans.c.id, columns.plan_id))
        .where(IS_PENDING, columns.delivery == delivery, columns.account_id == account_id)
        .group_by(text("1, 2"))
    )
    found = [(accepts or delivery is model.Delivery.IMMEDIATE, *rest) for accepts, *rest in tx.execute(query)]
    due = [((at - now).total_seconds() if at else 0.0, count) for goes, at, count in found if goes]
    return due, sum(count for goes, _, count in found if not goes)


def count_by_state(tx: Tx) -> dict[str, int]:
    query = select(invitations.c.state, func.count()).group_by(invitations.c.state)
    return {str(state): int(count) for state, count in tx.execute(query)}


def find_worker_status(tx: Tx) -> dict[str, Any]:
    """The stored row, if a worker ever ran, and the number of messages that were reported as `bounced`."""
    row = tx.execute(select(worker_status)).mappings().first()
    bounced = select(func.count()).select_from(delivery_reports).where(BOUNCED)
    return {**(row or {}), "bounced": tx.execute(bounced).scalar_one()}


def save_worker_status(tx: Tx, status: model.WorkerStatus, *, now: datetime) -> None:
    """Store a sign of life and what the worker knows, and add its counts to those of all workers."""
    known = {"seen_at": now, "relay_up": status.relay_up, "lag_seconds": status.lag_seconds}
    known = {name: value for name, value in known.items() if value is not None}
    added = {name: worker_status.c[name] + count for name, count in status.counts.items()}
    if not tx.execute(update(worker_status).values(known | added)).rowcount:
        tx.execute(insert(worker_status).values({**known, **status.counts, "id": 1}))


def find_home(tx: Tx) -> model.DeliveryHome:
    """The row; an empty one before the first delivery."""
    columns = delivery_home.c
    row = tx.execute(select(*columns[model.DeliveryHome._fields]).where(columns.id == 1)).first()
    return model.DeliveryHome._make(row) if row else model.DeliveryHome(None, 0, None)


def save_home(tx: Tx, **changes: Any) -> None:
    """Change the columns named; the row is made if there is none."""
    if not tx.execute(update(delivery_home).where(delivery_home.c.id == 1).values(changes)).rowcount:
        tx.execute(insert(delivery_home).values({"id": 1, "home": None, "offers": 0} | changes))


def count_offers(tx: Tx) -> int:
    """Count one more commit after which mail leaves; returns how many there have been."""
    sql = "UPDATE delivery_home SET offers = offers + 1 WHERE id = 1 RETURNING offers"
    return int(tx.exec_driver_sql(sql).scalar_one())
