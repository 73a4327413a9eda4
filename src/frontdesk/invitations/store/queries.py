"""The SQL that reads invitations one by one: by link, message, member and state, with their
timelines and reports.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import case, func, insert, or_, select, text

from frontdesk.db import Tx, sets
from frontdesk.db.sets import SameKey, count_by_key
from frontdesk.errors import NotFound
from frontdesk.invitations import model
from frontdesk.invitations.tables import (
    IS_PENDING,
    LAPSES,
    deliverability,
    delivery_reports,
    invitation_events,
    invitation_links,
    invitations,
)
from frontdesk.plans.tables import plans
from frontdesk.reach import Reach


def list_invitations(
    tx: Tx, reach: Reach, *, state: model.InvitationState | None, limit: int
) -> list[model.Invitation]:
    """The newest `limit` invitations within reach and in the state (None: any), newest first."""
    query = select(invitations).order_by(invitations.c.id.desc()).limit(limit)
    if reach.account_id is not None:
        query = query.where(invitations.c.account_id == reach.account_id)
    if state is not None:
        query = query.where(invitations.c.state == state)
    return [model.Invitation._make(row) for row in tx.execute(query)]


def find_link_target(
    tx: Tx, purpose: model.LinkPurpose, token_hash: str
) -> model.LinkTarget | None:
    query = (
        select(
            *invitations.c["id", "account_id", "address"],
            plans.c.name,
            deliverability.c.registration_url,
        )
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .join(plans, SameKey(plans.c.id, invitations.c.plan_id))
        .outerjoin(deliverability, SameKey(deliverability.c.account_id, invitations.c.account_id))
        .where(invitation_links.c[f"{purpose}_hash"] == token_hash)
    )
    row = tx.execute(query).first()
    return model.LinkTarget._make(row) if row else None


def lock_by_message_id(tx: Tx, message_id: str) -> model.Invitation | None:
    """The invitation of the message that has, or ever had, this Message-ID; locked against its
    worker and other reports.
    """
    query = (
        select(invitations)
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .where(invitation_links.c.message_id == message_id)
        .limit(1)
        .with_for_update(of=invitations, key_share=True)
    )
    row = tx.execute(query).first()
    return model.Invitation._make(row) if row else None


def insert_report(
    tx: Tx, report: model.DeliveryReport, *, invitation_id: int, now: datetime
) -> bool:
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
        model.DeliveryReport(row["message_id"], model.ReportEvent(row["kind"]), row["status"])
        for row in rows
    ]


def find_invitation(
    tx: Tx, reach: Reach, invitation_id: int, *, lock: bool = False
) -> model.Invitation:
    """The invitation. Raises NotFound, also for one out of reach. With `lock` no other transaction
    changes it until this one ends.
    """
    query = select(invitations).where(invitations.c.id == invitation_id)
    if reach.account_id is not None:
        # The `+ 0`: found by its id, and not by the account.
        query = query.where(invitations.c.account_id + 0 == reach.account_id)
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
    query = select(*columns[model.InvitationEvent._fields]).where(
        columns.invitation_id == invitation_id
    )
    rows = tx.execute(query.order_by(columns.id))
    return [model.InvitationEvent._make(row) for row in rows]


def insert_event(tx: Tx, invitation_id: int, event: model.InvitationEvent) -> None:
    tx.execute(insert(invitation_events).values(invitation_id=invitation_id, **event._asdict()))


def find_unsettled(tx: Tx, *, after: int, count: int) -> list[model.Invitation]:
    """Invitations that would be sent or held by themselves, in the order of their ids, from the one
    after `after`.
    """
    query = select(invitations).where(or_(IS_PENDING, LAPSES), invitations.c.id > after)
    return [
        model.Invitation._make(row)
        for row in tx.execute(query.order_by(invitations.c.id).limit(count))
    ]


def count_pending(
    tx: Tx, account_id: int, delivery: model.Delivery, *, now: datetime, most: int | None = None
) -> tuple[list[tuple[float, int]], int]:
    """In how many seconds how many of the account's pending invitations are due; and the number of
    batched ones of plans that accept no patients, which are not among them. With `most` no more than
    so many are looked at.
    """
    columns = invitations.c
    # Those that are due count as one moment, so that the result is as short as the list of those
    # that are tried again later.
    due_at = case((columns.due_at > now, columns.due_at), else_=None)
    pending = (
        select(columns.plan_id, due_at.label("due"))
        .where(IS_PENDING, columns.delivery == delivery, columns.account_id == account_id)
        .limit(most)
        .subquery()
    )
    query = (
        select(plans.c.accepting_patients, pending.c.due, func.count())
        .join(plans, SameKey(plans.c.id, pending.c.plan_id))
        .group_by(text("1, 2"))
    )
    found = [
        (accepts or delivery is model.Delivery.IMMEDIATE, *rest)
        for accepts, *rest in tx.execute(query)
    ]
    due = [((at - now).total_seconds() if at else 0.0, count) for goes, at, count in found if goes]
    return due, sum(count for goes, _, count in found if not goes)


def count_by_state(tx: Tx) -> dict[str, int]:
    query = select(invitations.c.state, func.count()).group_by(invitations.c.state)
    return {str(state): int(count) for state, count in tx.execute(query)}


def count_pending_by_account(tx: Tx, account_ids: Collection[int], *, most: int) -> dict[int, int]:
    """How many invitations of each account wait, `most` at most."""
    rows = "FROM invitations WHERE account_id = :key AND state = 'pending'"
    return count_by_key(tx, rows, account_ids, most=most)
