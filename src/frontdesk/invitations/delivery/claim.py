"""Claims: which invitations a worker delivers next, fairly between accounts and within their limits.

Steps 2 and 6 of the delivery protocol. A claim is a lease on the database's clock. What a worker writes later counts only
while the invitation still has the epoch of that claim.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import groupby

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store
from frontdesk.invitations.delivery.changes import DeliveryContext, apply_changes, change_after_lapse
from frontdesk.invitations.delivery.hold import find_hold
from frontdesk.invitations.delivery.hourly_window import allowance
from frontdesk.invitations.delivery.model import Lane, StateChange
from frontdesk.invitations.mime import mailable
from frontdesk.invitations.model import ClaimedInvitation, Delivery, InvitationState, InvitationStep
from frontdesk.invitations.store import find_suppressed, get_deliverability
from frontdesk.text import fold_email

# Those of the members whose access ended before a day (`YYYY-MM-DD`); members are above this package.
FindExpired = Callable[[Tx, Collection[int], str], set[int]]

# The longest that the batches of an account at its limit are left alone: its settings may change meanwhile.
_RECHECK_SECONDS = 5.0


def claim(
    tx: Tx, context: DeliveryContext, *, now: datetime, count: int, find_expired: FindExpired
) -> list[ClaimedInvitation]:
    """Claim up to `count` invitations. Empty while delivery is held.

    Each account gets an equal share of the count; what accounts leave over goes to the accounts after them.
    """
    context.hold = find_hold(tx, now=now)
    if context.hold is not None:
        return []
    rows: list[ClaimedInvitation] = []
    accounts = _due_accounts(tx, context, now)
    for index, (account_id, lanes) in enumerate(accounts):
        share = math.ceil((count - len(rows)) / (len(accounts) - index))
        if share <= 0:
            break
        context.last_account = account_id
        rows += _claim_of_account(tx, context, lanes, share, now)
    return _without_stopped(tx, rows, find_expired, now) if rows else []


def seconds_to_work(tx: Tx, context: DeliveryContext, *, now: datetime) -> float:
    """How long until a claim could find something: 0 if it could now, infinite if nothing waits. It writes nothing and is
    cheap, so it may be called often."""
    context.windows.observe(tx)
    return min((_seconds_left(lane, context, now) for lane in change_store.find_lanes(tx)), default=math.inf)


def expire_leases(tx: Tx, context: DeliveryContext, *, now: datetime, count: int = 500) -> set[str]:
    """Apply what follows from leases and holds that have run out; returns the Message-IDs that may have left.

    A claimed invitation is pending again. An offered one may have left: ambiguous. An ambiguous one that nobody settled is
    sent once more, if the policy says so, and never a third time. Apply early reports about the returned ones now.
    """
    lapsed = change_store.lock_lapsed(tx, now, count)
    changes = [(change_after_lapse(held, context.policy, now=now), held) for held in lapsed]
    written = apply_changes(tx, changes, now=now, windows=context.windows)
    return {
        held.message_id
        for held in lapsed
        if held.id in written and held.state is not InvitationState.CLAIMED and held.message_id is not None
    }


def _due_accounts(tx: Tx, context: DeliveryContext, now: datetime) -> list[tuple[int, list[Lane]]]:
    """Lanes in which something is due, by account, from the account after the one that was served last."""
    context.windows.observe(tx)
    ready = [lane for lane in change_store.find_lanes(tx) if _seconds_left(lane, context, now) <= 0]
    ready.sort(key=lambda lane: (lane.account_id <= context.last_account, lane.account_id))
    return [(account_id, list(own)) for account_id, own in groupby(ready, key=lambda lane: lane.account_id)]


def _seconds_left(lane: Lane, context: DeliveryContext, now: datetime) -> float:
    """Until something in the lane is due.

    Everything waits while the account is suspended; batches also while it has switched them off or is at its limit, and
    while the plan accepts no patients.
    """
    if lane.suspended:
        return math.inf
    left = max(0.0, (lane.first_due_at - now).total_seconds())
    if lane.delivery is Delivery.IMMEDIATE:
        return left
    if not (lane.accepting_patients and lane.batches_enabled):
        return math.inf
    moment = context.windows.monotonic()
    return max(left, context.not_before.get(lane.account_id, moment) - moment)


def _claim_of_account(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], share: int, now: datetime
) -> list[ClaimedInvitation]:
    immediate = [lane for lane in lanes if lane.delivery is Delivery.IMMEDIATE]
    rows = _claim_lanes(tx, context, immediate, share, now)
    batched = [lane for lane in lanes if lane.delivery is Delivery.BATCHED]
    if batched and len(rows) < share:
        rows += _claim_batched(tx, context, batched, share - len(rows), now)
    return rows


def _claim_batched(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], share: int, now: datetime
) -> list[ClaimedInvitation]:
    account_id, windows = lanes[0].account_id, context.windows
    window = windows.lock(tx, account_id, now)
    if window is None:
        return []
    used = windows.used(tx, window)
    count, window, seconds = allowance(window, get_deliverability(tx, account_id), used=used)
    if count == 0:
        context.not_before[account_id] = windows.monotonic() + min(seconds, _RECHECK_SECONDS)
        return []
    rows = _claim_lanes(tx, context, lanes, min(share, count), now)
    windows.save(tx, window._replace(batch_left=window.batch_left - len(rows)))
    return rows


def _claim_lanes(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], count: int, now: datetime
) -> list[ClaimedInvitation]:
    rows: list[ClaimedInvitation] = []
    for lane in lanes:
        if len(rows) < count:
            rows += change_store.claim_pending(
                tx,
                account_id=lane.account_id,
                plan_id=lane.plan_id,
                delivery=lane.delivery.value,
                count=count - len(rows),
                now=stored_time(now),
                lease_until=stored_time(now + timedelta(seconds=context.policy.lease_seconds)),
                domain=f"@{context.policy.message_domain}",
            )
    return rows


def _without_stopped(
    tx: Tx, rows: Sequence[ClaimedInvitation], find_expired: FindExpired, now: datetime
) -> list[ClaimedInvitation]:
    """Cancel what must not be sent any more: suppressed addresses, expired members."""
    folded = {row.id: _compared(row.address) for row in rows}
    addresses = set().union(*folded.values())
    suppressed = {row["address_folded"] for row in find_suppressed(tx, addresses).rows}
    expired = find_expired(tx, {row.member_id for row in rows}, stored_time(now)[:10])
    stopped: dict[int, tuple[StateChange, ClaimedInvitation]] = {}
    for row in rows:
        is_suppressed = not suppressed.isdisjoint(folded[row.id])
        if is_suppressed or row.member_id in expired:
            reason = InvitationStep.SUPPRESSED if is_suppressed else InvitationStep.EXPIRED
            cancelled = StateChange(InvitationState.CLAIMED, InvitationState.CANCELLED, reason, closes=True)
            stopped[row.id] = cancelled, row
    apply_changes(tx, list(stopped.values()), now=now)
    return [row for row in rows if row.id not in stopped]


def _compared(address: str) -> set[str]:
    """The folding of the address, and of the recipient that the relay will be given: another library makes that."""
    with suppress(ValueError):  # it can't be mailed, which its composition will find
        return {fold_email(address), fold_email(mailable(address))}
    return {fold_email(address)}
