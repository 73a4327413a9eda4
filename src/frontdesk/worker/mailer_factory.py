"""Where mail goes: in production to the relay; in a sandbox to the catcher, except for the allowed recipients."""

from dataclasses import dataclass

from frontdesk.clock import system_clock
from frontdesk.config import Config, Environment
from frontdesk.db import Database
from frontdesk.errors import FrontdeskError
from frontdesk.mail.model import Mailer, MailMessage, MailSession
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.text import fold_email


def make_mailer(config: Config, db: Database) -> Mailer:
    """The mailer that the settings ask for. Raises FrontdeskError in production without a relay or a link secret."""
    relay = None
    if config.smtp_url is not None:
        relay = SmtpMailer(config.smtp_url, hello_name=config.host_name or None)
    if config.environment is Environment.PRODUCTION:
        if relay is None:
            raise FrontdeskError(
                "There is no relay to deliver invitations to: set FRONTDESK_SMTP_URL.", code="no_relay"
            )
        if not config.link_secret:
            raise FrontdeskError(
                "The links in invitations could be guessed: set FRONTDESK_LINK_SECRET.", code="no_link_secret"
            )
        return relay
    catcher = MailCatcher(db, system_clock)
    return catcher if relay is None else AllowListMailer(config.sandbox_recipients, relay, catcher)


@dataclass(frozen=True, slots=True)
class AllowListMailer:
    """Sends messages to the allowed addresses and `@domains` through the relay, and catches all others."""

    allowed: tuple[str, ...]
    relay: Mailer
    catcher: Mailer

    def open(self) -> MailSession:
        return _AllowListSession(self.allowed, self.relay.open(), self.catcher.open())


class _AllowListSession:
    def __init__(self, allowed: tuple[str, ...], relay: MailSession, catcher: MailSession) -> None:
        self._allowed = allowed
        self._relay = relay
        self._catcher = self._current = catcher

    def offer(self, message: MailMessage) -> None:
        address = fold_email(message.recipient)
        is_allowed = address in self._allowed or f"@{address.rpartition('@')[2]}" in self._allowed
        self._current = self._relay if is_allowed else self._catcher
        self._current.offer(message)

    def finish(self) -> int:
        return self._current.finish()

    def abandon(self) -> None:
        self._current.abandon()

    def close(self) -> None:
        self._relay.close()
        self._catcher.close()
