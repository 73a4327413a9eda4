"""What can become of an invitation that a worker holds, and the one way to write it: steps 3 to 7 of the delivery protocol."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store
from frontdesk.invitations.delivery.hold import DeliveryMark, count_offer
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
from frontdesk.invitations.delivery.model import (
    AttemptOutcome,
    AttemptResult,
    ClaimCursor,
    ClaimedInvitation,
    DeliveryPolicy,
    InvitationVersion,
    LeasedRow,
    StateChange,
    StateChanges,
)
from frontdesk.invitations.model import TRANSITIONS, Delivery, InvitationState, InvitationStep

# From these states a message may have left by now: its place in the hourly window is counted.
MAY_HAVE_LEFT = {InvitationState.SENT, InvitationState.AMBIGUOUS}
FINAL = {InvitationState.SENT, InvitationState.FAILED, InvitationState.CANCELLED}
MAX_RETRY_SECONDS = 3600.0


@dataclass(slots=True)
class DeliveryContext:
    """What one worker delivers by: the rules, its measure of the hourly windows, its place between claims, the jitter."""

    policy: DeliveryPolicy
    windows: HourlyWindows = field(default_factory=HourlyWindows)
    cursor: ClaimCursor = field(default_factory=ClaimCursor)
    jitter: random.Random = field(default_factory=random.Random)


def offer_and_settle(
    tx: Tx,
    context: DeliveryContext,
    claimed: Sequence[ClaimedInvitation],
    outcomes: Sequence[AttemptOutcome],
    *,
    now: datetime,
) -> tuple[set[int], DeliveryMark | None]:
    """Write `offered` for some, and what became of others, in the same statements.

    `offered` is committed before DATA. Returns the ids of the offered ones that may go on, and the mark to write before they
    do. An invitation that was cancelled meanwhile, or has lost its lease, is not among them.
    """
    due_at = now + timedelta(seconds=context.policy.offer_lease_seconds)
    offer = StateChange(InvitationState.CLAIMED, InvitationState.OFFERED, InvitationStep.RELAY_ASKED, due_at)
    results = [(_change_after(outcome, context, now), outcome.invitation) for outcome in outcomes]
    changes = [(offer, claimed), *group_by_change(results)]
    written = apply_changes(tx, changes, now=now, windows=context.windows)
    granted = {invitation.id for invitation in claimed} & written
    return granted, count_offer(tx) if granted else None


def renew_leases(
    tx: Tx, context: DeliveryContext, claimed: Sequence[ClaimedInvitation], *, now: datetime
) -> None:
    """Restart the leases of those that are still claimed: their worker lives, the relay is slow. No step of the timeline."""
    due_at = now + timedelta(seconds=context.policy.lease_seconds)
    renewal = StateChange(InvitationState.CLAIMED, InvitationState.CLAIMED, InvitationStep.CLAIMED, due_at)
    _write(tx, [(renewal, claimed)], now=now, is_step=False)


def group_by_change(
    changes: Iterable[tuple[StateChange, InvitationVersion | ClaimedInvitation]],
) -> StateChanges:
    """Invitations that share a change, together."""
    groups: dict[StateChange, list[InvitationVersion | ClaimedInvitation]] = {}
    for change, invitation in changes:
        groups.setdefault(change, []).append(invitation)
    return list(groups.items())


def apply_changes(
    tx: Tx, changes: StateChanges, *, now: datetime, windows: HourlyWindows | None = None
) -> set[int]:
    """Write the changes that still hold, with their timeline; returns the ids of those. Other claims stay as they are.

    With `windows`, batched invitations that may have left are counted into their account's window. Raises ValueError for a
    change that docs/states.md does not draw.
    """
    unknown = {(change.from_state, change.state) for change, _ in changes} - TRANSITIONS
    if any(start is not end for start, end in unknown):
        raise ValueError("no such change of state (docs/states.md)")
    written = _write(tx, changes, now=now)
    if windows is not None:
        left = {
            invitation.id
            for change, invitations in changes
            if change.from_state is InvitationState.OFFERED and change.state in MAY_HAVE_LEFT
            for invitation in invitations
        }
        counts: dict[int, int] = {}
        for id_, account_id, delivery in written:
            if id_ in left and delivery == Delivery.BATCHED:
                counts[account_id] = counts.get(account_id, 0) + 1
        windows.count_sent(tx, counts, now)
    return {row[0] for row in written}


def change_after_lapse(row: LeasedRow, policy: DeliveryPolicy, *, now: datetime) -> StateChange:
    """Steps 6 and 7: what follows when a lease or a hold runs out."""
    change = StateChange(row.state, row.state, InvitationStep.LEASE_LAPSED, closes=True)
    if row.state is InvitationState.CLAIMED:
        return replace(change, state=InvitationState.PENDING, due_at=now)
    if row.state is InvitationState.OFFERED:
        return _ambiguous(change, row.losses, policy, now)
    if policy.resend_ambiguous and row.losses <= 1:
        return replace(change, state=InvitationState.PENDING, reason=InvitationStep.ONCE_MORE, due_at=now)
    return replace(change, reason=InvitationStep.ANSWER_LOST)  # stays ambiguous until an operator settles it


def retry_seconds(attempts: int, first: float, jitter: random.Random) -> float:
    """`first`, doubling to an hour, and up to a quarter more: what failed together must not return together."""
    seconds: float = min(MAX_RETRY_SECONDS, first * 2 ** min(attempts - 1, 10))
    return seconds * jitter.uniform(1.0, 1.25)


def _ambiguous(change: StateChange, losses: int, policy: DeliveryPolicy, now: datetime) -> StateChange:
    """Held once, so that it can be settled; after a second loss without end."""
    due_at = now + timedelta(seconds=policy.ambiguous_hold_seconds) if losses == 0 else None
    return replace(change, state=InvitationState.AMBIGUOUS, losses=losses + 1, due_at=due_at)


def _change_after(outcome: AttemptOutcome, context: DeliveryContext, now: datetime) -> StateChange:
    start, code = InvitationState.OFFERED if outcome.offered else InvitationState.CLAIMED, outcome.code
    match outcome.result:
        case AttemptResult.ACCEPTED:
            return StateChange(start, InvitationState.SENT, InvitationStep.ACCEPTED, code=code)
        case AttemptResult.REFUSED:
            return StateChange(start, InvitationState.FAILED, InvitationStep.REFUSED, code=code)
        case AttemptResult.NOT_WRITABLE:
            return StateChange(start, InvitationState.FAILED, InvitationStep.NOT_WRITABLE)
        case AttemptResult.LOST:
            change = StateChange(start, InvitationState.AMBIGUOUS, InvitationStep.ANSWER_LOST)
            return _ambiguous(change, outcome.invitation.losses, context.policy, now)
        case AttemptResult.NOT_TRIED:
            return StateChange(start, InvitationState.PENDING, InvitationStep.NOT_OFFERED, now, code)
        case AttemptResult.PUT_ASIDE:
            due_at = now + timedelta(seconds=context.policy.first_retry_seconds)
            return StateChange(start, InvitationState.PENDING, InvitationStep.NOT_OFFERED, due_at, code)
        case AttemptResult.REFUSED_FOR_NOW:
            return _change_after_attempt(start, outcome, context, now)


def _change_after_attempt(
    start: InvitationState, outcome: AttemptOutcome, context: DeliveryContext, now: datetime
) -> StateChange:
    attempts, policy = outcome.invitation.attempts + 1, context.policy
    if attempts >= policy.max_attempts:
        change = StateChange(
            start, InvitationState.FAILED, InvitationStep.TOO_MANY_ATTEMPTS, code=outcome.code
        )
    else:
        due_at = now + timedelta(seconds=retry_seconds(attempts, policy.first_retry_seconds, context.jitter))
        change = StateChange(
            start, InvitationState.PENDING, InvitationStep.REFUSED_FOR_NOW, due_at, outcome.code
        )
    return replace(change, attempts=attempts)


def _write(tx: Tx, changes: StateChanges, *, now: datetime, is_step: bool = True) -> Sequence[Any]:
    at = stored_time(now)
    versions = [
        {"id": invitation.id, "epoch": invitation.epoch, "change": number}
        for number, (_, invitations) in enumerate(changes)
        for invitation in invitations
    ]
    rows = [
        {
            "change": number,
            "from_state": change.from_state.value,
            "state": change.state.value,
            "closes": int(change.closes),
            "due_at": stored_time(change.due_at) if change.due_at else None,
            "attempts": change.attempts,
            "losses": change.losses,
            "offered_at": at if change.state is InvitationState.OFFERED else None,
            "settled_at": at if change.state in FINAL else None,
            "reason": change.reason.value,
            "relay_code": change.code,
            "updated_at": at,
        }
        for number, (change, _) in enumerate(changes)
    ]
    return change_store.change_states(tx, rows, versions, is_step=is_step)
