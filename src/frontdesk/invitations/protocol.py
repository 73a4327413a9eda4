"""The delivery protocol: which invitations a worker claims, what can become of them, and the one
way to write it.

A claim is a lease on the database's clock. What a worker writes later counts only while the
invitation still has the epoch of that claim. Nothing is claimed while delivery is held
(`delivery_hold`; docs/decisions/0030).
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from frontdesk import events
from frontdesk.db import Tx
from frontdesk.db.database_identity import FailoverWitness
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.invitations import daily_limit
from frontdesk.invitations.delivery_hold import HOME_TABLE, count_offer, find_hold, find_hold_reason
from frontdesk.invitations.hourly_window import HourlyWindows, WindowKey, allowance
from frontdesk.invitations.message import mailable
from frontdesk.invitations.model import (
    TRANSITIONS,
    AttemptOutcome,
    ClaimedInvitation,
    Delivery,
    DeliveryPolicy,
    DeliveryReport,
    HoldReason,
    Invitation,
    InvitationState,
    InvitationStep,
    Lane,
    ReportEvent,
    StateChange,
)
from frontdesk.invitations.store import account_settings, claims, queries, suppressions, workers
from frontdesk.text import fold_email, stored_time

CANCELLABLE = {InvitationState.PENDING, InvitationState.CLAIMED}
# From these states a message may have left by now: its place in the hourly window is counted.
MAY_HAVE_LEFT = {InvitationState.SENT, InvitationState.AMBIGUOUS}
MAX_RETRY_SECONDS = 3600.0
HOLD_LOOK_SECONDS = 1.0  # between two looks whether delivery is held, while nothing is claimed
LAPSE_SECONDS = 1.0  # between two looks for leases that have run out, at least
# The longest that batches of an account at its limit are left alone: its settings may change.
_RECHECK_SECONDS = 5.0
EVENT_OF = {
    InvitationState.SENT: AccountEventType.INVITATION_SENT,
    InvitationState.FAILED: AccountEventType.INVITATION_BOUNCED,
}

# Those of the members whose access ended before a day (`YYYY-MM-DD`); members are above this
# package.
FindExpired = Callable[[Tx, Collection[int], datetime], set[int]]

Change = tuple[StateChange, Invitation | ClaimedInvitation]


@dataclass(slots=True)
class DeliveryContext:
    """What one worker delivers by: the rules, its measure of the hourly windows, the jitter, what
    it remembers of its claims.

    `last_account`: the account that was served last. `not_before`: when an account's invitations of
    one kind of delivery are looked at again after they were at their limit, `expired_at`: when
    leases were looked at, and `hold_seen_at`: when the hold was, in seconds of the worker's
    monotonic clock. `at_limit`: accounts whose immediate invitations wait for their limit. `hold`:
    why delivery was held at the last claim.
    `due_seconds`: how long the oldest due immediate invitation had been due then. `looks_again`:
    there may be more to claim, because another worker had it locked, or because the turn went to
    invitations that have to wait. `ended`: how attempts have ended by the last transaction; of one
    whose claim was void by then, nothing was written.
    """

    policy: DeliveryPolicy
    windows: HourlyWindows = field(default_factory=HourlyWindows)
    jitter: random.Random = field(default_factory=random.Random)
    last_account: int = 0
    not_before: dict[WindowKey, float] = field(default_factory=dict)
    at_limit: set[int] = field(default_factory=set)
    expired_at: float = float("-inf")
    hold: HoldReason | None = None
    hold_seen_at: float = float("-inf")
    due_seconds: float = 0.0
    looks_again: bool = False
    ended: Sequence[Change] = ()
    witness: FailoverWitness = field(default_factory=partial(FailoverWitness, HOME_TABLE))


def seconds_to_work(tx: Tx, context: DeliveryContext, *, now: datetime) -> float:
    """How long until a claim could find something: 0 if it could now, infinite if nothing waits. It
    writes nothing and is cheap, so it may be called often.
    """
    if context.windows.monotonic() - context.expired_at > LAPSE_SECONDS and claims.has_lapsed(
        tx, now
    ):
        return 0.0
    context.windows.observe(tx)
    context.witness.look(tx, lambda: workers.find_home(tx).home)
    if _has_other_hold(tx, context):
        return 0.0
    return min(
        (_seconds_left(lane, context, now) for lane in claims.find_lanes(tx)), default=math.inf
    )


def _has_other_hold(tx: Tx, context: DeliveryContext) -> bool:
    """Whether delivery is held, or no longer, unlike at the last claim; looked at once a second. The
    next claim finds out, also when nothing waits: operators are told, and a failover is recognised.
    """
    now = context.windows.monotonic()
    if now - context.hold_seen_at < HOLD_LOOK_SECONDS:
        return False
    context.hold_seen_at = now
    return find_hold_reason(tx) is not context.hold


def expire_leases(tx: Tx, context: DeliveryContext, *, now: datetime, count: int = 500) -> None:
    """Apply what follows from leases and holds that have run out, and the reports that have come
    meanwhile.

    A claimed invitation is pending again. An offered one may have left: ambiguous. An ambiguous one
    that nobody settled is sent once more, and never a third time.
    """
    context.expired_at = context.windows.monotonic()
    lapsed = claims.lock_lapsed(tx, now, count)
    changes = [(_change_after_lapse(held, context.policy, now), held) for held in lapsed]
    apply_changes(tx, changes, now=now, windows=context.windows)
    context.ended = [
        change for change in changes if change[0].from_state is InvitationState.OFFERED
    ]
    may_have_left = {
        held.message_id for held in lapsed if held.state is not InvitationState.CLAIMED
    }
    apply_early_reports(tx, {id_ for id_ in may_have_left if id_ is not None}, now=now)


def claim(
    tx: Tx, context: DeliveryContext, *, now: datetime, count: int, find_expired: FindExpired
) -> list[ClaimedInvitation]:
    """Claim up to `count` invitations. Empty while delivery is held.

    Each account gets an equal share of the count; what accounts leave over goes to the accounts
    after them.
    """
    context.looks_again = False
    context.hold = find_hold(tx, context.witness)
    if context.hold is not None:
        return []
    context.windows.observe(tx)
    ready = [lane for lane in claims.find_lanes(tx) if _seconds_left(lane, context, now) <= 0]
    immediate = [lane for lane in ready if lane.delivery is Delivery.IMMEDIATE]
    # The time that a limit keeps an invitation is no lag of delivery.
    context.at_limit &= {lane.account_id for lane in immediate}
    punctual = (lane.first_due_at for lane in immediate if lane.account_id not in context.at_limit)
    context.due_seconds = (now - min(punctual, default=now)).total_seconds()
    ready.sort(key=lambda lane: (lane.account_id <= context.last_account, lane.account_id))
    accounts = [list(lanes) for _, lanes in groupby(ready, key=lambda lane: lane.account_id)]
    rows: list[ClaimedInvitation] = []
    for index, lanes in enumerate(accounts):
        share = math.ceil((count - len(rows)) / (len(accounts) - index))
        if share <= 0:
            break
        context.last_account = lanes[0].account_id
        rows += _claim_of_account(tx, context, lanes, share, now)
    if not rows:
        return []
    rows = _without_stopped(tx, rows, find_expired, now)
    return _without_postponed(tx, context, rows, now)


def _seconds_left(lane: Lane, context: DeliveryContext, now: datetime) -> float:
    """Until something in the lane is due.

    Everything waits while the account is suspended or at its limit; batches also while it has
    switched them off, and while the plan accepts no patients.
    """
    if lane.suspended:
        return math.inf
    left = max(0.0, (lane.first_due_at - now).total_seconds())
    is_batched = lane.delivery is Delivery.BATCHED
    if is_batched and not (lane.accepting_patients and lane.batches_enabled):
        return math.inf
    moment = context.windows.monotonic()
    return max(left, context.not_before.get((lane.account_id, lane.delivery), moment) - moment)


def _claim_of_account(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], share: int, now: datetime
) -> list[ClaimedInvitation]:
    """Immediate invitations within the account's hour, and then batched ones within its batch and
    its hour of these.
    """
    immediate = [lane for lane in lanes if lane.delivery is Delivery.IMMEDIATE]
    rows = _claim_immediate(tx, context, immediate, share, now) if immediate else []
    batched = [lane for lane in lanes if lane.delivery is Delivery.BATCHED]
    if batched and len(rows) < share:
        rows += _claim_batched(tx, context, batched, share - len(rows), now)
    return rows


def _claim_immediate(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], share: int, now: datetime
) -> list[ClaimedInvitation]:
    """What the account's hour leaves, the plan whose invitation has been due longest first."""
    account_id = lanes[0].account_id
    windows = context.windows
    window = windows.lock(tx, (account_id, Delivery.IMMEDIATE), now)
    if window is None:
        context.looks_again = True  # another worker claims for this account at this moment
        return []
    places = max(0, lanes[0].immediate_limit - windows.used(tx, window))
    in_order = sorted(lanes, key=lambda lane: lane.first_due_at)
    rows = _claim_lanes(tx, context, in_order, min(share, places), now) if places else []
    if len(rows) == places:
        seconds = min(max(1.0, windows.seconds_until_free(window)), _RECHECK_SECONDS)
        context.not_before[account_id, Delivery.IMMEDIATE] = windows.monotonic() + seconds
        context.at_limit.add(account_id)
    elif len(rows) < share:
        context.at_limit.discard(account_id)
    return rows


