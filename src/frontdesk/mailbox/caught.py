"""What the sandbox caught instead of sending: keeping it, finding it, reading it; it knows no page and no terminal."""

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

# What the reporting addresses bring about, at once. 5.1.1: there is no such mailbox.
_REPORTS = {
    CaughtOutcome.BOUNCED: (ReportEvent.BOUNCED, "5.1.1"),
    CaughtOutcome.COMPLAINED: (ReportEvent.COMPLAINED, None),
}


@dataclass(frozen=True, slots=True)
class CaughtMessage:
    """A mail as it would have left. `content` is RFC 5322 bytes."""

    id: int
    message_id: str
    sender: str
    recipient: str
    outcome: str
    content: bytes
    caught_at: datetime


@dataclass(frozen=True, slots=True)
class DecodedMail:
    """A mail as a person reads it: all its headers, decoded, and its parts."""

    headers: tuple[tuple[str, str], ...]
    text: str
    html: str | None

    @property
    def subject(self) -> str:
        return next((value for name, value in self.headers if name == "Subject"), "")


class CatchingMailbox:
    """The mailbox of the Catcher, which stands for a relay outside: each mail is kept in a transaction of its own."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def keep(self, letter: MailMessage, outcome: CaughtOutcome) -> None:
        write_alone(self._db, lambda tx: _keep(tx, letter, outcome, now=self._clock()))

    def has_seen(self, message_id: str) -> bool:
        return self._db.ask(lambda tx: store.has_message_id(tx, message_id))


def _keep(tx: Tx, letter: MailMessage, outcome: CaughtOutcome, *, now: datetime) -> bool:
    row = {
        "message_id": letter.message_id,
        "sender": letter.sender,
        "recipient": letter.recipient,
        "outcome": outcome.value,
        "content": letter.content,
        "caught_at": now,
    }
    store.insert_message(tx, row)
    if outcome in _REPORTS:
        event, status = _REPORTS[outcome]
        receive_report(tx, DeliveryReport(letter.message_id, event, status), now=now)
    return True


def catcher(db: Database, clock: Clock) -> MailCatcher:
    """The Mailer of a sandbox without a relay."""
    return MailCatcher(CatchingMailbox(db, clock))


def list_messages(tx: Tx, *, before_id: int | None = None, limit: int = 100) -> list[CaughtMessage]:
    """The newest first; `before_id` goes on from there."""
    return [CaughtMessage(**row) for row in store.newest_messages(tx, before_id=before_id, limit=limit)]


def get_message(tx: Tx, id_: int) -> CaughtMessage:
    """Raises NotFound."""
    row = store.find_message(tx, id_)
    if row is None:
        raise NotFound("message")
    return CaughtMessage(**row)


def clear_messages(tx: Tx) -> int:
    """Throw all of them away; how many there were."""
    return store.delete_messages(tx)


def read_content(content: bytes) -> DecodedMail:
    """The mail as a person reads it."""
    message = email.message_from_bytes(content, policy=email.policy.default)
    headers = tuple((name, str(value)) for name, value in message.items())
    return DecodedMail(headers, _part(message, "plain") or "", _part(message, "html"))


def _part(message: EmailMessage, kind: str) -> str | None:
    part = message.get_body((kind,))
    return None if part is None else str(part.get_content())
