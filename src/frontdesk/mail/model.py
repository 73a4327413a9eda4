"""A message, a session with a relay, and what can go wrong in it.

A session sends each message in two steps, because a failure means different things before and after
the content is handed over. Up to RCPT a failure is definite: nothing was sent. Once the content is
out, a lost answer leaves it open.
"""

from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Protocol

from frontdesk.mail.status import is_about_content, is_about_policy, is_about_sender


@dataclass(frozen=True, slots=True)
class MailMessage:
    """One message to one recipient. `content` is RFC 5322 bytes with CRLF line ends, `message_id`
    has no <>.
    """

    sender: str
    recipient: str
    message_id: str
    content: bytes


RELAY_WORDS = 500  # characters that are kept of a reply
RelayReply = tuple[int, str | None]  # its code and words
SHUT_DOWN = 421  # the relay ends the session
_TOO_LARGE = 552  # RFC 5321, RFC 1870
# The relay wants a login, another one, or TLS (RFC 4954). Some relays answer so about a single
# recipient, too.
_WANTS_LOGIN = {530, 534, 535, 538}


class CertificateFault(StrEnum):
    """What is wrong with a relay's certificate; the `cause` of a RelayRefused."""

    UNKNOWN_CA = "certificate_unknown_ca"
    WRONG_NAME = "certificate_wrong_name"
    EXPIRED = "certificate_expired"
    NOT_YET_VALID = "certificate_not_yet_valid"
    OTHER = "certificate_refused"


@dataclass(eq=False)
class RelayRefused(Exception):
    """The relay has definitely not taken the message. `code` is its reply code, None when there was
    no reply.

    `stage` is the step that failed: connect, greeting, hello, starttls, login, sender, recipient,
    data, content. `cause` is the kind of error where there was no reply, or a CertificateFault.
    `words` are the relay's own: they often repeat the address, so no log and no message of the
    service has them. `trusted`: the relay has taken a message on this connection before.
    """

    stage: str
    _: KW_ONLY
    permanent: bool
    code: int | None = None
    cause: str | None = None
    trusted: bool = False
    words: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # an operator can correct a login
        self.permanent = self.permanent and self.code not in _WANTS_LOGIN

    @property
    def is_about_message(self) -> bool:
        """False when the relay as a whole is out of order, so that other messages would fail too."""
        if self.code in _WANTS_LOGIN:
            return self.trusted and self.recipient_was_sent
        if self.code == SHUT_DOWN:
            return False
        if self.stage == "sender":
            # All messages have one sender in the envelope. Of the message the relay knows the size
            # and the kind of characters.
            return self.code == _TOO_LARGE or is_about_content(self.words)
        # Postfix refuses the sender at the recipient (smtpd_delay_reject).
        is_of_sender = self.stage == "recipient" and is_about_sender(self.words)
        return self.recipient_was_sent and not is_of_sender

    @property
    def may_be_about_all(self) -> bool:
        """Whether a refusal for good may be about each message, however it is addressed: the relay
        has accepted the recipient, or gives its policy as the reason. The refusals of other
        messages decide.
        """
        if not (self.permanent and self.is_about_message):
            return False
        is_of_policy = self.stage == "recipient" and is_about_policy(self.words)
        return self.stage in ("sender", "data", "content") or is_of_policy

    @property
    def recipient_was_sent(self) -> bool:
        """Whether the relay knew the recipient: its reply may be about that address, whatever the
        code says.
        """
        return self.stage in ("recipient", "data", "content")


class AnswerLost(Exception):
    """The content was sent and no answer came: the relay may or may not have taken it. The
    connection is closed.
    """


class MailSession(Protocol):
    """One connection to a relay, for one message at a time: `offer`, then `finish` or `abandon`,
    any number of times.
    """

    def offer(self, message: MailMessage) -> None:
        """Everything up to and including RCPT; connects first if need be. Raises RelayRefused."""

    def finish(self) -> RelayReply:
        """Send DATA and the content of the offered message; returns the reply that accepted it.

        Raises RelayRefused when the relay has definitely not taken it, AnswerLost when that is not
        known.
        """

    def abandon(self) -> None:
        """Take back the offered message: nothing of it has been sent. Never raises."""

    def close(self) -> None:
        """End the session with QUIT, if the connection is still open. Never raises."""


class Mailer(Protocol):
    """Where messages go: a relay, the sandbox's catcher, a test's memory."""

    def open(self) -> MailSession:
        """A session, which connects when its first message is offered."""
