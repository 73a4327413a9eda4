"""Why a member got no mail: a reason, facts, and what to do; each door says them in its own words.

An account never learns what another account's mail did, though both may mail one address: within
reach of an account only its own mails count (docs/decisions/0172).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from frontdesk import codes
from frontdesk.codes.mail import MailRemedy
from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.invitations.delivery import forecast
from frontdesk.invitations.disclosure import as_shown
from frontdesk.invitations.enqueue import decide_invitation, find_invitation_context
from frontdesk.invitations.model import (
    IN_LINE,
    Delivery,
    DeliveryForecast,
    DeliveryReport,
    HoldReason,
    Invitation,
    InvitationState,
    InvitationStep,
    Suppression,
    SuppressionReason,
)
from frontdesk.invitations.resend import resendable_from
from frontdesk.invitations.store import queries, suppressions
from frontdesk.invitations.unproven import is_unproven
from frontdesk.plans import get_plan
from frontdesk.reach import Reach

# Pending invitations of a kind that are counted: a page of one person waits for no count of a million.
MOST_COUNTED = 1000
# Of several reasons for a suppression, the one that fewest people can lift is told.
_HARDEST_FIRST = (
    SuppressionReason.UNSUBSCRIBE,
    SuppressionReason.COMPLAINT,
    SuppressionReason.BY_HAND,
    SuppressionReason.HARD_BOUNCE,
)
# What to do, by the reason of the last step, else by the state.
_REMEDIES: dict[InvitationStep | InvitationState, tuple[MailRemedy, ...]] = {
    InvitationState.SENT: (MailRemedy.LOOK_IN_RELAY_LOG,),
    InvitationState.AMBIGUOUS: (MailRemedy.SETTLE,),
    InvitationState.FAILED: (MailRemedy.CORRECT_CAUSE, MailRemedy.RESEND),
    InvitationStep.SUPPRESSED: (MailRemedy.LIFT_SUPPRESSION, MailRemedy.RESEND),
    InvitationStep.BY_OPERATOR: (MailRemedy.RESEND,),
    InvitationStep.MERGED: (MailRemedy.RESEND,),
}


@dataclass(frozen=True, slots=True)
class MailedMember:
    """What decides about a member's mail. Members are above this package: `eligibility.mailed`
    makes it.

    `gone`: WITHDRAWN or ERASED, if the member is. `has_expired`: its access has ended.
    `came_with_email` and `came_expired`: as it came, as far as the history still has it.
    """

    id: int
    account_id: int
    plan_id: int
    email_folded: str | None
    gone: InvitationStep | None
    has_expired: bool
    came_with_email: bool
    came_expired: bool


@dataclass(frozen=True, slots=True)
class WhyNoMail:
    """The answer. `reason` is a code of `codes.mail`, the last step or the state of the invitation,
    or the reason for none; `sentence` says it without the words of any door.

    `invitation`: None if the member was never invited. `reports`: about its present message.
    `suppression`: what keeps mail from the address: of an invitation in line its own, else the
    member's present one. `resendable_from`: when a mail may go there again, None if it may now. Of
    one that waits: `due_at`, when it is tried
    next; `leaves_by`, when it leaves at the latest while a worker runs, None if 1,000 and more wait
    with it; `hold`; and the mails of
    this hour, `used` of `limit`. `is_elsewhere`: the invitation was for an earlier address of the member.
    """

    reason: str
    sentence: str
    remedies: tuple[MailRemedy, ...] = ()
    invitation: Invitation | None = None
    reports: Sequence[DeliveryReport] = ()
    suppression: Suppression | None = None
    due_at: datetime | None = None
    leaves_by: datetime | None = None
    hold: HoldReason | None = None
    resendable_from: datetime | None = None
    used: int | None = None
    limit: int | None = None
    is_elsewhere: bool = False


def why_no_mail(
    tx: Tx, reach: Reach, member: MailedMember, *, has_relay: bool, now: datetime
) -> WhyNoMail:
    """Why the member got no mail, or what became of it. `has_relay`: whether the installation can
    send mail at all. Raises NotFound for a member out of reach.
    """
    if not reach.covers(member.account_id):
        raise NotFound("eligible member")
    stored = next(iter(queries.find_of_members(tx, [member.id])), None)
    address = _address_of(stored, member)
    suppression = _hardest(
        suppressions.find_blocking(tx, reach, account_id=member.account_id, address=address)
    )
    if stored is None:
        return _not_invited(tx, member, address, suppression)
    own = as_shown(tx, reach, stored)
    if own.state is not InvitationState.PENDING:
        why = _settled(tx, own, member, suppression)
        last = stored.address_folded
        return replace(
            why,
            resendable_from=resendable_from(own, address, now=now),
            is_elsewhere=last is not None and last != member.email_folded,
        )
    why = _first_obstacle(tx, own, member, suppression, has_relay=has_relay, now=now)
    if why.reason == codes.mail.WORKER and stored.reason is not own.reason:
        return _because(codes.mail.WAITING, own, suppression, MailRemedy.WAIT)
    return why


def _address_of(stored: Invitation | None, member: MailedMember) -> str:
    """The address that a mail to the member goes to, or would go to."""
    goes_to = stored.address_folded if stored is not None and stored.state in IN_LINE else None
    last = stored.address_folded if stored is not None else None
    return goes_to or member.email_folded or last or ""


def _hardest(found: Collection[Suppression]) -> Suppression | None:
    return min(found, key=lambda each: _HARDEST_FIRST.index(each.reason), default=None)


def _because(
    code: codes.Code, own: Invitation, suppression: Suppression | None, *remedies: MailRemedy
) -> WhyNoMail:
    return WhyNoMail(
        code, code.sentence, remedies, invitation=own, suppression=suppression, due_at=own.due_at
    )


def _settled(
    tx: Tx, own: Invitation, member: MailedMember, suppression: Suppression | None
) -> WhyNoMail:
    if _is_unproven(tx, own, member):
        return _because(codes.mail.UNPROVEN, own, suppression, MailRemedy.PROVE_ADDRESS)
    is_blocked = suppression is not None and own.state is InvitationState.FAILED
    step = InvitationStep.SUPPRESSED if is_blocked else own.reason
    remedies = _REMEDIES.get(own.state, ()) if step is None else _remedies_after(step, own.state)
    if suppression is not None and suppression.reason is SuppressionReason.UNSUBSCRIBE:
        remedies = ()  # nobody can lift it, and until then nothing can be sent
    return WhyNoMail(
        own.reason or own.state,
        own.reason.description if own.reason else "",
        () if member.gone else remedies,
        invitation=own,
        reports=queries.find_reports(tx, [own.message_id or ""]),
        suppression=suppression,
    )


def _is_unproven(tx: Tx, own: Invitation, member: MailedMember) -> bool:
    """Whether support entered the member's present address without proof."""
    if member.gone is not None or own.state in IN_LINE:
        return False
    return is_unproven(tx, member.id, member.email_folded)


