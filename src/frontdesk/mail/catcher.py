"""The sandbox's relay: no letter leaves, each is handed to a mailbox; some addresses act as bad ones do. It knows no database."""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from frontdesk.mail.model import MailMessage, RelayRefused

SLOW_SECONDS = 10
ACCEPTED, COME_LATER = 250, 451


class CaughtOutcome(StrEnum):
    """What became of a letter in the sandbox. Addresses `bounce@…`, `complaint@…`, `slow@…`, `greylist@…` act, in any domain."""

    CAUGHT = "caught"
    BOUNCED = "bounced"  # taken, and reported as undeliverable a moment later
    COMPLAINED = "complained"  # taken, and reported as unwanted
    SLOW = "slow"  # taken after SLOW_SECONDS
    GREYLISTED = "greylisted"  # put off once, taken the next time


ACTING = {
    "bounce": CaughtOutcome.BOUNCED,
    "complaint": CaughtOutcome.COMPLAINED,
    "slow": CaughtOutcome.SLOW,
    "greylist": CaughtOutcome.GREYLISTED,
}


class Mailbox(Protocol):
    """Where caught letters are kept."""

    def keep(self, letter: MailMessage, outcome: CaughtOutcome) -> None: ...

    def has_seen(self, message_id: str) -> bool:
        """Whether a letter with this Message-ID was put off or kept before."""


class MailCatcher:
    """A Mailer that catches every letter."""

    def __init__(self, mailbox: Mailbox, pause: Callable[[float], None] = time.sleep) -> None:
        self._mailbox = mailbox
        self._pause = pause

    def open(self) -> "CatcherSession":
        return CatcherSession(self._mailbox, self._pause)


class CatcherSession:
    """Speaks as a relay would, one letter at a time."""

    def __init__(self, mailbox: Mailbox, pause: Callable[[float], None]) -> None:
        self._mailbox = mailbox
        self._pause = pause
        self._offered: MailMessage | None = None

    def offer(self, letter: MailMessage) -> None:
        """Raises Refused the first time for an address that is greylisted."""
        outcome = outcome_for(letter.recipient)
        if outcome is CaughtOutcome.GREYLISTED and not self._mailbox.has_seen(letter.message_id):
            self._mailbox.keep(letter, CaughtOutcome.GREYLISTED)
            raise RelayRefused("recipient", permanent=False, code=COME_LATER)
        self._offered = letter

    def finish(self) -> int:
        letter, self._offered = self._offered, None
        if letter is None:
            raise RelayRefused("data", permanent=False)
        outcome = outcome_for(letter.recipient)
        if outcome is CaughtOutcome.SLOW:
            self._pause(SLOW_SECONDS)
        self._mailbox.keep(letter, CaughtOutcome.CAUGHT if outcome is CaughtOutcome.GREYLISTED else outcome)
        return ACCEPTED

    def abandon(self) -> None:
        self._offered = None

    def close(self) -> None:
        self._offered = None


def outcome_for(recipient: str) -> CaughtOutcome:
    """What the address does: `Bounce+anything@example.com` acts like `bounce@example.com`."""
    local = recipient.rpartition("@")[0].lower().partition("+")[0]
    return ACTING.get(local, CaughtOutcome.CAUGHT)
