"""Invitations that are sent again: one, or all that failed since a time.

A resend goes to the member's present address. It is refused while the address is suppressed, has
another invitation in line, or was mailed less than COOL_DOWN_HOURS ago; and, unless the caller vouches
for it, if support entered it without proof (docs/decisions/0179). Invitations that failed are
taken page by page, each in a transaction of its own: a run that was killed goes on with what is
still failed, and no member has two mails.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk import codes
from frontdesk.audit import Requester
from frontdesk.codes import Code
from frontdesk.db import Tx
from frontdesk.db.sets import lock_names
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.delivery import lock_in
from frontdesk.invitations.model import (
    DEFINITE_REFUSALS,
    IN_LINE,
    FailedPlace,
    FailedSince,
    Invitation,
    InvitationState,
    InvitationStep,
    StateChange,
)
from frontdesk.invitations.protocol import apply_changes
from frontdesk.invitations.store import resends, suppressions
from frontdesk.invitations.store.unproven import list_unproven
from frontdesk.invitations.unproven import vouch_for
from frontdesk.reach import Reach
from frontdesk.text import fold_email

COOL_DOWN_HOURS = 24  # between two messages to one address that an operator asks for
PAGE_ROWS = 500
RESENDABLE = set(InvitationState).difference(IN_LINE)
FIRST_PLACE = FailedPlace(0, 0)

# The present addresses of members, by id; members are above this package.
FindAddresses = Callable[[Tx, Collection[int]], dict[int, str]]

_RULES = {
    codes.operators.ERASED: "The invitation has no address any more: it was erased.",
    codes.operators.NO_ADDRESS: "The member has no e-mail address.",
    codes.operators.ADDRESS_UNPROVEN: codes.operators.ADDRESS_UNPROVEN.sentence,
    codes.operators.SUPPRESSED: "The address is on the suppression list.",
    codes.operators.ALREADY_PENDING: "Another invitation to the address is in line already.",
    codes.operators.MAILED_RECENTLY: (
        f"The address was mailed less than {COOL_DOWN_HOURS} hours ago; wait until then."
    ),
    codes.operators.NOT_MAILED_NOW: (
        "The address can't be mailed at present. An operator can see why."
    ),
}


class ResentPage(NamedTuple):
    """A page of failed invitations: how many of each account are pending again, how many were
    refused by which code, and the place of the last one, None after the last page.
    """

    resent: dict[int, int]
    refused: dict[str, int]
    place: FailedPlace | None

    @property
    def total(self) -> int:
        return sum(self.resent.values()) + sum(self.refused.values())


def resend_invitation(
    tx: Tx,
    reach: Reach,
    invitation_id: int,
    requester: Requester,
    *,
    find_addresses: FindAddresses,
    is_proven: bool = False,
) -> None:
    """Make it pending again, to the member's present address; the timeline names the requester. One
    that was sent gets a new Message-ID, and so does one to another address; one that may have been
    sent keeps its own. `is_proven`: the caller vouches for an address that support entered.

    Raises NotFound, also for one out of reach, and FrontdeskError with a code of `_RULES`.
    """
    invitation = lock_in(tx, reach, invitation_id, RESENDABLE, "resent")
    address = find_addresses(tx, [invitation.member_id]).get(invitation.member_id, "")
    if is_proven:
        vouch_for(tx, invitation.member_id, address)
    refusals = _resend(tx, [invitation], requester, find_addresses=find_addresses)
    for code in refusals.values():
        is_told = _is_told(tx, reach, invitation, code, fold_email(address), now=requester.now)
        shown = code if is_told else codes.operators.NOT_MAILED_NOW
        raise FrontdeskError(_RULES[shown], code=shown)


def _is_told(
    tx: Tx, reach: Reach, invitation: Invitation, code: Code, address: str, *, now: datetime
) -> bool:
    """Whether the code may be told within reach. The rules count per address, so that they would
    tell an account what another account's mail did.
    """
    if reach.account_id is None:
        return True
    if code is codes.operators.SUPPRESSED:
        account_id = invitation.account_id
        return bool(suppressions.find_blocking(tx, reach, account_id=account_id, address=address))
    if code is codes.operators.MAILED_RECENTLY:
        return resendable_from(invitation, address, now=now) is not None
    return code is not codes.operators.ALREADY_PENDING


def resendable_from(invitation: Invitation, address: str, *, now: datetime) -> datetime | None:
    """When a mail may go to this folded address again after the invitation's own last one; None if
    that is no obstacle.
    """
    offered_at = invitation.offered_at
    if offered_at is None or address != invitation.address_folded or _never_taken(invitation):
        return None
    until = offered_at + timedelta(hours=COOL_DOWN_HOURS)
    return until if until > now else None


def _never_taken(invitation: Invitation) -> bool:
    """Whether the relay has definitely not taken its message."""
    is_refused = invitation.reason in DEFINITE_REFUSALS and invitation.losses == 0
    return invitation.state is InvitationState.FAILED and is_refused


def count_failed(tx: Tx, asked: FailedSince) -> int:
    """How many invitations a run would look at."""
    return resends.count_failed(tx, asked)


def resend_failed(
    tx: Tx,
    asked: FailedSince,
    place: FailedPlace,
    requester: Requester,
    *,
    find_addresses: FindAddresses,
) -> ResentPage:
    """Make pending again the next page of the failed invitations after the place, where nothing
    forbids it; their timelines name the requester.
    """
    found = resends.lock_failed(tx, asked, after=place, count=PAGE_ROWS)
    refusals = _resend(tx, found, requester, find_addresses=find_addresses)
    resent: dict[int, int] = {}
    refused: dict[str, int] = {}
    for invitation in found:
        code = refusals.get(invitation.id)
        if code is None:
            resent[invitation.account_id] = resent.get(invitation.account_id, 0) + 1
        else:
            refused[code] = refused.get(code, 0) + 1
    is_full = len(found) == PAGE_ROWS
    last = FailedPlace(found[-1].account_id, found[-1].id) if is_full else None
    return ResentPage(resent, refused, last)


def _resend(
    tx: Tx, found: Sequence[Invitation], requester: Requester, *, find_addresses: FindAddresses
) -> dict[int, Code]:
    """Make the locked invitations pending again; returns by their ids why others can't be."""
    now = requester.now
    addresses = find_addresses(tx, {each.member_id for each in found})
    folded = {
        each.id: fold_email(addresses[each.member_id])
        for each in found
        if each.address and each.member_id in addresses
    }
    asked = set(folded.values())
    # Another resend to one of them waits here, and then sees these invitations pending.
    lock_names(tx, asked)
    blocked = suppressions.find_blocked(
        tx, {(each.account_id, folded[each.id]) for each in found if each.id in folded}
    )
    # Counted per address: other members, of other accounts too, may have the same one. Those in
    # line come first: one that leaves between the two reads is then among those that were offered.
    unproven = list_unproven(tx, {each.member_id for each in found})
    queued = resends.find_queued(tx, asked)
    mailed = resends.find_offered(tx, asked, since=now - timedelta(hours=COOL_DOWN_HOURS))
    refusals: dict[int, Code] = {}
    again = []
    for invitation in found:
        address = folded.get(invitation.id)
        if address is None:
            is_erased = not invitation.address
            code = codes.operators.ERASED if is_erased else codes.operators.NO_ADDRESS
            refusals[invitation.id] = code
        elif (invitation.member_id, address) in unproven:
            refusals[invitation.id] = codes.operators.ADDRESS_UNPROVEN
        elif (invitation.account_id, address) in blocked:
            refusals[invitation.id] = codes.operators.SUPPRESSED
        elif address in queued:
            refusals[invitation.id] = codes.operators.ALREADY_PENDING
        elif address in mailed:
            refusals[invitation.id] = codes.operators.MAILED_RECENTLY
        else:
            queued.add(address)
            again.append(invitation)
    moved = {
        each.id: addresses[each.member_id]
        for each in again
        if folded[each.id] != each.address_folded
    }
    resends.readdress(tx, moved)
    apply_changes(
        tx,
        [(_pending(each, requester), _renamed(each, has_moved=each.id in moved)) for each in again],
        now=now,
    )
    return refusals


def _pending(invitation: Invitation, requester: Requester) -> StateChange:
    return StateChange(
        invitation.state,
        InvitationState.PENDING,
        InvitationStep.BY_OPERATOR,
        due_at=requester.now,
        attempts=0,
        losses=0,
        actor=requester.actor,
    )


def _renamed(invitation: Invitation, *, has_moved: bool) -> Invitation:
    """A relay took it once: reports about that message must not be taken for reports about the new
    one. Another address gets another message.
    """
    was_taken = (
        invitation.state is InvitationState.SENT or invitation.reason is InvitationStep.BY_REPORT
    )
    return invitation._replace(message_id=None) if was_taken or has_moved else invitation
