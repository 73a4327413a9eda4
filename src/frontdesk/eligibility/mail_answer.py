"""Why no mail came to a member, in a sentence with the next step (docs/invitations.md, Why did no mail come?)."""

from datetime import datetime
from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.db.sets import one_round_trip
from frontdesk.eligibility import store
from frontdesk.invitations import delivery
from frontdesk.invitations.enqueue import decide_invitation, find_invitation_context
from frontdesk.invitations.model import (
    IN_LINE,
    Delivery,
    Invitation,
    InvitationState,
    InvitationStep,
    NotInvitedReason,
    Obstacle,
    Suppression,
)
from frontdesk.text import stored_time, wire_time

_LOOK_UP = "If it is missing, look its Message-ID up in the relay's log, and into the reader's spam folder."
_SETTLE = "Look its Message-ID up in the relay's log, then: frontdesk invitations settle {id} --as sent (or failed)."
_RESEND = "To send it after all: frontdesk invitations resend {id}"
_ALLOW = (
    "To allow the address: frontdesk suppression remove ADDRESS, and then: frontdesk invitations resend {id}"
)
# The next step by the state, of an invitation that nothing will be done about by itself; another one for some reasons.
_NEXT: dict[str, str] = {
    InvitationState.SENT: _LOOK_UP,
    InvitationState.AMBIGUOUS: _SETTLE,
    InvitationState.FAILED: f"Correct the cause. {_RESEND}",
    InvitationState.CANCELLED: _RESEND,
}
_NEXT_BY_STEP: dict[str | None, str] = {
    InvitationStep.SUPPRESSED: _ALLOW,
    InvitationStep.EXPIRED: "A member without access is not invited.",
    InvitationStep.WITHDRAWN: "A withdrawn or merged member is not invited.",
    InvitationStep.ERASED: "An erased member has no address.",
}
_LATER = "Only a new member is invited, so a later change of the record or the settings brought no mail."


class MailAnswer(NamedTuple):
    """`reason`: a word for programs, of InvitationStep, NotInvitedReason or Obstacle. `why`: the sentence."""

    reason: str
    why: str


def explain_mail(
    tx: Tx,
    member: store.Values,
    invitation: Invitation | None,
    *,
    suppression: Suppression | None,
    has_relay: bool,
    now: datetime,
) -> MailAnswer:
    """Why the member has no mail, or where its mail is. `suppression` is that of the invitation's address, else of the
    member's."""
    if invitation is None:
        return _not_invited(tx, member, suppression)
    if invitation.state is InvitationState.PENDING:
        is_open = store.is_open(member, stored_time(now)[:10])
        if suppression is not None or not is_open:
            obstacle = Obstacle.SUPPRESSED if suppression is not None else Obstacle.EXPIRED
            return MailAnswer(obstacle, obstacle.description)
        found, values = delivery.find_obstacle(tx, invitation, has_relay=has_relay, now=now)
        return MailAnswer(found, found.description.format(**values))
    if invitation.state in IN_LINE:
        return MailAnswer(invitation.state, "A worker is handing it to the relay at this moment.")
    step, code = invitation.reason, invitation.relay_code
    why = [f"The invitation is {invitation.state} since {wire_time(invitation.updated_at)}."]
    why += [step.description] if step else []
    why += [f"The relay said: {code} {invitation.relay_words or ''}".rstrip(" .") + "."] if code else []
    why.append(_NEXT_BY_STEP.get(step, _NEXT[invitation.state]).format(id=invitation.id))
    if invitation.state is InvitationState.AMBIGUOUS and invitation.due_at:
        why.append(f"Otherwise it is sent once more at {wire_time(invitation.due_at)}.")
    return MailAnswer(step or invitation.state, " ".join(why))


def _not_invited(tx: Tx, member: store.Values, suppression: Suppression | None) -> MailAnswer:
    """By the values that the member came with, as far as the history still has them, and the account's settings of today."""
    if member["uniqueness_scope"] < 0:
        step = InvitationStep.ERASED if not member["external_id"] else InvitationStep.WITHDRAWN
        return MailAnswer(step, step.description)
    account_id, came_at = member["account_id"], member["created_at"]
    with one_round_trip(tx):
        context = find_invitation_context(tx, account_ids=[account_id], addresses=())
    came = {name: after for name, (_, after) in store.list_history(tx, member["id"])[0].changes.items()}
    if "external_id" not in came:  # retention has removed the values
        came = {name: member[name] for name in ("email", "expiry_date")}
    expiry = came.get("expiry_date")
    decision = decide_invitation(
        is_new=True,
        has_email=came.get("email") is not None,
        suppressed=suppression is not None
        and (suppression.account_id == account_id and suppression.created_at <= came_at),
        expired=expiry is not None and expiry < stored_time(came_at)[:10],
        asked=False,
        batches_enabled=context().batches_enabled.get(account_id),
    )
    reason = NotInvitedReason.NOT_NEW if isinstance(decision, Delivery) else decision
    why = "The account's batches were not on when the member came." if isinstance(decision, Delivery) else ""
    return MailAnswer(reason, f"{why or reason.description} {_LATER}")
