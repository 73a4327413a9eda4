"""The SQL of delivery beside the protocol: single invitations, counts, and whether delivery is held."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, func, insert, select, text, update

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.invitations.delivery.change_store import as_time
from frontdesk.invitations.delivery.model import DeliveryHome, InvitationEvent
from frontdesk.invitations.model import Invitation
from frontdesk.invitations.tables import IS_PENDING, LAPSES, delivery_home, invitation_events, invitations


def find_invitation(tx: Tx, invitation_id: int, *, lock: bool = False) -> Invitation:
    """Raises NotFound. With `lock` no other transaction changes the invitation until this one ends."""
    query = select(invitations).where(invitations.c.id == invitation_id)
    row = tx.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise NotFound("invitation")
    return Invitation._make(row)


def find_of_members(tx: Tx, member_ids: Collection[int]) -> list[Invitation]:
    """The invitations of the members."""
    query = select(invitations).where(invitations.c.member_id.in_(member_ids))
    return [Invitation._make(row) for row in tx.execute(query)]


def find_events(tx: Tx, invitation_id: int) -> list[InvitationEvent]:
    columns = invitation_events.c
    query = select(columns.at, columns.from_state, columns.to_state, columns.reason, columns.code)
    rows = tx.execute(query.where(columns.invitation_id == invitation_id).order_by(columns.id))
    return [InvitationEvent._make(row) for row in rows]


def insert_event(tx: Tx, invitation_id: int, event: InvitationEvent) -> None:
    tx.execute(insert(invitation_events).values(invitation_id=invitation_id, **event._asdict()))


def delete_message_id(tx: Tx, invitation_id: int) -> None:
    """The next claim gives the invitation a new one."""
    tx.execute(update(invitations).where(invitations.c.id == invitation_id).values(message_id=None))


def find_pending(tx: Tx, *, after: int, count: int) -> list[Invitation]:
    """Pending invitations in the order of their ids, from the one after `after`."""
    return _find_by_id(tx, IS_PENDING, after, count)


def find_leased(tx: Tx, *, after: int, count: int) -> list[Invitation]:
    """Invitations with a lease or a hold, claimed, offered or ambiguous, by id as above."""
    return _find_by_id(tx, LAPSES, after, count)


def _find_by_id(tx: Tx, condition: TextClause, after: int, count: int) -> list[Invitation]:
    query = select(invitations).where(condition, invitations.c.id > after)
    return [Invitation._make(row) for row in tx.execute(query.order_by(invitations.c.id).limit(count))]


# No index leads from an address to its pending invitations: enqueueing members would have to pay for it. So all of them are
# read, by their own indexes.
_IS_QUEUED = text(
    "SELECT 1 FROM invitations WHERE state = 'pending' AND address_folded = :address UNION ALL "
    "SELECT 1 FROM invitations WHERE state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL "
    "AND state <> 'ambiguous' AND address_folded = :address LIMIT 1"
)


def is_queued(tx: Tx, address_folded: str) -> bool:
    """Whether any invitation to the address is pending, claimed or offered."""
    return tx.execute(_IS_QUEUED, {"address": address_folded}).first() is not None


_OFFERED = text(
    "SELECT 1 FROM invitations WHERE address_folded = :address AND offered_at IS NOT NULL "
    "AND offered_at > :since LIMIT 1"
)


def was_offered(tx: Tx, address_folded: str, *, since: datetime) -> bool:
    """Whether an invitation to the address, of any account, was offered to the relay after `since`."""
    return tx.execute(_OFFERED, {"address": address_folded, "since": stored_time(since)}).first() is not None


# Those that are due count as one moment, and so do those of plans that accept no patients, so that the result is as short as
# the list of those that are tried again later.
_BATCHED = text(
    "SELECT p.accepting_patients, CASE WHEN p.accepting_patients AND due_at > :now THEN due_at END, count(*) "
    "FROM invitations i JOIN plans p ON p.id = i.plan_id "
    "WHERE state = 'pending' AND i.delivery = 'batched' AND i.account_id = :account_id GROUP BY 1, 2"
)


def count_batched(tx: Tx, account_id: int, *, now: datetime) -> tuple[list[tuple[datetime, int]], int]:
    """When how many of the account's pending batched invitations are due (`now` or later) of plans that accept patients;
    and the number of all of other plans."""
    found = tx.execute(_BATCHED, {"account_id": account_id, "now": stored_time(now)}).all()
    due = [(as_time(due_at) if due_at else now, int(count)) for accepts, due_at, count in found if accepts]
    return due, sum(int(count) for accepts, _, count in found if not accepts)


def count_by_state(tx: Tx) -> dict[str, int]:
    query = select(invitations.c.state, func.count()).group_by(invitations.c.state)
    return {str(state): int(count) for state, count in tx.execute(query)}


def find_home(tx: Tx) -> DeliveryHome:
    """The row; an empty one before the first delivery."""
    columns = delivery_home.c
    query = select(columns.home, columns.offers, columns.held_reason, columns.held_at).where(columns.id == 1)
    row = tx.execute(query).first()
    return DeliveryHome._make(row) if row else DeliveryHome(None, 0, None, None)


def save_home(tx: Tx, **changes: Any) -> None:
    """Change the columns named; the row is made if there is none."""
    if not tx.execute(update(delivery_home).where(delivery_home.c.id == 1).values(changes)).rowcount:
        tx.execute(insert(delivery_home).values({"id": 1, "home": None, "offers": 0} | changes))


def count_offers(tx: Tx) -> int:
    """Count one more commit after which mail leaves; returns how many there have been."""
    sql = "UPDATE delivery_home SET offers = offers + 1 WHERE id = 1 RETURNING offers"
    return int(tx.exec_driver_sql(sql).scalar_one())
