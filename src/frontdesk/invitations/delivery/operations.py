"""What operators and files decide about invitations: cancel, resend, settle, and what follows when a backup was restored."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.changes import apply_changes
from frontdesk.invitations.delivery.model import InvitationEvent, StateChange
from frontdesk.invitations.model import Invitation, InvitationState, InvitationStep
from frontdesk.invitations.store import find_suppressed
from frontdesk.text import fold_email

PAGE_ROWS = 1000
COOL_DOWN_HOURS = 24  # between two messages to one address that an operator asks for

CANCELLABLE = {InvitationState.PENDING, InvitationState.CLAIMED}
RESENDABLE = {
    InvitationState.SENT,
    InvitationState.FAILED,
    InvitationState.CANCELLED,
    InvitationState.AMBIGUOUS,
}
SETTLEABLE = {InvitationState.AMBIGUOUS}


def get_invitation(tx: Tx, invitation_id: int) -> tuple[Invitation, list[InvitationEvent]]:
    """The invitation and its timeline, oldest step first. Raises NotFound."""
    return store.find_invitation(tx, invitation_id), store.find_events(tx, invitation_id)


def cancel_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """It will not be sent. Raises NotFound, and FrontdeskError when it has left, or may have left, already."""
    _change(tx, _lock(tx, invitation_id, CANCELLABLE, "cancelled"), InvitationState.CANCELLED, now=now)


def cancel_of_members(
    tx: Tx,
    member_ids: Collection[int],
    *,
    now: datetime,
    reason: InvitationStep = InvitationStep.WITHDRAWN,
) -> int:
    """Cancel the invitations of withdrawn or erased members that have not begun to leave; returns their number.

    One that a worker claims at this moment may leave; each later claim looks at the member.
    """
    changes = [
        (StateChange(found.state, InvitationState.CANCELLED, reason, closes=True), found)
        for found in store.find_of_members(tx, member_ids)
        if found.state in CANCELLABLE
    ]
    return len(apply_changes(tx, changes, now=now))


def settle_invitation(tx: Tx, invitation_id: int, state: InvitationState, *, now: datetime) -> None:
    """An operator looked up an ambiguous one: it was `sent`, or it `failed`. Raises NotFound, FrontdeskError."""
    _change(tx, _lock(tx, invitation_id, SETTLEABLE, "settled"), state, now=now)


def resend_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """Make it pending again. One that was sent gets a new Message-ID, one that may have been sent keeps its own.

    Raises NotFound, and FrontdeskError when the address is suppressed, another invitation to it is pending, or a message was
    offered to the relay for it less than COOL_DOWN_HOURS ago.
    """
    invitation = _lock(tx, invitation_id, RESENDABLE, "resent")
    if not invitation.address:
        raise FrontdeskError("The invitation has no address any more: it was erased.", code="erased")
    address = fold_email(invitation.address)
    lock_name(tx, address)  # another resend to it waits here, and then sees this invitation pending
    if find_suppressed(tx, {address}).rows:
        raise FrontdeskError(
            "The address is on the suppression list; `frontdesk suppression remove` takes it off.",
            code="suppressed",
        )
    # Counted per address: other members, of other accounts too, may have the same one. Pending invitations come first: one
    # that leaves between the two reads is then among those that were offered.
    if store.is_queued(tx, address):
        raise FrontdeskError("Another invitation to the address is in line already.", code="already_pending")
    if store.was_offered(tx, address, since=now - timedelta(hours=COOL_DOWN_HOURS)):
        raise FrontdeskError(
            f"The address was mailed less than {COOL_DOWN_HOURS} hours ago; wait until then.",
            code="mailed_recently",
        )
    if invitation.state is InvitationState.SENT or invitation.reason is InvitationStep.BY_REPORT:
        # A relay took it once: reports about that message must not be taken for reports about the new one.
        store.delete_message_id(tx, invitation_id)
    _change(tx, invitation, InvitationState.PENDING, now=now, due_at=now, attempts=0, losses=0)


def keep_back(tx: Tx, *, now: datetime) -> int:
    """After a backup was restored: make ambiguous all that would be sent by itself, since it may have left; their number.

    They stay so until an operator settles or resends each. No worker holds what the backup says is claimed or offered, and
    what it says is ambiguous may have been sent once more.
    """
    count = 0
    for find in (store.find_leased, store.find_pending):
        after = 0
        while rows := find(tx, after=after, count=PAGE_ROWS):  # by id, so each row is read once
            changes = [(_kept_back(row, now), row) for row in rows]
            written = apply_changes(tx, changes, now=now)
            count += sum(
                change.state is InvitationState.AMBIGUOUS and row.id in written for change, row in changes
            )
            after = rows[-1].id
    return count


def _kept_back(invitation: Invitation, now: datetime) -> StateChange:
    change = StateChange(invitation.state, InvitationState.AMBIGUOUS, InvitationStep.RESTORED, closes=True)
    if invitation.state is InvitationState.CLAIMED:
        return change._replace(state=InvitationState.PENDING, reason=InvitationStep.LEASE_LAPSED, due_at=now)
    is_ambiguous = invitation.state is InvitationState.AMBIGUOUS
    return change if is_ambiguous else change._replace(losses=invitation.losses + 1)


def _lock(tx: Tx, invitation_id: int, states: set[InvitationState], done: str) -> Invitation:
    invitation = store.find_invitation(tx, invitation_id, lock=True)
    if invitation.state not in states:
        names = ", ".join(sorted(states))
        raise FrontdeskError(
            f"The invitation is {invitation.state}; only these can be {done}: {names}.", code="wrong_state"
        )
    return invitation


def _change(tx: Tx, invitation: Invitation, state: InvitationState, *, now: datetime, **changes: Any) -> None:
    change = StateChange(invitation.state, state, InvitationStep.BY_OPERATOR, closes=True, **changes)
    apply_changes(tx, [(change, invitation)], now=now)
