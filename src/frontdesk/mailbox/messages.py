"""Keeps what the sandbox caught instead of sending, and decodes it."""

import email
import email.policy
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import NotFound
from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.mail.catcher import CaughtOutcome, MailCatcher
from frontdesk.mail.model import MailMessage
from frontdesk.mailbox import store
from frontdesk.mailbox.model import CaughtMessage, DecodedMessage

# What the acting addresses report, at once. 5.1.1: there is no such mailbox.
_REPORTS = {
    CaughtOutcome.BOUNCED: (ReportEvent.BOUNCED, "5.1.1"),
    CaughtOutcome.COMPLAINED: (ReportEvent.COMPLAINED, None),
}


@dataclass(frozen=True, slots=True)
class StoredMailbox:
    """The catcher's mailbox. It stands for a relay outside, so it keeps each mail in a transaction of its own."""

    db: Database
    clock: Clock

    def keep(self, message: MailMessage, outcome: CaughtOutcome) -> None:
        write_alone(self.db, lambda tx: _keep(tx, message, outcome, now=self.clock()))

    def has_seen(self, message_id: str) -> bool:
        return self.db.ask(lambda tx: store.has_message_id(tx, message_id))


def _keep(tx: Tx, message: MailMessage, outcome: CaughtOutcome, *, now: datetime) -> None:
    row = {
        "message_id": message.message_id,
        "sender": message.sender,
        "recipient": message.recipient,
        "outcome": outcome.value,
        "content": message.content,
        "caught_at": now,
    }
    store.insert_message(tx, row)
    if outcome in _REPORTS:
        event, status = _REPORTS[outcome]
        receive_report(tx, DeliveryReport(message.message_id, event, status), now=now)


def make_catcher(db: Database, clock: Clock) -> MailCatcher:
    """The Mailer of a sandbox without a relay."""
    return MailCatcher(StoredMailbox(db, clock))


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
