"""Delivery reports: what happened to a message after the relay took it, what follows from that, and
reports that come as mail.

A report settles an unclear delivery and may suppress the address, however it came
(docs/invitations.md, "Process bounces and complaints"). One that comes twice counts once; one about
a message that is not ours changes nothing. By mail come bounces (RFC 3464) and complaints (RFC
5965). A Message-ID of ours, 128 random bits or more, proves that the reporter has seen the mail; a
bounce can carry no other proof. The address that a report names is never used.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from email.errors import MessageError
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from typing import BinaryIO

from frontdesk.db import Tx
from frontdesk.invitations.model import (
    DeliveryReport,
    InvitationEvent,
    InvitationStep,
    ReportEffect,
    ReportEvent,
    SuppressionReason,
)
from frontdesk.invitations.protocol import is_unclear, note_suppressed, settle_by_report
from frontdesk.invitations.store import queries, suppressions
from frontdesk.mail.status import read_status

MESSAGE_ID_LENGTH = 255
# The part before the first @ that is not the first character has no other @, so there is one way to
# match.
_MESSAGE_ID = re.compile(r"\s*<([!-;=?-~][!-;=?A-~]*@[!-;=?-~]+)>\s*")

# Permanent failures that say nothing against the address (RFC 3463): a full mailbox, a message that
# is too large, the sender's own address or reputation, a system or protocol fault, the content.
_NOT_THE_ADDRESS = re.compile(r"5\.(?:1\.[78]|2\.[23]|3\.[0-9]+|5\.[0-9]+|6\.[0-9]+|7\.[0-9]+)")


def receive_report(tx: Tx, report: DeliveryReport, *, now: datetime) -> ReportEffect:
    """Store the report and apply what follows from it, once.

    A repeated one still settles an unclear delivery: the first may have come at a moment when it
    could not.
    """
    invitation = queries.lock_by_message_id(tx, report.message_id)
    if invitation is None:
        return ReportEffect.UNKNOWN
    if report.event is ReportEvent.DELAYED:
        return ReportEffect.NO_NEWS
    is_new = queries.insert_report(tx, report, invitation_id=invitation.id, now=now)
    if not (is_new or is_unclear(invitation)):
        return ReportEffect.KNOWN
    state = settle_by_report(tx, invitation, report, now=now)
    if not is_new:
        return ReportEffect.KNOWN if state is invitation.state else ReportEffect.APPLIED
    reason = None
    if report.event is ReportEvent.COMPLAINED:
        reason = SuppressionReason.COMPLAINT
        step = InvitationEvent(now, state, state, InvitationStep.COMPLAINED, None)
        queries.insert_event(tx, invitation.id, step)
    elif report.event is ReportEvent.BOUNCED and is_hard_bounce(report):
        reason = SuppressionReason.HARD_BOUNCE
    if reason is not None:
        suppressions.suppress(
            tx, invitation.address, reason, now=now, account_id=invitation.account_id
        )
        note_suppressed(tx, invitation, now=now)
    return ReportEffect.APPLIED


def is_hard_bounce(report: DeliveryReport) -> bool:
    """Whether a final failure speaks against the address itself: the relay's own judgement, else by
    the status.

    Without a status it does.

    >>> is_hard_bounce(DeliveryReport("1@example.com", ReportEvent.BOUNCED, "5.1.1"))
    True
    >>> is_hard_bounce(DeliveryReport("1@example.com", ReportEvent.BOUNCED, "4.4.7"))
    False
    """
    if report.permanent is not None:
        return report.permanent
    status = report.status
    return status is None or (status.startswith("5") and not _NOT_THE_ADDRESS.fullmatch(status))


def read_message_id(text: str) -> str | None:
    """The Message-ID without its angle brackets; None when there is not exactly one.

    >>> read_message_id("<1@mail.example.com>")
    '1@mail.example.com'
    >>> read_message_id("<1@mail.example.com> <2@mail.example.com>") is None
    True
    """
    found = _MESSAGE_ID.fullmatch(text) if len(text) <= MESSAGE_ID_LENGTH else None
    return None if found is None else found.group(1)


LARGEST_BYTES = 1_000_000  # read of one message; a bounce can carry a large mail back
_ORIGINALS = {"message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers"}
_STATUSES = {"message/delivery-status", "message/global-delivery-status"}
_LARGEST_PARTS = 20

_ACTIONS = {"failed": ReportEvent.BOUNCED, "delayed": ReportEvent.DELAYED}
_ACTIONS |= dict.fromkeys(("delivered", "relayed", "expanded"), ReportEvent.DELIVERED)


def split_mailbox(stream: BinaryIO) -> Iterator[bytes]:
    """The messages of an mbox stream, or the one message that is there; each cut after
    LARGEST_BYTES.
    """
    lines: list[bytes] = []
    size = 0
    after_blank = True
    for line in stream:
        if after_blank and line.startswith(b"From "):
            if size:
                yield b"".join(lines)
            lines = []
            size = 0
        elif size < LARGEST_BYTES:
            lines.append(line[1:] if line.startswith(b">From ") else line)
            size += len(line)
        after_blank = line in (b"\n", b"\r\n")
    if b"".join(lines).strip():
        yield b"".join(lines)


def parse_report(raw: bytes) -> DeliveryReport | None:
    """What the mail reports about one of ours; None when it is no report, or can't be parsed."""
    try:
        return _parse(BytesParser().parsebytes(raw))
    except (MessageError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # the library fails on some malformed mails


def _parse(message: Message) -> DeliveryReport | None:
    if message.get_content_type() != "multipart/report":
        return None
    parts = _parts(message)[:_LARGEST_PARTS]
    answered_id = read_message_id(str(message.get("In-Reply-To", "")))
    message_id = next(filter(None, map(_original_id, parts)), answered_id)
    if message_id is None:
        return None
    for part in parts:
        kind = part.get_content_type()
        if kind in _STATUSES:
            return _delivery_report(message_id, _blocks(part))
        if kind == "message/feedback-report":
            return _feedback_report(message_id, _blocks(part))
    return None


def _delivery_report(message_id: str, blocks: list[Message]) -> DeliveryReport | None:
    """The worst event of all recipients' blocks. Our mails have one recipient each."""
    reports = [
        DeliveryReport(message_id, event, read_status(_word(block, "Status")))
        for block in blocks
        if (event := _ACTIONS.get(_word(block, "Action"))) is not None
    ]
    order = list(ReportEvent)
    return min(reports, key=lambda report: order.index(report.event), default=None)


def _feedback_report(message_id: str, blocks: list[Message]) -> DeliveryReport | None:
    """A complaint; None for "not-spam", which takes a complaint back and is for people to judge."""
    kinds = {_word(block, "Feedback-Type") for block in blocks}
    return (
        DeliveryReport(message_id, ReportEvent.COMPLAINED)
        if kinds & {"abuse", "fraud", "other"}
        else None
    )


def _original_id(part: Message) -> str | None:
    """The Message-ID of the mail that the report carries back, whole or its headers."""
    if part.get_content_type() not in _ORIGINALS:
        return None
    original = next(iter(_blocks(part)), Message())
    return read_message_id(str(original.get("Message-ID", "")))


def _blocks(part: Message) -> list[Message]:
    """The groups of fields of a report part. The library splits only some parts, so this joins and
    splits them all.
    """
    content = part.get_payload(decode=True)
    text = (
        content
        if isinstance(content, bytes)
        else b"\n\n".join(each.as_bytes() for each in _parts(part))
    )
    groups = text.replace(b"\r\n", b"\n").split(b"\n\n")
    return [BytesHeaderParser().parsebytes(group) for group in groups if group][:_LARGEST_PARTS]


def _parts(message: Message) -> list[Message]:
    payload = message.get_payload()
    return (
        [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []
    )


def _word(block: Message, name: str) -> str:
    """The first word of a field in lower case, without a comment: `failed (mailbox unknown)` is
    `failed`.
    """
    words = str(block.get(name, "")).partition("(")[0].split()
    return words[0].lower() if words else ""
