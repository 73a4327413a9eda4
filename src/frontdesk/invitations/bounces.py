"""Parses delivery reports that come as mail: bounces (RFC 3464) and complaints (RFC 5965), from a mailbox file.

A Message-ID of ours, 128 random bits or more, proves that the reporter has seen the mail; a bounce can carry no other proof.
The address that a report names is never used.
"""

from collections.abc import Iterator
from email.errors import MessageError
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from typing import BinaryIO

from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import read_message_id, read_status

LARGEST_BYTES = 1_000_000  # read of one message; a bounce can carry a large mail back
_ORIGINALS = {"message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers"}
_STATUSES = {"message/delivery-status", "message/global-delivery-status"}
_LARGEST_PARTS = 20

_ACTIONS = {
    "failed": ReportEvent.BOUNCED,
    "delivered": ReportEvent.DELIVERED,
    "relayed": ReportEvent.DELIVERED,
    "expanded": ReportEvent.DELIVERED,
    "delayed": ReportEvent.DELAYED,
}


def split_mailbox(stream: BinaryIO) -> Iterator[bytes]:
    """The messages of an mbox stream, or the one message that is there; each cut after LARGEST_BYTES."""
    lines: list[bytes] = []
    size, after_blank = 0, True
    for line in stream:
        if after_blank and line.startswith(b"From "):
            if size:
                yield b"".join(lines)
            lines, size = [], 0
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
    return DeliveryReport(message_id, ReportEvent.COMPLAINED) if kinds & {"abuse", "fraud", "other"} else None


def _original_id(part: Message) -> str | None:
    """The Message-ID of the mail that the report carries back, whole or its headers."""
    if part.get_content_type() not in _ORIGINALS:
        return None
    original, *_ = _parts(part) or [BytesHeaderParser().parsebytes(_content(part))]
    return read_message_id(str(original.get("Message-ID", "")))


def _blocks(part: Message) -> list[Message]:
    """The groups of fields of a report part. The library splits only some parts, so this joins and splits them all."""
    text = b"\n\n".join([block.as_bytes() for block in _parts(part)] or [_content(part)])
    groups = text.replace(b"\r\n", b"\n").split(b"\n\n")
    return [BytesHeaderParser().parsebytes(group) for group in groups if group][:_LARGEST_PARTS]


def _parts(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _word(block: Message, name: str) -> str:
    """The first word of a field in lower case, without a comment: `failed (mailbox unknown)` is `failed`."""
    words = str(block.get(name, "")).partition("(")[0].split()
    return words[0].lower() if words else ""