def _remedies_after(step: InvitationStep, state: InvitationState) -> tuple[MailRemedy, ...]:
    return _REMEDIES.get(step, _REMEDIES.get(state, ()))


def _first_obstacle(
    tx: Tx,
    own: Invitation,
    member: MailedMember,
    suppression: Suppression | None,
    *,
    has_relay: bool,
    now: datetime,
) -> WhyNoMail:
    """The first thing that keeps a pending invitation from leaving."""
    if suppression is not None:
        return _because(codes.mail.SUPPRESSED, own, suppression)
    if member.has_expired:
        return _because(codes.mail.EXPIRED, own, suppression)
    outlook = forecast(tx, own.account_id, now=now, most=MOST_COUNTED)
    if outlook.held:
        held = _because(codes.mail.HELD, own, suppression, MailRemedy.RELEASE_MAIL)
        return replace(held, hold=outlook.held)
    if outlook.suspended:
        return _because(codes.mail.SUSPENDED, own, suppression, MailRemedy.RESUME_ACCOUNT)
    if not has_relay:
        return _because(codes.mail.NO_RELAY, own, suppression, MailRemedy.SET_RELAY)
    if own.due_at is not None and own.due_at > now:
        is_mailbox = own.reason is InvitationStep.MAILBOX_LIMIT
        code = codes.mail.MAILBOX_LIMIT if is_mailbox else codes.mail.RETRY
        return _because(code, own, suppression, MailRemedy.WAIT)
    if own.delivery is Delivery.IMMEDIATE:
        return _immediate(own, outlook, now)
    return _batched(tx, own, outlook)


def _immediate(own: Invitation, outlook: DeliveryForecast, now: datetime) -> WhyNoMail:
    if outlook.immediate_this_hour < outlook.immediate_limit:
        due = _because(codes.mail.WORKER, own, None, MailRemedy.CHECK_WORKER)
        return replace(due, due_at=own.due_at or now)
    full = _because(codes.mail.IMMEDIATE_LIMIT, own, None, MailRemedy.WAIT, MailRemedy.ALLOW_MORE)
    return replace(
        full,
        leaves_by=outlook.last_at,
        used=outlook.immediate_this_hour,
        limit=outlook.immediate_limit,
    )


def _batched(tx: Tx, own: Invitation, outlook: DeliveryForecast) -> WhyNoMail:
    if not outlook.enabled:
        return _because(codes.mail.DISABLED, own, None, MailRemedy.ENABLE_BATCHES)
    if not get_plan(tx, Reach.of(own.account_id), own.plan_id).accepting_patients:
        return _because(codes.mail.PLAN_INACTIVE, own, None)
    return replace(
        _because(codes.mail.BATCH, own, None, MailRemedy.WAIT),
        leaves_by=outlook.last_at,
        used=outlook.sent_this_hour,
        limit=outlook.hourly_limit,
    )


def _not_invited(
    tx: Tx, member: MailedMember, address: str, suppression: Suppression | None
) -> WhyNoMail:
    """By the values that the member came with, and the account's settings of today. Of suppressions
    those that the account's own mail has caused: its answer told no other.
    """
    if member.gone is not None:
        return WhyNoMail(member.gone, member.gone.description, suppression=suppression)
    account_id = member.account_id
    context = find_invitation_context(tx, account_ids=[account_id], addresses=[address])()
    decision = decide_invitation(
        is_new=True,
        has_email=member.came_with_email,
        suppressed=(account_id, address) in context.suppressed,
        expired=member.came_expired,
        asked=False,
        batches_enabled=context.batches_enabled.get(account_id),
    )
    if isinstance(decision, Delivery):
        not_new = codes.mail.NOT_NEW
        return WhyNoMail(not_new, not_new.sentence, suppression=suppression)
    return WhyNoMail(decision, decision.description, suppression=suppression)
