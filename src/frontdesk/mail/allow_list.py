"""A mailer that lets mail out to listed addresses only, for installations that mail no stranger."""

from dataclasses import dataclass

from frontdesk.mail.model import Mailer, MailMessage, MailSession, RelayReply
from frontdesk.text import fold_email


@dataclass(frozen=True, slots=True)
class AllowListMailer:
    """Sends messages to the allowed addresses and `@domains` through the relay, and all other
    messages to the catcher.
    """

    allowed: tuple[str, ...]
    relay: Mailer
    catcher: Mailer

    def open(self) -> MailSession:
        return _AllowListSession(self.allowed, self.relay.open(), self.catcher.open())


class _AllowListSession:
    def __init__(self, allowed: tuple[str, ...], relay: MailSession, catcher: MailSession) -> None:
        self._allowed = allowed
        self._relay = relay
        self._catcher = catcher
        self._current = catcher

    def offer(self, message: MailMessage) -> None:
        self._current = self._relay if self._is_allowed(message.recipient) else self._catcher
        self._current.offer(message)

    def finish(self) -> RelayReply:
        return self._current.finish()

    def abandon(self) -> None:
        self._current.abandon()

    def close(self) -> None:
        self._relay.close()
        self._catcher.close()

    def _is_allowed(self, recipient: str) -> bool:
        address = fold_email(recipient)
        _, _, domain = address.rpartition("@")
        return address in self._allowed or f"@{domain}" in self._allowed
