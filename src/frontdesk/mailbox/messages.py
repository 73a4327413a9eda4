"""Finds and decodes what the sandbox caught."""

import email
import email.policy
from email.message import EmailMessage

from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.mailbox import store
from frontdesk.mailbox.model import CaughtMessage, DecodedMessage


def get_message(tx: Tx, id_: int) -> CaughtMessage:
    """Raises NotFound."""
    message = store.find_message(tx, id_)
    if message is None:
        raise NotFound("message")
    return message


def decode_message(content: bytes) -> DecodedMessage:
    """The mail as a person reads it. Any bytes can be decoded."""
    message = email.message_from_bytes(content, policy=email.policy.default)
    headers = tuple((name, str(value)) for name, value in message.items())
    return DecodedMessage(headers, _part(message, "plain") or "", _part(message, "html"))


def _part(message: EmailMessage, kind: str) -> str | None:
    part = message.get_body((kind,))
    return None if part is None else str(part.get_content())
