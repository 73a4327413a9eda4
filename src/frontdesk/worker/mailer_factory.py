"""Which way mail leaves: the relay, in a sandbox only to those it may mail, and the catcher for everybody else."""

from frontdesk.clock import system_clock
from frontdesk.config import Config, Environment
from frontdesk.db import Database
from frontdesk.errors import FrontdeskError
from frontdesk.mail.model import Mailer, MailMessage, MailSession
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.mailbox import make_catcher


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
    catching = make_catcher(db, system_clock)
    return catching if relay is None else AllowListMailer(config.sandbox_recipients, relay, catching)


class AllowListMailer:
    """Sends to the allowed addresses and `@domains`, catches what goes to anybody else."""

    def __init__(self, allowed: tuple[str, ...], relay: Mailer, make_catcher: Mailer) -> None:
        self._allowed = allowed
        self._relay = relay
        self._catcher = make_catcher

    def open(self) -> MailSession:
        return _AllowListSession(self._allowed, self._relay.open(), self._catcher.open())


class _AllowListSession:
    def __init__(self, allowed: tuple[str, ...], relay: MailSession, make_catcher: MailSession) -> None:
        self._allowed = allowed
        self._relay = relay
        self._catcher = make_catcher
        self._present = make_catcher

    def offer(self, letter: MailMessage) -> None:
        address = letter.recipient.lower()
        may = address in self._allowed or f"@{address.rpartition('@')[2]}" in self._allowed
        self._present = self._relay if may else self._catcher
        self._present.offer(letter)

    def finish(self) -> int:
        return self._present.finish()

    def abandon(self) -> None:
        self._present.abandon()

    def close(self) -> None:
        self._relay.close()
        self._catcher.close()
