"""The sandbox's relay: catches every message in the mailbox. The outcome of some addresses
is scripted.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.mail.model import MailMessage, RelayRefused, RelayReply
from frontdesk.mailbox import store
from frontdesk.mailbox.model import CaughtOutcome

SLOW_SECONDS = 10

# Local parts of addresses, in any domain, with the outcome of their mails.
SCRIPTED = {
    "bounce": CaughtOutcome.BOUNCED,
    "full": CaughtOutcome.FULL,
    "complaint": CaughtOutcome.COMPLAINED,
    "refuse": CaughtOutcome.REFUSED,
    "slow": CaughtOutcome.SLOW,
    "greylist": CaughtOutcome.GREYLISTED,
}

# What the scripted addresses report, at once. 5.1.1: there is no such mailbox; 5.2.2: it is full.
_REPORTS = {
    CaughtOutcome.BOUNCED: (ReportEvent.BOUNCED, "5.1.1"),
    CaughtOutcome.FULL: (ReportEvent.BOUNCED, "5.2.2"),
    CaughtOutcome.COMPLAINED: (ReportEvent.COMPLAINED, None),
}


@dataclass(slots=True)
class MailCatcher:
    """A Mailer that catches every message, and the session that it opens: answers as a relay would,
    one message at a time.

    It stands for a relay outside, so it keeps each message in a transaction of its own.
    """

    db: Database
    clock: Clock
    sleep: Callable[[float], None] = time.sleep
    _offered: MailMessage | None = None

    def open(self) -> "MailCatcher":
        return replace(self, _offered=None)

    def offer(self, message: MailMessage) -> None:
        """Raises RelayRefused for an address that is refused, and the first time for one that is
        greylisted.
        """
        outcome = outcome_for(message.recipient)
        if outcome is CaughtOutcome.REFUSED:
            self._keep(message, outcome)
            raise RelayRefused("recipient", permanent=True, code=550, words="5.1.1 No such mailbox")
        if outcome is CaughtOutcome.GREYLISTED:
            seen = self.db.ask(lambda tx: store.has_message_id(tx, message.message_id))
            if not seen:
                self._keep(message, CaughtOutcome.GREYLISTED)
                raise RelayRefused("recipient", permanent=False, code=451, words="4.7.1 Greylisted")
        self._offered = message

    def finish(self) -> RelayReply:
        message = self._offered
        self._offered = None
        if message is None:
            raise RelayRefused("data", permanent=False)
        outcome = outcome_for(message.recipient)
        if outcome is CaughtOutcome.SLOW:
            self.sleep(SLOW_SECONDS)
        self._keep(
            message, CaughtOutcome.CAUGHT if outcome is CaughtOutcome.GREYLISTED else outcome
        )
        return 250, "2.0.0 Caught by the sandbox"

    def abandon(self) -> None:
        self._offered = None

    close = abandon

    def _keep(self, message: MailMessage, outcome: CaughtOutcome) -> None:
        now = self.clock()

        def keep(tx: Tx) -> None:
            store.insert_message(tx, message, outcome, now=now)
            if outcome in _REPORTS:
                event, status = _REPORTS[outcome]
                receive_report(tx, DeliveryReport(message.message_id, event, status), now=now)

        write_alone(self.db, keep)


def outcome_for(recipient: str) -> CaughtOutcome:
    """What the address does: `Bounce+anything@example.com` is treated as `bounce@example.com`."""
    local = recipient.rpartition("@")[0].lower().partition("+")[0]
    return SCRIPTED.get(local, CaughtOutcome.CAUGHT)
