"""Delivery reports: what happened to a message after the relay took it, and what follows from that.

A report settles an unclear delivery and may suppress the address, however it came (docs/invitations.md, "What comes back").
A report that comes twice counts once; one about a message that is not ours changes nothing.
"""

import re
from collections.abc import Collection
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.invitations import store
from frontdesk.invitations.delivery.changes import apply_changes
from frontdesk.invitations.delivery.model import InvitationEvent, StateChange
from frontdesk.invitations.delivery.store import insert_event
from frontdesk.invitations.model import (
    DeliveryReport,
    Invitation,
    InvitationState,
    InvitationStep,
    ReportEffect,
    ReportEvent,
    SuppressionReason,
)

MESSAGE_ID_LENGTH = 255
_MESSAGE_ID = re.compile(r"\s*<([!-;=?-~]+@[!-;=?-~]+)>\s*")
_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")

# Permanent failures that say nothing against the address (RFC 3463): a full mailbox, a message that is too large, the
# sender's own address or reputation, a system or protocol fault, the content.
_NOT_THE_ADDRESS = re.compile(r"5\.(?:1\.[78]|2\.[23]|3\.[0-9]+|5\.[0-9]+|6\.[0-9]+|7\.[0-9]+)")


def receive_report(tx: Tx, report: DeliveryReport, *, now: datetime) -> ReportEffect:
    """Store the report and apply what follows from it, once.

    A repeated one still settles an unclear delivery: the first may have come at a moment when it could not.
    """
    invitation = store.lock_by_message_id(tx, report.message_id)
    if invitation is None:
        return ReportEffect.UNKNOWN
    if report.event is ReportEvent.DELAYED:
        return ReportEffect.NO_NEWS
    is_new = store.insert_report(tx, report, invitation_id=invitation.id, now=now)
    if not (is_new or _is_unclear(invitation)):
        return ReportEffect.KNOWN
    state = _settle(tx, invitation, report, now)
    if not is_new:
        return ReportEffect.KNOWN if state is invitation.state else ReportEffect.APPLIED
    if report.event is ReportEvent.COMPLAINED:
        _suppress(tx, invitation, SuppressionReason.COMPLAINT, now)
        step = InvitationEvent(now, state, state, InvitationStep.COMPLAINED, None)
        insert_event(tx, invitation.id, step)
    elif report.event is ReportEvent.BOUNCED and is_hard_bounce(report):
        _suppress(tx, invitation, SuppressionReason.HARD_BOUNCE, now)
    return ReportEffect.APPLIED


def _suppress(tx: Tx, invitation: Invitation, reason: SuppressionReason, now: datetime) -> None:
    store.suppress(tx, invitation.address, reason, now=now, account_id=invitation.account_id)


def apply_early_reports(tx: Tx, message_ids: Collection[str], *, now: datetime) -> None:
    """Apply what was reported about these messages while their workers still waited for the relay's answer.

    Runs in the transaction that stores the answers, or that they never came: a relay that calls back can be faster than
    its answer, and than the end of a killed worker's lease.
    """
    for report in store.find_reports(tx, message_ids):
        invitation = store.lock_by_message_id(tx, report.message_id)
        if invitation is not None:
            _settle(tx, invitation, report, now)


def _settle(tx: Tx, invitation: Invitation, report: DeliveryReport, now: datetime) -> InvitationState:
    """Step 7 of the delivery protocol: the report brings the relay's lost answer, or what came after it.

    Returns the state that the invitation is in then.
    """
    state = invitation.state
    if invitation.message_id != report.message_id:
        return state  # it is about a message before the present one
    bounced = report.event is ReportEvent.BOUNCED
    if not (_is_unclear(invitation) or (bounced and state is InvitationState.SENT)):
        return state
    settled = InvitationState.FAILED if bounced else InvitationState.SENT
    change = StateChange(state, settled, InvitationStep.BY_REPORT, closes=True)
    apply_changes(tx, [(change, invitation)], now=now)
    return settled


def _is_unclear(invitation: Invitation) -> bool:
    """Whether the relay's answer was lost, and no attempt is under way that brings another."""
    in_line = invitation.state in (InvitationState.PENDING, InvitationState.CLAIMED)
    return invitation.state is InvitationState.AMBIGUOUS or (in_line and invitation.losses > 0)


def is_hard_bounce(report: DeliveryReport) -> bool:
    """Whether a final failure speaks against the address itself: the relay's own judgement, else by the status.

    Without a status it does.
    """
    if report.permanent is not None:
        return report.permanent
    status = report.status
    return status is None or (status.startswith("5") and not _NOT_THE_ADDRESS.fullmatch(status))


def read_message_id(text: str) -> str | None:
    """The Message-ID without its angle brackets; None when there is not exactly one."""
    found = _MESSAGE_ID.fullmatch(text) if len(text) <= MESSAGE_ID_LENGTH else None
    return None if found is None else found.group(1)


def read_status(text: str) -> str | None:
    """The enhanced status code; None when the text is none."""
    return text if _STATUS.fullmatch(text) else None
