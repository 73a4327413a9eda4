"""Claiming: which invitations a worker takes in hand next, fairly between accounts and within limits; it sends nothing.

Steps 2 and 6 of the delivery protocol. A claim is a lease on the database's clock; what a worker writes later counts only
while the invitation is still of its claim (the epoch).
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import Row
from frontdesk.invitations import get_deliverability
from frontdesk.invitations.delivery import change_store, store
from frontdesk.invitations.delivery.changes import (
    ClaimedInvitation,
    InvitationVersion,
    alike,
    apply,
    back_in_line,
    cancel,
)
from frontdesk.invitations.delivery.hold import Hold, find_hold
from frontdesk.invitations.delivery.hourly_window import BatchLimits, HourlyWindows, after, allowance
from frontdesk.invitations.model import Delivery, InvitationMessage, InvitationState, InvitationStep
from frontdesk.invitations.store import find_suppressed
from frontdesk.text import fold_email

FindExpired = Callable[[Tx, Collection[int], str], set[int]]


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The installation's rules of delivery. `message_domain` is the right side of Message-IDs."""

    message_domain: str
    # A claim lapses soon, so that what a killed worker had in hand does not wait long. Nothing is sent before `offered`,
    # whose lease is longer than RFC 5321 lets the content and its verdict take.
    lease_seconds: float = 120.0
    offer_lease_seconds: float = 1200.0
    ambiguous_hold_seconds: float = 86_400.0
    resend_ambiguous: bool = True
    most_attempts: int = 20
    first_retry_seconds: float = 60.0


@dataclass(slots=True)
class ClaimCursor:
    """What one worker remembers between claims: whose turn it is, which accounts can't be served for a while, what holds all."""

    last_account: int = 0
    not_before: dict[int, float] = field(default_factory=dict)
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """The pending invitations of one plan that leave in one way."""

    account_id: int
    plan_id: int
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class DeliveryClaim:
    """One claiming transaction: the time it happens at, and what it is done with."""

    tx: Tx
    now: datetime
    terms: DeliveryPolicy
    meter: HourlyWindows


def claim(
    claim_: DeliveryClaim, *, count: int, rota: ClaimCursor, find_expired: FindExpired
) -> list[ClaimedInvitation]:
    """Take up to `count` invitations in hand, their letters' data with them. Empty while delivery is held.

    Every account gets an equal share of the count first; what shares leave over goes to whoever has more.
    """
    rota.hold = find_hold(claim_.tx, now=claim_.now)
    if rota.hold is not None:
        return []
    claim_.meter.look(claim_.tx)
    lanes = due_lanes(claim_.tx, claim_.now)
    taken: list[Any] = []
    accounts = _in_turn(lanes, rota, claim_.meter.now())
    for index, (account_id, own) in enumerate(accounts):
        share = math.ceil((count - len(taken)) / (len(accounts) - index))
        if share <= 0:
            break
        rota.last_account = account_id
        taken += _take_of_account(claim_, own, share, rota)
    return _as_claimed(claim_, taken, find_expired)


def due_lanes(tx: Tx, now: datetime) -> list[Lane]:
    """What could be claimed if no limit stood against it; plans that accept no patients hold their batched ones back."""
    found = []
    for row in store.find_lanes(tx):
        delivery = Delivery(row["delivery"])
        free = delivery is Delivery.IMMEDIATE or (row["accepting"] and row["enabled"])
        if free and row["first_due_at"] <= now:
            found.append(Lane(row["account_id"], row["plan_id"], delivery))
    return found


# The longest that an account is left alone after its limit was met: its settings may change meanwhile.
_PATIENCE_SECONDS = 5.0


def _in_turn(lanes: Sequence[Lane], rota: ClaimCursor, moment: float) -> list[tuple[int, list[Lane]]]:
    """The lanes by account, beginning with the account after the one that was served last."""
    ready = [
        lane
        for lane in lanes
        if lane.delivery is Delivery.IMMEDIATE or rota.not_before.get(lane.account_id, moment) <= moment
    ]
    ready.sort(key=lambda lane: (lane.account_id <= rota.last_account, lane.account_id))
    return [(account_id, list(own)) for account_id, own in groupby(ready, key=lambda lane: lane.account_id)]


def _take_of_account(
    claim_: DeliveryClaim, lanes: Sequence[Lane], share: int, rota: ClaimCursor
) -> list[Any]:
    taken: list[Any] = []
    for lane in lanes:
        if lane.delivery is Delivery.IMMEDIATE and len(taken) < share:
            taken += _take(claim_, lane, share - len(taken))
    batched = [lane for lane in lanes if lane.delivery is Delivery.BATCHED]
    if batched and len(taken) < share:
        taken += _take_batched(claim_, batched, share - len(taken), rota)
    return taken


