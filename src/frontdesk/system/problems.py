"""The problems of the installation, each with a remedy: of settings, database, files, disk, locks and
the relay.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.checks import CheckFailure, problems
from frontdesk.db.failures import DatabaseState
from frontdesk.db.locks import long_locks
from frontdesk.errors import Unavailable
from frontdesk.mail.model import CertificateFault, RelayRefused
from frontdesk.mail.smtp import SmtpMailer, SmtpTimeouts

_STEPS = 7  # of a conversation with the relay

_RELAY_REMEDY = (
    "Correct FRONTDESK_SMTP_URL, or look at the relay, its certificate, and the network and "
    "firewalls on the way."
)
_LOGIN_REMEDY = (
    "Correct user and password in FRONTDESK_SMTP_URL; special characters stand there in their %XX "
    "form, such as %40 for @ and %25 for %."
)
_CERTIFICATE_REMEDIES: dict[str | None, str] = {
    CertificateFault.UNKNOWN_CA: (
        "Make its authority known to this machine: docs/operations.md, a private CA of the relay."
    ),
    CertificateFault.WRONG_NAME: (
        "Write the name that the certificate has as the host of FRONTDESK_SMTP_URL, or let the "
        "relay show a certificate for that host."
    ),
    CertificateFault.EXPIRED: "Have the relay's certificate renewed; look at this machine's clock.",
    CertificateFault.NOT_YET_VALID: "Look at the clocks of this machine and of the relay.",
}


class Problems(NamedTuple):
    """The problems of the database, its place and the settings; locks that last; the relay's."""

    deployment: list[CheckFailure]
    locks: list[CheckFailure]
    relay: list[CheckFailure]

    @property
    def all(self) -> list[CheckFailure]:
        return [*self.deployment, *self.locks, *self.relay]


def find_problems(db: Database, config: Config, *, step_seconds: float) -> Problems:
    """Every problem of the installation. Writes a little to the database, and talks to the relay,
    each step `step_seconds` at most.
    """
    found = problems(db, config)
    locks = lock_failures(db, found)
    return Problems(found, locks, relay_failures(config, step_seconds=step_seconds))


def lock_failures(db: Database, found: Iterable[CheckFailure]) -> list[CheckFailure]:
    """A warning for each lock that is a minute old; of SQLite, if a write has waited in vain."""
    is_busy = any(each.what == DatabaseState.BUSY.description for each in found)
    if db.is_sqlite and not is_busy:
        return []
    locks = []
    with suppress(Unavailable):  # `found` has the cause
        for held in long_locks(db):
            since = "" if held.seconds is None else f" for {held.seconds // 60:,} min"
            what = f"{held.holder} has a lock{since}, and {held.stopped} waits for it."
            locks.append(CheckFailure(what, held.remedy, is_warning=True))
    return locks


def relay_failures(config: Config, *, step_seconds: float) -> list[CheckFailure]:
    """Talks to the relay up to AUTH and RSET; gives each step up after `step_seconds`."""
    if config.smtp_url is None:
        return []
    try:
        timeouts = SmtpTimeouts(*[step_seconds] * _STEPS)
        mailer = SmtpMailer(config.smtp_url, config.host_name or None, timeouts)
        mailer.open().probe()
    except RelayRefused as refused:
        reply = " ".join(
            str(each) for each in (refused.code or refused.cause, refused.words) if each
        )
        what = f"The relay can't be used: {refused.stage} failed ({reply or 'no reply'})."
        usual = _LOGIN_REMEDY if refused.stage == "login" else _RELAY_REMEDY
        remedy = _CERTIFICATE_REMEDIES.get(refused.cause, usual)
        return [CheckFailure(what, remedy, is_warning=True)]
    return []
