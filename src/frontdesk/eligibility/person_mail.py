"""What people do about the mail of one member: send it again, lift a bounce of the address, send it to
another address, cancel it.
Each is recorded in the audit trail.
"""

from enum import StrEnum

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.search import get_kept
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations import delivery, find_of_members
from frontdesk.invitations.model import LIFTED_BY_SUPPORT, Invitation, InvitationState
from frontdesk.invitations.protocol import CANCELLABLE
from frontdesk.invitations.resend import RESENDABLE, resend_invitation
from frontdesk.invitations.suppression import unsuppress
from frontdesk.invitations.unproven import mark_unproven, vouch_for
from frontdesk.reach import Reach


class NewAddressMail(StrEnum):
    """What becomes of a member's invitation when people give the member another address."""

    SENT = "sent"  # it is in line for the new address
    UNPROVEN = "unproven"  # no mail goes to the new address until somebody vouches for it
    REFUSED = "refused"  # the new address can't be mailed now (`resend_invitation`)
    LEAVING = "leaving"  # a relay is taking it, for the earlier address
    NEVER_INVITED = "never_invited"


def resend(
    tx: Tx, reach: Reach, member_id: int, requester: Requester, *, is_proven: bool = False
) -> None:
    """Send the member's invitation again, to its present address. `is_proven`: also if support
    entered the address. Raises NotFound for a member without an invitation, and as
    `resend_invitation` does.
    """
    invitation = _invitation_of(tx, reach, member_id)
    resend_invitation(
        tx,
        reach,
        invitation.id,
        requester,
        find_addresses=store.find_addresses,
        is_proven=is_proven,
    )
    _record(tx, requester, "invitation.resent", invitation)


def unblock_and_resend(
    tx: Tx,
    reach: Reach,
    member_id: int,
    requester: Requester,
    *,
    lift_within: Reach,
    is_proven: bool = False,
) -> None:
    """Lift a bounce of the member's present address, and send the invitation again, unless it is in
    line already or there is none. `lift_within`: EVERY for support; an account lifts only what its
    own mail has caused.

    Raises as `unsuppress` and `resend` do; then neither has happened.
    """
    member = get_kept(tx, reach, member_id)
    if member["email"] is None:
        raise FrontdeskError("The member has no e-mail address.")
    unsuppress(tx, lift_within, member["email"], may_lift=LIFTED_BY_SUPPORT)
    audit.record_action(
        tx, requester, "suppression.removed", member["account_id"], member["id"], count=1
    )
    invitations = find_of_members(tx, [member["id"]])
    if any(each.state in RESENDABLE for each in invitations):
        resend(tx, reach, member["id"], requester, is_proven=is_proven)


def mail_to_new_address(
    tx: Tx, reach: Reach, member_id: int, requester: Requester, *, is_proven: bool
) -> NewAddressMail:
    """Send the invitation of a member, which has just got another address, there. One that has not
    left for the earlier address is cancelled. Without `is_proven` none is sent: no resend goes to
    this address, now or when it comes back, until one is proven (`resend_invitation`).

    The transaction is that of the change. Raises NotFound for an unknown member, and TooManyUnproven.
    """
    member = get_kept(tx, reach, member_id)
    if member["email"] is None:
        return NewAddressMail.NEVER_INVITED
    mark = vouch_for if is_proven else mark_unproven
    mark(tx, member["id"], member["email"])
    found = find_of_members(tx, [member["id"]])
    if not found:
        return NewAddressMail.NEVER_INVITED
    invitation = delivery.lock_in(tx, reach, found[0].id, set(InvitationState), "changed")
    if invitation.state in CANCELLABLE:
        cancel(tx, reach, member["id"], requester)
    if invitation.state is InvitationState.OFFERED:
        return NewAddressMail.LEAVING
    if not is_proven:
        return NewAddressMail.UNPROVEN
    try:
        resend(tx, reach, member["id"], requester)
    except FrontdeskError:
        return NewAddressMail.REFUSED
    return NewAddressMail.SENT


def cancel(tx: Tx, reach: Reach, member_id: int, requester: Requester) -> None:
    """Cancel the member's invitation, which has not left yet. Raises NotFound for a member without
    one, and as `cancel_invitation` does.
    """
    invitation = _invitation_of(tx, reach, member_id)
    delivery.cancel_invitation(tx, reach, invitation.id, requester)
    _record(tx, requester, "invitation.cancelled", invitation)


def _invitation_of(tx: Tx, reach: Reach, member_id: int) -> Invitation:
    member = get_kept(tx, reach, member_id)
    found = find_of_members(tx, [member["id"]])
    if not found:
        raise NotFound("invitation", "This person was never invited.")
    return found[0]


def _record(tx: Tx, requester: Requester, action: str, invitation: Invitation) -> None:
    audit.record_action(tx, requester, action, invitation.account_id, invitation.id)
