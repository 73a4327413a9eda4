"""What can become of an invitation that a worker holds, and the one way to write it: steps 3 to 7 of the delivery protocol."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store
from frontdesk.invitations.delivery.hold import count_offer
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
from frontdesk.invitations.delivery.model import (
    AttemptOutcome,
    AttemptResult,
    DeliveryPolicy,
    Hold,
    StateChange,
)
from frontdesk.invitations.model import (
    TRANSITIONS,
    ClaimedInvitation,
    Delivery,
    Invitation,
    InvitationState,
    InvitationStep,
)

# From these states a message may have left by now: its place in the hourly window is counted.
MAY_HAVE_LEFT = {InvitationState.SENT, InvitationState.AMBIGUOUS}
MAX_RETRY_SECONDS = 3600.0


@dataclass(slots=True)
class DeliveryContext:
    """What one worker delivers by: the rules, its measure of the hourly windows, the jitter, what it remembers of its claims.

    `last_account`: the account that was served last. `not_before`: when the batches of an account at its limit are looked
    at again, in seconds of the worker's monotonic clock. `hold`: why delivery was held at the last claim.
    """

    policy: DeliveryPolicy
    windows: HourlyWindows = field(default_factory=HourlyWindows)
    jitter: random.Random = field(default_factory=random.Random)
    last_account: int = 0
    not_before: dict[int, float] = field(default_factory=dict)
    hold: Hold | None = None


def offer_and_settle(
    tx: Tx,
    context: DeliveryContext,
    claimed: Sequence[ClaimedInvitation],
    outcomes: Sequence[AttemptOutcome],
    *,
    now: datetime,
) -> tuple[set[int], Callable[[], None] | None]:
    """Write `offered` for some, and what became of others, in the same statements.

    `offered` is committed before DATA. Returns the ids of the offered ones that may go on, and what to call before they do
    (`count_offer`). An invitation that was cancelled meanwhile, or has lost its lease, is not among them.
    """
    due_at = now + timedelta(seconds=context.policy.offer_lease_seconds)
    offer = StateChange(InvitationState.CLAIMED, InvitationState.OFFERED, InvitationStep.RELAY_ASKED, due_at)
    changes: list[tuple[StateChange, Invitation | ClaimedInvitation]] = [
        (offer, invitation) for invitation in claimed
    ]
    changes += [(_change_after(outcome, context, now), outcome.invitation) for outcome in outcomes]
    written = apply_changes(tx, changes, now=now, windows=context.windows)
    granted = {invitation.id for invitation in claimed} & written
    return granted, count_offer(tx) if granted else None


def renew_leases(
    tx: Tx, context: DeliveryContext, claimed: Sequence[ClaimedInvitation], *, now: datetime
) -> None:
    """Restart the leases of those that are still claimed: their worker lives, the relay is slow. No step of the timeline."""
    due_at = now + timedelta(seconds=context.policy.lease_seconds)
    renewal = StateChange(InvitationState.CLAIMED, InvitationState.CLAIMED, InvitationStep.CLAIMED, due_at)
    apply_changes(tx, [(renewal, invitation) for invitation in claimed], now=now, is_step=False)


def apply_changes(
    tx: Tx,
    changes: Sequence[tuple[StateChange, Invitation | ClaimedInvitation]],
    *,
    now: datetime,
    windows: HourlyWindows | None = None,
    is_step: bool = True,
) -> set[int]:
    """Write the changes that still hold, with their timeline if `is_step`; returns the ids of those. Others stay as they are.

    With `windows`, batched invitations that may have left are counted into their account's window. Raises ValueError for a
    change that docs/states.md does not draw.
    """
    numbers: dict[StateChange, int] = {}  # many invitations share a change
    versions = [
        {"id": invitation.id, "epoch": invitation.epoch, "change": numbers.setdefault(change, len(numbers))}
        for change, invitation in changes
    ]
    for start, end, *_ in numbers:
        if start is not end and (start, end) not in TRANSITIONS:
            raise ValueError("no such change of state (docs/states.md)")
    rows = [_stored(change, number, now) for change, number in numbers.items()]
    written = change_store.change_states(tx, rows, versions, is_step=is_step)
    if windows is not None:
        left = {
            invitation.id
            for change, invitation in changes
            if change.from_state is InvitationState.OFFERED and change.state in MAY_HAVE_LEFT
        }
        sent = (account for id_, account, delivery in written if id_ in left and delivery == Delivery.BATCHED)
        windows.count_sent(tx, Counter(sent), now)
    return {row[0] for row in written}


def _stored(change: StateChange, number: int, now: datetime) -> dict[str, object]:
    due_at = stored_time(change.due_at) if change.due_at else None
    return change._asdict() | {
        "change": number,
        "due_at": due_at,
        "closes": int(change.closes),
        "updated_at": stored_time(now),
    }


def change_after_lapse(invitation: Invitation, policy: DeliveryPolicy, *, now: datetime) -> StateChange:
    """Steps 6 and 7: what follows when a lease or a hold runs out."""
    change = StateChange(invitation.state, invitation.state, InvitationStep.LEASE_LAPSED, closes=True)
    if invitation.state is InvitationState.CLAIMED:
        return change._replace(state=InvitationState.PENDING, due_at=now)
    if invitation.state is InvitationState.OFFERED:
        return _ambiguous(change, invitation.losses, policy, now)
    if invitation.losses <= 1:
        return change._replace(state=InvitationState.PENDING, reason=InvitationStep.ONCE_MORE, due_at=now)
    return change._replace(reason=InvitationStep.ANSWER_LOST)  # stays ambiguous until an operator settles it


def retry_seconds(attempts: int, first: float, jitter: random.Random) -> float:
    """`first`, doubling to an hour, and up to a quarter more: what failed together must not return together."""
    seconds: float = min(MAX_RETRY_SECONDS, first * 2 ** min(attempts - 1, 10))
    return seconds * jitter.uniform(1.0, 1.25)


def _ambiguous(change: StateChange, losses: int, policy: DeliveryPolicy, now: datetime) -> StateChange:
    """Held once, so that it can be settled; after a second loss without end."""
    due_at = now + timedelta(seconds=policy.ambiguous_hold_seconds) if losses == 0 else None
    return change._replace(state=InvitationState.AMBIGUOUS, losses=losses + 1, due_at=due_at)


def _change_after(outcome: AttemptOutcome, context: DeliveryContext, now: datetime) -> StateChange:
    policy, attempts = context.policy, outcome.invitation.attempts + 1
    start = InvitationState.OFFERED if outcome.offered else InvitationState.CLAIMED
    final = StateChange(start, InvitationState.FAILED, InvitationStep.REFUSED, code=outcome.code)
    again = StateChange(start, InvitationState.PENDING, InvitationStep.NOT_OFFERED, now, outcome.code)
    match outcome.result:
        case AttemptResult.ACCEPTED:
            return final._replace(state=InvitationState.SENT, reason=InvitationStep.ACCEPTED)
        case AttemptResult.REFUSED:
            return final
        case AttemptResult.NOT_WRITABLE:
            return final._replace(reason=InvitationStep.NOT_WRITABLE)
        case AttemptResult.LOST:
            lost = final._replace(reason=InvitationStep.ANSWER_LOST)
            return _ambiguous(lost, outcome.invitation.losses, policy, now)
        case AttemptResult.NOT_TRIED:
            return again
        case AttemptResult.PUT_ASIDE:
            return again._replace(due_at=now + timedelta(seconds=policy.first_retry_seconds))
        case AttemptResult.REFUSED_FOR_NOW if attempts >= policy.max_attempts:
            return final._replace(reason=InvitationStep.TOO_MANY_ATTEMPTS, attempts=attempts)
        case AttemptResult.REFUSED_FOR_NOW:
            pause = timedelta(seconds=retry_seconds(attempts, policy.first_retry_seconds, context.jitter))
            return again._replace(
                reason=InvitationStep.REFUSED_FOR_NOW, due_at=now + pause, attempts=attempts
            )
