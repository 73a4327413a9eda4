"""Decides about invitations and enqueues them, in the transaction that creates the member; delivery
comes later.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from frontdesk.db.sets import (
    SetTransaction,
    find_set,
    insert_set,
    keyed_hasher,
    one_round_trip,
    update_set,
)
from frontdesk.invitations.daily_limit import DIGEST_BYTES, mailbox_of
from frontdesk.invitations.model import (
    Delivery,
    InvitationContext,
    InvitationDecision,
    InvitationState,
    NewInvitation,
    NotInvitedReason,
)
from frontdesk.invitations.store.suppressions import find_suppressed
from frontdesk.invitations.tables import deliverability, invitations
from frontdesk.text import fold_email, keyed_hash, stored_time

ENROLMENT = "enrolment"  # the kind of invitation that a new member gets, once


def decide_invitation(
    *,
    is_new: bool,
    has_email: bool,
    suppressed: bool,
    expired: bool,
    asked: bool,
    batches_enabled: bool | None,
) -> InvitationDecision:
    """The four rules. The first obstacle in the order below is the reason (docs/decisions/0009).

    `has_email`: an address is present and well-formed. `asked`: invite_immediately, False if
    absent. `batches_enabled`: the account's deliverability setting, None when the account has no
    settings.

    >>> nothing = {"suppressed": False, "expired": False, "batches_enabled": None}
    >>> decide_invitation(is_new=True, has_email=True, asked=True, **nothing)
    <Delivery.IMMEDIATE: 'immediate'>
    >>> decide_invitation(is_new=True, has_email=False, asked=True, **nothing)
    <NotInvitedReason.NO_EMAIL: 'no_email'>
    """
    if not is_new:
        return NotInvitedReason.NOT_NEW
    if not has_email:
        return NotInvitedReason.NO_EMAIL
    if suppressed:
        return NotInvitedReason.SUPPRESSED
    if expired:
        return NotInvitedReason.EXPIRED
    if asked:
        return Delivery.IMMEDIATE  # rules 1 and 3: the account's settings are ignored
    if batches_enabled:
        return Delivery.BATCHED  # rule 4
    # Rule 2. An account without settings never asked for batches; one that switched them off
    # disabled them.
    return NotInvitedReason.NOT_REQUESTED if batches_enabled is None else NotInvitedReason.DISABLED


def find_invitation_context(
    tx: SetTransaction, *, account_ids: Collection[int], addresses: Collection[str]
) -> Callable[[], InvitationContext]:
    """Ask for the accounts' settings and for those of the (folded) addresses that are suppressed.
    Two set reads.

    An address that another account's mail or an operator suppressed is no reason: the answer would
    tell what others know. Its invitation is enqueued, and cancelled when its turn comes.

    Returns a function that gives the context once the round trip has ended.
    """
    settings = find_set(
        tx, deliverability, "account_id", account_ids, columns=("account_id", "enabled")
    )
    suppressed = find_suppressed(tx, addresses)
    return lambda: InvitationContext(
        batches_enabled={row["account_id"]: bool(row["enabled"]) for row in settings.rows},
        suppressed=suppressed(),
    )


def enqueue_invitations(tx: SetTransaction, new: Sequence[NewInvitation], *, now: datetime) -> None:
    """Insert the invitations as `pending`. A member has one of each kind; a second one violates the
    unique key.
    """
    if not new:
        return
    at = stored_time(now)
    defaults = {"kind": ENROLMENT, "state": InvitationState.PENDING.value}
    defaults |= {"created_at": at, "updated_at": at, "due_at": at}
    hasher = keyed_hasher(tx, size=DIGEST_BYTES, person=b"mailbox")
    rows = []
    for invitation in new:
        row = invitation._asdict() | defaults
        folded = fold_email(invitation.address)
        row["delivery"] = invitation.delivery.value
        row["reason"] = invitation.reason.value if invitation.reason is not None else None
        row["address_folded"] = folded
        row["mailbox_digest"] = keyed_hash(mailbox_of(folded), hasher)
        rows.append(row)
    insert_set(tx, invitations, rows)


def move_invitations(tx: SetTransaction, plan_ids: Mapping[int, int]) -> None:
    """Move the invitations of members to the plan that each has now; `plan_ids` by member id.

    Runs in the transaction that moves the members. An invitation moves in any state: a pending one
    names the new plan, a link that was sent leads to it.
    """
    if not plan_ids:
        return
    with one_round_trip(tx):
        found = find_set(tx, invitations, "member_id", plan_ids, columns=("id", "member_id"))
    rows = [{"id": row["id"], "plan_id": plan_ids[row["member_id"]]} for row in found.rows]
    with one_round_trip(tx):
        update_set(tx, invitations, sorted(rows, key=lambda row: int(row["id"])))
