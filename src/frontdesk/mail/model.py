"""The way out for mail: what a letter is, and how a relay is spoken to step by step; it knows no invitation.

A conversation is driven in two steps, because what goes wrong means different things before and after the content has
been handed over: up to RCPT a failure is definite, nothing was sent. Once the content is out, a lost answer is ambiguous.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MailMessage:
    """One message to one recipient. `content` is RFC 5322 bytes with CRLF line ends, `message_id` has no <>."""

    sender: str
    recipient: str
    message_id: str
    content: bytes


# Replies about us and not about a letter: the relay shuts down; it wants a login, or another one, or TLS (RFC 4954). But
# some relays say the latter about a single recipient, where nothing is wrong with us.
_SHUT_DOWN = 421
_WANTS_LOGIN = {530, 534, 535, 538}
_OF_A_RECIPIENT = ("recipient", "data", "content")


class RelayRefused(Exception):
    """The relay has definitely not taken the letter. `code` is its reply code, None when there was no reply.

    `stage` is the step that failed: connect, greeting, hello, starttls, login, sender, recipient, data, content.
    `cause` is the kind of error where there was no reply. Never holds the relay's words: they often repeat the address.
    `trusted`: the relay has taken a letter on this connection before.
    """

    def __init__(
        self,
        stage: str,
        *,
        permanent: bool,
        code: int | None = None,
        cause: str | None = None,
        trusted: bool = False,
    ) -> None:
        super().__init__(f"refused at {stage}" + (f" with {code}" if code is not None else ""))
        self.stage = stage
        self.permanent = permanent and code not in _WANTS_LOGIN  # a login can be mended
        self.code = code
        self.cause = cause
        self.trusted = trusted

    @property
    def of_this_letter(self) -> bool:
        """Whether the reply is about this letter; else the relay as a whole is out of order and others would fail too."""
        if self.code in _WANTS_LOGIN:
            return self.trusted and self.after_sender
        return (self.stage == "sender" or self.after_sender) and self.code != _SHUT_DOWN

    @property
    def after_sender(self) -> bool:
        """Whether the relay knew the letter's recipient: what it said may have been about that one, whatever it seems to be."""
        return self.stage in _OF_A_RECIPIENT


class AnswerLost(Exception):
    """The letter was handed over and the answer was lost: it may or may not have been taken. The connection is closed."""

    def __init__(self, stage: str = "content") -> None:
        super().__init__(f"no answer at {stage}")
        self.stage = stage


class MailSession(Protocol):
    """One connection to a relay, for one letter at a time. `offer` then `finish` or `abandon`, any number of times."""

    def offer(self, letter: MailMessage) -> None:
        """Everything up to and including RCPT; connects first if need be. Raises Refused."""

    def finish(self) -> int:
        """DATA and the content of the letter that was offered; the code of the reply that accepted it.

        Raises Refused when it was definitely not taken, Lost when that is not known.
        """

    def abandon(self) -> None:
        """Take back the letter that was offered: nothing of it has been sent. Never raises."""

    def close(self) -> None:
        """Say goodbye, if the connection is still there. Never raises."""


class Mailer(Protocol):
    """Where letters go: a relay, the sandbox's catcher, a test's memory."""

    def open(self) -> MailSession:
        """A conversation, which connects when its first letter is offered."""


__all__ = ["AnswerLost", "MailMessage", "MailSession", "Mailer", "RelayRefused"]