def _claim_batched(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], share: int, now: datetime
) -> list[ClaimedInvitation]:
    account_id = lanes[0].account_id
    windows = context.windows
    window = windows.lock(tx, (account_id, Delivery.BATCHED), now)
    if window is None:
        return []
    used = windows.used(tx, window)
    count, window, seconds = allowance(
        window, account_settings.get_deliverability(tx, account_id), used=used
    )
    if count == 0:
        pause = min(seconds, _RECHECK_SECONDS)
        context.not_before[account_id, Delivery.BATCHED] = windows.monotonic() + pause
        return []
    claimed = _claim_lanes(tx, context, lanes, min(share, count), now)
    windows.save(tx, [window._replace(batch_left=window.batch_left - len(claimed))])
    return claimed


def _claim_lanes(
    tx: Tx, context: DeliveryContext, lanes: Sequence[Lane], count: int, now: datetime
) -> list[ClaimedInvitation]:
    rows: list[ClaimedInvitation] = []
    for lane in lanes:
        if len(rows) < count:
            rows += claims.claim_pending(
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
    folded = {row.id: _compared(row) for row in rows}
    blocked = suppressions.find_blocked(
        tx, {(row.account_id, address) for row in rows for address in folded[row.id]}
    )
    expired = find_expired(tx, {row.member_id for row in rows}, now)
    reasons = {row.id: InvitationStep.EXPIRED for row in rows if row.member_id in expired}
    reasons |= {
        row.id: InvitationStep.SUPPRESSED
        for row in rows
        if any((row.account_id, address) in blocked for address in folded[row.id])
    }
    cancelled = StateChange(
        InvitationState.CLAIMED, InvitationState.CANCELLED, InvitationStep.EXPIRED
    )
    changes = [
        (cancelled._replace(reason=reasons[row.id]), row) for row in rows if row.id in reasons
    ]
    apply_changes(tx, changes, now=now)
    return [row for row in rows if row.id not in reasons]


def _without_postponed(
    tx: Tx, context: DeliveryContext, rows: Sequence[ClaimedInvitation], now: datetime
) -> list[ClaimedInvitation]:
    """Let those wait whose mailbox has had its mails for a day (`daily_limit`)."""
    places = daily_limit.postpone(tx, rows, now=now, unlimited=context.policy.unlimited_mailboxes)
    waiting = StateChange(
        InvitationState.CLAIMED, InvitationState.PENDING, InvitationStep.MAILBOX_LIMIT
    )
    changes = [(waiting._replace(due_at=places[row.id]), row) for row in rows if row.id in places]
    apply_changes(tx, changes, now=now)
    context.looks_again = context.looks_again or bool(changes)
    return [row for row in rows if row.id not in places]


def _compared(row: ClaimedInvitation) -> set[str]:
    """The folded address, and that of the recipient that the relay will be given: another library
    makes that.
    """
    folded = {row.address_folded or ""}
    if not row.address.isascii():
        with suppress(ValueError):  # it can't be mailed, which its composition will find
            folded.add(fold_email(mailable(row.address)))
    return folded


def renew_leases(
    tx: Tx, context: DeliveryContext, claimed: Sequence[ClaimedInvitation], *, now: datetime
) -> None:
    """Restart the leases of those that are still claimed: their worker lives, the relay is slow. No
    step of the timeline.
    """
    due_at = now + timedelta(seconds=context.policy.lease_seconds)
    renewal = StateChange(
        InvitationState.CLAIMED, InvitationState.CLAIMED, InvitationStep.CLAIMED, due_at
    )
    apply_changes(tx, [(renewal, invitation) for invitation in claimed], now=now, keeps_claim=True)


def offer_and_settle(
    tx: Tx,
    context: DeliveryContext,
    claimed: Sequence[ClaimedInvitation],
    outcomes: Sequence[AttemptOutcome],
    *,
    now: datetime,
) -> tuple[set[int], Callable[[], None] | None]:
    """Write `offered` for some, and what became of others, in the same statements.

    `offered` is committed before DATA. Returns the ids of the offered ones that may go on, and what
    to call before they do (`count_offer`). An invitation that was cancelled meanwhile, or has lost
    its lease, is not among them. One that this claim has offered before is: that commit was stored,
    and only its answer was lost.
    """
    due_at = now + timedelta(seconds=context.policy.offer_lease_seconds)
    offer = StateChange(
        InvitationState.CLAIMED, InvitationState.OFFERED, InvitationStep.RELAY_ASKED, due_at
    )
    ended = [(_change_after(outcome, context, now), outcome.invitation) for outcome in outcomes]
    context.ended = [
        change for change in ended if change[0].reason is not InvitationStep.NOT_OFFERED
    ]
    changes: list[Change] = [*((offer, invitation) for invitation in claimed), *ended]
    written = apply_changes(tx, changes, now=now, windows=context.windows, keeps_claim=True)
    # A report can have come while this attempt, or one before it whose answer was lost, was under
    # way.
    may_have_left = {
        outcome.invitation.message_id
        for outcome in outcomes
        if outcome.result in (InvitationStep.ACCEPTED, InvitationStep.ANSWER_LOST)
        or outcome.invitation.losses > 0
    }
    apply_early_reports(tx, may_have_left, now=now)
    again = offer._replace(from_state=InvitationState.OFFERED)
    unheard = [(again, invitation) for invitation in claimed if invitation.id not in written]
    written |= apply_changes(tx, unheard, now=now, keeps_claim=True)
    granted = {invitation.id for invitation in claimed} & written
    return granted, count_offer(tx) if granted else None


def apply_changes(
    tx: Tx,
    changes: Sequence[Change],
    *,
    now: datetime,
    windows: HourlyWindows | None = None,
    keeps_claim: bool = False,
) -> set[int]:
    """Write the changes that still hold, with their timeline; returns the ids of those. Others stay
    as they are.

    The claims end, so later writes of their workers are void, unless `keeps_claim`. With `windows`,
    invitations that may have left are counted into their account's window. Raises ValueError for a
    change that docs/states.md does not draw.
    """
    stored: dict[StateChange, dict[str, object]] = {}  # many invitations share a change
    rows = []
    left = set()
    for change, invitation in changes:
        start = change.from_state
        end = change.state
        if change not in stored:
            if start is not end and (start, end) not in TRANSITIONS:
                raise ValueError("no such change of state (docs/states.md)")
            due_at = stored_time(change.due_at) if change.due_at else None
            times = {"due_at": due_at, "updated_at": stored_time(now)}
            stored[change] = change._asdict() | times
        if start is InvitationState.OFFERED and end in MAY_HAVE_LEFT:
            left.add(invitation.id)
        of_claim = {
            "key": invitation.id,
            "epoch": invitation.epoch,
            "message_id": invitation.message_id,
        }
        rows.append(stored[change] | of_claim)
    written = claims.change_states(tx, rows, keeps_claim=keeps_claim)
    done = {row[0] for row in written}
    changed_events = [
        _event(EVENT_OF[change.state], invitation)
        for change, invitation in changes
        if change.state in EVENT_OF
        and change.from_state is not change.state
        and invitation.id in done
    ]
    if changed_events:
        events.publish(tx, changed_events, now=now)
    if windows is not None:
        sent = ((account, Delivery(delivery)) for id_, account, delivery in written if id_ in left)
        windows.count_sent(tx, Counter(sent), now)
    return done


def note_suppressed(tx: Tx, invitation: Invitation, *, now: datetime) -> None:
    """Tell the account that the address of its own invitation is not mailed any more."""
    events.publish(tx, [_event(AccountEventType.INVITATION_SUPPRESSED, invitation)], now=now)


def _event(type_: AccountEventType, invitation: Invitation | ClaimedInvitation) -> NewEvent:
    ids = {"invitation_id": invitation.id, "eligibility_id": invitation.member_id}
    return NewEvent(invitation.account_id, type_, ids | {"plan_id": invitation.plan_id})


def cancel_of_members(
    tx: Tx,
    member_ids: Collection[int],
    *,
    now: datetime,
    reason: InvitationStep = InvitationStep.WITHDRAWN,
) -> int:
    """Cancel the invitations of withdrawn or erased members that have not begun to leave; returns
    their number.

    One that a worker claims at this moment may leave; each later claim looks at the member.
    """
    changes = [
        (StateChange(found.state, InvitationState.CANCELLED, reason), found)
        for found in queries.find_of_members(tx, member_ids)
        if found.state in CANCELLABLE
    ]
    return len(apply_changes(tx, changes, now=now))


def apply_early_reports(tx: Tx, message_ids: Collection[str], *, now: datetime) -> None:
    """Apply what was reported about these messages while their workers still waited for the relay's
    answer.

    Runs in the transaction that stores the answers, or that they never came: a relay that calls
    back can be faster than its answer, and than the end of a killed worker's lease.
    """
    for report in queries.find_reports(tx, message_ids) if message_ids else ():
        invitation = queries.lock_by_message_id(tx, report.message_id)
        if invitation is not None:
            settle_by_report(tx, invitation, report, now=now)


def settle_by_report(
    tx: Tx, invitation: Invitation, report: DeliveryReport, *, now: datetime
) -> InvitationState:
    """The report brings the relay's lost answer, or what came after it. Returns the state that the
    invitation is in then.
    """
    state = invitation.state
    if invitation.message_id != report.message_id:
        return state  # it is about a message before the present one
    bounced = report.event is ReportEvent.BOUNCED
    if not (is_unclear(invitation) or (bounced and state is InvitationState.SENT)):
        return state
    settled = InvitationState.FAILED if bounced else InvitationState.SENT
    change = StateChange(state, settled, InvitationStep.BY_REPORT)
    apply_changes(tx, [(change, invitation)], now=now)
    return settled


def is_unclear(invitation: Invitation) -> bool:
    """Whether the relay's answer was lost, and no attempt is under way that brings another."""
    in_line = invitation.state in (InvitationState.PENDING, InvitationState.CLAIMED)
    return invitation.state is InvitationState.AMBIGUOUS or (in_line and invitation.losses > 0)


def _change_after_lapse(
    invitation: Invitation, policy: DeliveryPolicy, now: datetime
) -> StateChange:
    change = StateChange(invitation.state, invitation.state, InvitationStep.LEASE_LAPSED)
    if invitation.state is InvitationState.CLAIMED:
        return change._replace(state=InvitationState.PENDING, due_at=now)
    if invitation.state is InvitationState.OFFERED:
        return _ambiguous(change, invitation.losses, policy, now)
    if invitation.losses <= 1:
        return change._replace(
            state=InvitationState.PENDING, reason=InvitationStep.ONCE_MORE, due_at=now
        )
    # stays ambiguous until an operator settles it
    return change._replace(reason=InvitationStep.ANSWER_LOST)


def _change_after(outcome: AttemptOutcome, context: DeliveryContext, now: datetime) -> StateChange:
    policy = context.policy
    attempts = outcome.invitation.attempts + 1
    start = InvitationState.OFFERED if outcome.offered else InvitationState.CLAIMED
    final = StateChange(
        start, InvitationState.FAILED, outcome.result, code=outcome.code, words=outcome.words
    )
    again = final._replace(state=InvitationState.PENDING, due_at=now)
    match outcome.result:
        case InvitationStep.ACCEPTED:
            return final._replace(state=InvitationState.SENT)
        case InvitationStep.ANSWER_LOST:
            return _ambiguous(final, outcome.invitation.losses, policy, now)
        case InvitationStep.NOT_OFFERED:
            return again
        case InvitationStep.PUT_ASIDE:
            return again._replace(due_at=now + timedelta(seconds=policy.first_retry_seconds))
        case InvitationStep.REFUSED_FOR_NOW if attempts >= policy.max_attempts:
            return final._replace(reason=InvitationStep.TOO_MANY_ATTEMPTS, attempts=attempts)
        case InvitationStep.REFUSED_FOR_NOW:
            # Doubling to an hour, and up to a quarter more: what failed together must not return
            # together.
            pause = min(MAX_RETRY_SECONDS, policy.first_retry_seconds * 2 ** min(attempts - 1, 10))
            due_at = now + timedelta(seconds=pause * context.jitter.uniform(1.0, 1.25))
            return again._replace(due_at=due_at, attempts=attempts)
        case _:  # refused, or not writable
            return final


def _ambiguous(
    change: StateChange, losses: int, policy: DeliveryPolicy, now: datetime
) -> StateChange:
    """Held once, so that it can be settled; after a second loss without end."""
    due_at = now + timedelta(seconds=policy.ambiguous_hold_seconds) if losses == 0 else None
    return change._replace(state=InvitationState.AMBIGUOUS, losses=losses + 1, due_at=due_at)
