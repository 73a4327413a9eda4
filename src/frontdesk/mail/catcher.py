"""The sandbox's relay: catches every message in a mailbox. Some addresses act as bad ones do."""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from frontdesk.mail.model import MailMessage, RelayRefused

SLOW_SECONDS = 10
_ACCEPTED, _TRY_LATER = 250, 451


class CaughtOutcome(StrEnum):
    """What became of a message in the sandbox."""

    CAUGHT = "caught"
    BOUNCED = "bounced"  # taken, and reported as undeliverable a moment later
    COMPLAINED = "complained"  # taken, and reported as unwanted
    SLOW = "slow"  # taken after SLOW_SECONDS
    GREYLISTED = "greylisted"  # refused once, taken the next time


# Local parts of addresses that act, in any domain.
ACTING = {
    "bounce": CaughtOutcome.BOUNCED,
    "complaint": CaughtOutcome.COMPLAINED,
    "slow": CaughtOutcome.SLOW,
    "greylist": CaughtOutcome.GREYLISTED,
}


class Mailbox(Protocol):
    """Where caught messages are stored."""

    def keep(self, message: MailMessage, outcome: CaughtOutcome) -> None: ...

    def has_seen(self, message_id: str) -> bool:
        """Whether a message with this Message-ID was greylisted or caught before."""


class MailCatcher:
    """A Mailer that catches every message."""

    def __init__(self, mailbox: Mailbox, sleep: Callable[[float], None] = time.sleep) -> None:
        self._mailbox = mailbox
        self._sleep = sleep

    def open(self) -> "CatcherSession":
        return CatcherSession(self._mailbox, self._sleep)


class CatcherSession:
    """Answers as a relay would, one message at a time."""

    def __init__(self, mailbox: Mailbox, sleep: Callable[[float], None]) -> None:
        self._mailbox = mailbox
        self._sleep = sleep
        self._offered: MailMessage | None = None

    def offer(self, message: MailMessage) -> None:
        """Raises RelayRefused the first time for an address that is greylisted."""
        outcome = outcome_for(message.recipient)
        if outcome is CaughtOutcome.GREYLISTED and not self._mailbox.has_seen(message.message_id):
            self._mailbox.keep(message, CaughtOutcome.GREYLISTED)
            raise RelayRefused("recipient", permanent=False, code=_TRY_LATER)
        self._offered = message

    def finish(self) -> int:
        message, self._offered = self._offered, None
        if message is None:
            raise RelayRefused("data", permanent=False)
        outcome = outcome_for(message.recipient)
        if outcome is CaughtOutcome.SLOW:
            self._sleep(SLOW_SECONDS)
        self._mailbox.keep(message, CaughtOutcome.CAUGHT if outcome is CaughtOutcome.GREYLISTED else outcome)
        return _ACCEPTED

    def abandon(self) -> None:
        self._offered = None

    def close(self) -> None:
        self._offered = None


def outcome_for(recipient: str) -> CaughtOutcome:
    """What the address does: `Bounce+anything@example.com` acts like `bounce@example.com`."""
    local = recipient.rpartition("@")[0].lower().partition("+")[0]
    return ACTING.get(local, CaughtOutcome.CAUGHT)
