"""What a caught mail is, as stored and as a person reads it."""

import email.policy
from datetime import datetime
from email.parser import BytesParser
from enum import StrEnum
from typing import NamedTuple


class CaughtOutcome(StrEnum):
    """What became of a message in the sandbox."""

    CAUGHT = "caught"
    BOUNCED = "bounced"  # taken, and reported as undeliverable a moment later
    FULL = "full"  # taken, and reported as undeliverable: the mailbox is full
    COMPLAINED = "complained"  # taken, and reported as unwanted
    SLOW = "slow"  # taken after 10 s
    GREYLISTED = "greylisted"  # refused once, taken the next time
    REFUSED = "refused"  # refused for good, before its content was sent


class CaughtMessage(NamedTuple):
    """A mail as it would have left; the fields are the columns of its table. `content` is RFC 5322
    bytes.
    """

    id: int
    message_id: str
    sender: str
    recipient: str
    outcome: str
    content: bytes
    caught_at: datetime

    @property
    def subject(self) -> str:
        return decode_message(self.content).subject


class DecodedMessage(NamedTuple):
    """All headers, decoded, and the two parts; `text` is "" and `html` None where there is none."""

    headers: tuple[tuple[str, str], ...]
    subject: str
    text: str
    html: str | None


def decode_message(content: bytes) -> DecodedMessage:
    """The mail as a person reads it. Any bytes can be decoded."""
    message = BytesParser(policy=email.policy.default).parsebytes(content)
    headers = tuple((name, str(value)) for name, value in message.items())
    bodies = map(message.get_body, (("plain",), ("html",)))
    text, html = (None if body is None else str(body.get_content()) for body in bodies)
    return DecodedMessage(headers, str(message["Subject"] or ""), text or "", html)
