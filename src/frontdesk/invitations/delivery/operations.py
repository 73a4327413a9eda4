"""What is decided about invitations from outside: cancel, resend, settle, keep back; each leaves its mark on the timeline."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from frontdesk.db import Tx
from frontdesk.db.sets import Row
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.changes import InvitationVersion, StateChange, alike, apply
from frontdesk.invitations.model import InvitationState, InvitationStep
from frontdesk.invitations.store import find_of_members, find_suppressed
from frontdesk.text import fold_email

KEPT_TOGETHER = 1000
COOL_DOWN_HOURS = 24  # between two mails to one address that an operator asks for

CANCELLABLE = {InvitationState.PENDING, InvitationState.CLAIMED}
RESENDABLE = {
    InvitationState.SENT,
    InvitationState.FAILED,
    InvitationState.CANCELLED,
    InvitationState.AMBIGUOUS,
}
SETTLEABLE = {InvitationState.AMBIGUOUS}


def get_invitation(tx: Tx, invitation_id: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An invitation and its timeline, oldest step first. Raises NotFound."""
    row = store.find_invitation(tx, invitation_id)
    if row is None:
        raise NotFound("invitation")
    return dict(row), [dict(event) for event in store.events_of(tx, invitation_id)]


def cancel_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """It will not be sent. Raises NotFound, and FrontdeskError when it has left, or may have left, already."""
    row = _locked(tx, invitation_id, CANCELLABLE, "cancelled")
    _change(tx, row, InvitationState.CANCELLED, now=now)


def cancel_of_members(tx: Tx, member_ids: Collection[int], *, now: datetime) -> int:
    """Cancel what has not begun to leave of members that were withdrawn; how many that were.

    One that a worker takes in hand at this moment may leave; each later claim looks at the member.
    """
    changes = [
        (
            StateChange(
                InvitationState(row["state"]),
                InvitationState.CANCELLED,
                InvitationStep.WITHDRAWN,
                closes=True,
            ),
            InvitationVersion(row["id"], row["epoch"]),
        )
        for row in find_of_members(tx, member_ids).rows
        if row["state"] in CANCELLABLE
    ]
    return len(apply(tx, alike(changes), now=now))


def settle_invitation(tx: Tx, invitation_id: int, state: InvitationState, *, now: datetime) -> None:
    """An ambiguous one was looked up: it was `sent`, or it `failed`. Raises NotFound, FrontdeskError."""
    row = _locked(tx, invitation_id, SETTLEABLE, "settled")
    _change(tx, row, state, now=now)


def resend_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """Put it in line again. One that was sent gets a new Message-ID; one that may have been keeps its own.

    Raises NotFound, and FrontdeskError when the address is suppressed or was mailed less than COOL_DOWN_HOURS ago.
    """
    row = _locked(tx, invitation_id, RESENDABLE, "resent")
    address = fold_email(row["address"])
    store.lock_address(tx, address)  # whoever else resends to it now waits, and then sees this one in line
    if find_suppressed(tx, {address}).rows:
        raise FrontdeskError(
            "The address is on the suppression list; `frontdesk suppression remove` takes it off.",
            code="suppressed",
        )
    _refuse_too_soon(tx, row, address, now=now)
    if row["state"] == InvitationState.SENT or row["reason"] == InvitationStep.BY_REPORT:
        # A relay took it once: reports about that mail must not be taken for reports about the new one.
        store.forget_message_id(tx, invitation_id)
    _change(tx, row, InvitationState.PENDING, now=now, due_at=now, afresh=True)


def keep_back(tx: Tx, *, now: datetime) -> int:
    """After a backup was restored: all that would be sent by itself may have been since, so it is ambiguous; how many.

    They stay so until each is settled or resent. What the backup has in hand is in nobody's hand any more, and what it holds
    as ambiguous may have been sent once more.
    """
    return _keep_back(tx, store.find_lapsing, now=now) + _keep_back(tx, store.find_pending, now=now)


class _Find(Protocol):
    def __call__(self, tx: Tx, /, *, after: int, count: int) -> list[Row]: ...


def _keep_back(tx: Tx, find: _Find, *, now: datetime) -> int:
    """Page by page, so that each row is read once; what a worker has settled since its page was read is left alone."""
    count, after = 0, 0
    while rows := find(tx, after=after, count=KEPT_TOGETHER):
        changes = [_kept_back(row, now) for row in rows]
        written = apply(tx, alike(changes), now=now)
        count += sum(
            change.state is InvitationState.AMBIGUOUS and one.id in written for change, one in changes
        )
        after = rows[-1]["id"]
    return count


def _kept_back(row: Row, now: datetime) -> tuple[StateChange, InvitationVersion]:
    state = InvitationState(row["state"])
    change = StateChange(state, InvitationState.AMBIGUOUS, InvitationStep.RESTORED, closes=True)
    if state is InvitationState.CLAIMED:
        change = replace(
            change, state=InvitationState.PENDING, reason=InvitationStep.LEASE_LAPSED, due_at=now
        )
    elif state is not InvitationState.AMBIGUOUS:
        change = replace(change, losses=row["losses"] + 1)
    return change, InvitationVersion(row["id"], row["epoch"])


def _refuse_too_soon(tx: Tx, row: Row, address: str, *, now: datetime) -> None:
    """Counted per address: other members, of other accounts too, may have the same one.

    The line comes first: what leaves it in between is then among what was mailed.
    """
    if store.is_in_line(tx, address):
        raise FrontdeskError("Another invitation to the address is in line already.", code="already_pending")
    since = now - timedelta(hours=COOL_DOWN_HOURS)
    mailed = [row["offered_at"], *store.find_mailed(tx, address)]
    if any(offered_at is not None and offered_at > since for offered_at in mailed):
        raise FrontdeskError(
            f"The address was mailed less than {COOL_DOWN_HOURS} hours ago; wait until then.",
            code="mailed_recently",
        )


def _locked(tx: Tx, invitation_id: int, states: set[InvitationState], done: str) -> Row:
    row = store.lock_invitation(tx, invitation_id)
    if row is None:
        raise NotFound("invitation")
    if row["state"] not in states:
        names = ", ".join(sorted(states))
        raise FrontdeskError(
            f"The invitation is {row['state']}; only these can be {done}: {names}.", code="wrong_state"
        )
    return row


def _change(
    tx: Tx,
    row: Row,
    state: InvitationState,
    *,
    now: datetime,
    due_at: datetime | None = None,
    afresh: bool = False,
) -> None:
    number = 0 if afresh else None
    change = StateChange(
        InvitationState(row["state"]),
        state,
        InvitationStep.BY_OPERATOR,
        due_at,
        closes=True,
        attempts=number,
        losses=number,
    )
    apply(tx, [(change, [InvitationVersion(row["id"], row["epoch"])])], now=now)
