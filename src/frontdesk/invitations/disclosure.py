"""What an account may see of its own invitation: nothing that tells of another account's mail.

Addresses are shared between accounts. That a mail of another account bounced, or that the mailbox
had its mails of a day from others, would tell an account that the person belongs to another
customer. With EVERY all is shown.
"""

from collections.abc import Sequence

from frontdesk.db import Tx
from frontdesk.invitations.model import HIDDEN_STEPS, Invitation, InvitationEvent, InvitationStep
from frontdesk.invitations.store import suppressions
from frontdesk.reach import Reach


def as_shown(tx: Tx, reach: Reach, invitation: Invitation) -> Invitation:
    """The invitation with a reason that may be shown within reach."""
    if reach.account_id is None or invitation.reason is None:
        return invitation
    reason = _reason(invitation.reason, is_own=_blocks_itself(tx, reach, invitation))
    # The time of the mailbox's next place would tell of the mails before it.
    due_at = None if invitation.reason in HIDDEN_STEPS else invitation.due_at
    return invitation._replace(reason=reason, due_at=due_at)


def steps_as_shown(
    tx: Tx, reach: Reach, invitation: Invitation, steps: Sequence[InvitationEvent]
) -> list[InvitationEvent]:
    """The timeline of the invitation, each step with a reason that may be shown within reach."""
    if reach.account_id is None:
        return list(steps)
    is_own = _blocks_itself(tx, reach, invitation)
    return [each._replace(reason=_reason(each.reason, is_own=is_own)) for each in steps]


def _reason(step: InvitationStep, *, is_own: bool) -> InvitationStep:
    if step in HIDDEN_STEPS:
        return InvitationStep.NOT_OFFERED
    # The same word as in the answers of /v2 (docs/interface.md).
    hides = step is InvitationStep.SUPPRESSED and not is_own
    return InvitationStep.BY_OPERATOR if hides else step


def _blocks_itself(tx: Tx, reach: Reach, invitation: Invitation) -> bool:
    """Whether the account's own mail has suppressed the address."""
    address = invitation.address_folded
    account_id = invitation.account_id
    return address is not None and bool(
        suppressions.find_blocking(tx, reach, account_id=account_id, address=address)
    )
