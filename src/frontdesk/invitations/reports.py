"""What happened to a mail after the relay took it, and what follows: an unclear delivery is settled, an address suppressed.

It does not know whether a report came as a bounce or from a relay that calls back. A report that comes twice counts once, and
one about a mail that is not ours changes nothing.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations import letter_store
from frontdesk.invitations.delivery import change_store
from frontdesk.invitations.delivery.changes import InvitationVersion, StateChange, apply
from frontdesk.invitations.states import InvitationState, InvitationStep
from frontdesk.invitations.suppression import SuppressionReason, suppress

MESSAGE_ID_LENGTH = 255
_MESSAGE_ID = re.compile(r"\s*<([!-;=?-~]+@[!-;=?-~]+)>\s*")
_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")

# Permanent failures that say nothing against the address (RFC 3463): a full mailbox, a message that is too large, the
# sender's own address or reputation, a system or protocol fault, the content.
_NOT_THE_ADDRESS = re.compile(r"5\.(?:1\.[78]|2\.[23]|3\.[0-9]+|5\.[0-9]+|6\.[0-9]+|7\.[0-9]+)")


class ReportEvent(StrEnum):
    """What a report says; of several in one report the first of these counts."""

    BOUNCED = "bounced"
    COMPLAINED = "complained"
    DELAYED = "delayed"
    DELIVERED = "delivered"


class Effect(StrEnum):
    APPLIED = "applied"
    KNOWN = "known"  # the same was reported before
    UNKNOWN = "unknown"  # no mail of ours has this Message-ID
    NO_NEWS = "no_news"  # a delay: the relay goes on trying


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """One event of the mail with this Message-ID (without <>).

    `status` is the enhanced status code (RFC 3463), if any was told; `permanent` is what the relay makes of a bounce itself.
    """

    message_id: str
    event: ReportEvent
    status: str | None = None
    permanent: bool | None = None


def receive_report(tx: Tx, report: DeliveryReport, *, now: datetime) -> Effect:
    """Take note of the report and do what follows from it, once.

    A repeated one still settles a mail that is unclear: the first may have come at a moment when it could not.
    """
    mail = letter_store.find_by_message_id(tx, report.message_id)
    if mail is None:
        return Effect.UNKNOWN
    if report.event is ReportEvent.DELAYED:
        return Effect.NO_NEWS
    row = {
        "message_id": report.message_id,
        "kind": report.event.value,
        "invitation_id": mail["id"],
        "status": report.status,
        "received_at": now,
    }
    if not letter_store.insert_report(tx, row):
        settles = _is_unclear(mail) and _settle(tx, mail, report, now) is not InvitationState(mail["state"])
        return Effect.APPLIED if settles else Effect.KNOWN
    state = _settle(tx, mail, report, now)
    if report.event is ReportEvent.COMPLAINED:
        suppress(tx, mail["address"], SuppressionReason.COMPLAINT, now=now)
        _note_complaint(tx, mail["id"], state, now)
    elif report.event is ReportEvent.BOUNCED and _is_hard(report):
        suppress(tx, mail["address"], SuppressionReason.HARD_BOUNCE, now=now)
    return Effect.APPLIED


def heed_early_reports(tx: Tx, message_ids: Collection[str], *, now: datetime) -> None:
    """Let count what was reported about these mails while their workers still waited for the relay's answer.

    Called in the transaction that writes down the answers, or that they never came: a relay that calls back can be faster
    than its answer, and than the end of a killed worker's lease.
    """
    for row in letter_store.find_reports(tx, message_ids):
        mail = letter_store.find_by_message_id(tx, row["message_id"])
        if mail is not None:
            _settle(tx, mail, DeliveryReport(row["message_id"], ReportEvent(row["kind"]), row["status"]), now)


def _settle(tx: Tx, mail: Mapping[str, Any], report: DeliveryReport, now: datetime) -> InvitationState:
    """Step 7 of the delivery protocol: the report tells what the relay's lost answer did not, or what came after it.

    The state that the invitation is in then.
    """
    state = InvitationState(mail["state"])
    if mail["message_id"] != report.message_id:
        return state  # it is about a mail before the present one
    bounced = report.event is ReportEvent.BOUNCED
    if not (_is_unclear(mail) or (bounced and state is InvitationState.SENT)):
        return state
    settled = InvitationState.FAILED if bounced else InvitationState.SENT
    change = StateChange(state, settled, InvitationStep.BY_REPORT, closes=True)
    apply(tx, [(change, [InvitationVersion(mail["id"], mail["epoch"])])], now=now)
    return settled


def _is_unclear(mail: Mapping[str, Any]) -> bool:
    """Whether the relay's answer was lost, and no attempt is under way that brings another."""
    state = InvitationState(mail["state"])
    return state is InvitationState.AMBIGUOUS or (
        state in (InvitationState.PENDING, InvitationState.CLAIMED) and mail["losses"] > 0
    )


def _note_complaint(tx: Tx, invitation_id: int, state: InvitationState, now: datetime) -> None:
    event = {
        "invitation_id": invitation_id,
        "at": stored_time(now),
        "from_state": state.value,
        "to_state": state.value,
        "reason": InvitationStep.COMPLAINED.value,
        "code": None,
    }
    change_store.insert_events(tx, [event])


def _is_hard(report: DeliveryReport) -> bool:
    return is_hard_bounce(report.status) if report.permanent is None else report.permanent


def is_hard_bounce(status: str | None) -> bool:
    """Whether a final failure means that the address itself is no good. Without a status it is taken to."""
    return status is None or (status.startswith("5") and not _NOT_THE_ADDRESS.fullmatch(status))


def read_message_id(text: str) -> str | None:
    """The Message-ID without its angle brackets; None when there is not exactly one."""
    found = _MESSAGE_ID.fullmatch(text) if len(text) <= MESSAGE_ID_LENGTH else None
    return None if found is None else found.group(1)


def read_status(text: str) -> str | None:
    """The enhanced status code; None when it is none."""
    return text if _STATUS.fullmatch(text) else None