def _take_batched(claim_: DeliveryClaim, lanes: Sequence[Lane], share: int, rota: ClaimCursor) -> list[Any]:
    account_id = lanes[0].account_id
    window = claim_.meter.lock(claim_.tx, account_id, claim_.now, wait=False)
    if window is None:
        return []
    settings = get_deliverability(claim_.tx, account_id)
    limits = BatchLimits(settings.batch_size, settings.batch_interval_seconds, settings.hourly_limit)
    allowed = allowance(window, limits, used=claim_.meter.used(claim_.tx, window))
    if allowed.count == 0:
        rota.not_before[account_id] = claim_.meter.now() + min(allowed.retry_seconds, _PATIENCE_SECONDS)
        return []
    wanted = min(share, allowed.count)
    taken: list[Any] = []
    for lane in lanes:
        if len(taken) < wanted:
            taken += _take(claim_, lane, wanted - len(taken))
    claim_.meter.save(claim_.tx, after(allowed.window, len(taken)))
    return taken


def _take(claim_: DeliveryClaim, lane: Lane, count: int) -> Sequence[Any]:
    return change_store.take(
        claim_.tx,
        account_id=lane.account_id,
        plan_id=lane.plan_id,
        delivery=lane.delivery.value,
        count=count,
        now=stored_time(claim_.now),
        lease_until=stored_time(claim_.now + timedelta(seconds=claim_.terms.lease_seconds)),
        domain=f"@{claim_.terms.message_domain}",
    )


def _as_claimed(
    claim_: DeliveryClaim, rows: Sequence[Any], find_expired: FindExpired
) -> list[ClaimedInvitation]:
    """Put aside what must not be sent any more: suppressed addresses, expired members."""
    if not rows:
        return []
    tx = claim_.tx
    folded = {row.id: fold_email(row.address) for row in rows}
    suppressed = {row["address_folded"] for row in find_suppressed(tx, set(folded.values())).rows}
    expired = find_expired(tx, {row.member_id for row in rows}, stored_time(claim_.now)[:10])
    stationery = store.find_stationery(tx, {row.plan_id for row in rows})
    claimed, refused = [], []
    for row in rows:
        one = _claimed(row, stationery[row.plan_id])
        if folded[row.id] in suppressed:
            refused.append((cancel(InvitationStep.SUPPRESSED), one))
        elif row.member_id in expired:
            refused.append((cancel(InvitationStep.EXPIRED), one))
        else:
            claimed.append(one)
    apply(tx, alike(refused), now=claim_.now)
    return claimed


def _claimed(row: Any, stationery: Row) -> ClaimedInvitation:
    letter = InvitationMessage(
        invitation_id=row.id,
        account_id=row.account_id,
        plan_id=row.plan_id,
        address=row.address,
        message_id=row.message_id,
        plan_name=stationery["name"],
        sender_name=stationery["sender_name"],
        sender_address=stationery["sender_address"],
        registration_url=stationery["registration_url"],
    )
    return ClaimedInvitation(row.id, row.epoch, Delivery(row.delivery), row.attempts, row.losses, letter)


def lapse(
    tx: Tx, *, terms: DeliveryPolicy, meter: HourlyWindows, now: datetime, count: int = 500
) -> set[str]:
    """What leases and holds that have run out lead to; the Message-IDs of the mails among them that may have left.

    A claimed one goes back in line. An offered one may have left: ambiguous. An ambiguous one that nobody settled is sent
    once more, if the terms say so, and never a third time. What was reported about those before has to be heeded now.
    """
    rows = store.find_lapsed(tx, now, count)
    changes = [
        (back_in_line(row, terms, now=now), InvitationVersion(row["id"], row["epoch"])) for row in rows
    ]
    written = apply(tx, alike(changes), now=now, meter=meter)
    unclear = [row for row in rows if row["id"] in written and row["state"] != InvitationState.CLAIMED]
    return {row["message_id"] for row in unclear if row["message_id"] is not None}


def work_waits(tx: Tx, *, meter: HourlyWindows, rota: ClaimCursor, now: datetime) -> bool:
    """Whether a claim could find something; a cheap look that writes nothing, so it may be done often."""
    meter.look(tx)
    return bool(_in_turn(due_lanes(tx, now), rota, meter.now()))


def lapse_waits(tx: Tx, *, now: datetime) -> bool:
    """Whether a lease or a hold has run out."""
    return store.has_lapsed(tx, now)
