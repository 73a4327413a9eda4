"""The installation that a command works on: its settings, its database, one transaction with its audit entries."""

import getpass
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from frontdesk import audit
from frontdesk.access import get_account
from frontdesk.audit.model import AuditEntry
from frontdesk.cli.output import settings
from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.checks import HEAD, revision_of
from frontdesk.db.failures import DatabaseState
from frontdesk.db.races import write_alone
from frontdesk.errors import FrontdeskError, Unavailable

ACTOR_LENGTH = 64  # the audit trail's column

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command that changes something works with: a transaction, its time, and the person responsible for it."""

    tx: Tx
    now: datetime
    actor: str
    request_id: str

    def record(
        self, action: str, *, account_id: int | None = None, subject_id: int | None = None, **detail: Any
    ) -> None:
        """Add an audit entry to the transaction. `detail` may hold names and ids only."""
        entry = AuditEntry(
            action=action,
            actor=self.actor,
            request_id=self.request_id,
            account_id=account_id,
            subject_id=subject_id,
            detail=detail or None,
        )
        audit.record(self.tx, [entry], now=self.now)


def ask(question: Callable[[Tx], Answer], *, account: int | None = None) -> Answer:
    """`question(tx)` in a transaction that only reads. Raises FrontdeskError, NotFound when `account` does not exist."""

    def about_account(tx: Tx) -> Answer:
        if account is not None:
            get_account(tx, account)
        return question(tx)

    with migrated_database(settings()) as db:
        return db.ask(about_account)


def change(work: Callable[[CommandContext], Answer], *, account: int | None = None) -> Answer:
    """`work(context)` in one transaction, run again when it loses a race. Raises FrontdeskError as `ask` does."""

    def about_account(context: CommandContext) -> Answer:
        if account is not None:
            get_account(context.tx, account)
        return work(context)

    with migrated_database(settings()) as db:
        return change_in(db, about_account)


def change_in(db: Database, work: Callable[[CommandContext], Answer]) -> Answer:
    """`change` on a database that is open already."""
    now, actor, request_id = system_clock(), _actor(), f"cli-{secrets.token_hex(8)}"
    return write_alone(db, lambda tx: work(CommandContext(tx, now, actor, request_id)))


@contextmanager
def opened_database(config: Config, *, index_scans: bool = False) -> Iterator[Database]:
    """The database, migrated or not; `index_scans` as `open_database` takes it.

    Raises FrontdeskError when the address can't be read.
    """
    try:
        db = open_database(config.database_url, index_scans=index_scans)
    except ValueError:
        raise FrontdeskError(
            "The database of FRONTDESK_DATABASE_URL can't be opened: it is not a well-formed address.",
            code="malformed_address",
        ) from None
    try:
        yield db
    finally:
        db.close()


@contextmanager
def migrated_database(config: Config, *, index_scans: bool = False) -> Iterator[Database]:
    """The database with the tables that this program needs. Raises FrontdeskError when it has others."""
    with opened_database(config, index_scans=index_scans) as db:
        revision = _revision(db)
        if revision is None:
            raise FrontdeskError(
                "The database has no tables yet. Run: frontdesk migrate", code="not_migrated"
            )
        if revision != HEAD:
            raise FrontdeskError(
                f"The database is at revision {revision}, this program needs {HEAD}. Run: frontdesk migrate "
                "(or, if a newer frontdesk has migrated it, use that one).",
                code="other_revision",
            )
        yield db


def _revision(db: Database) -> str | None:
    try:
        return revision_of(db)
    except Unavailable as error:
        if error.code != DatabaseState.MISSING:
            raise
        raise FrontdeskError(
            f"{error.detail} Run: frontdesk migrate (or correct FRONTDESK_DATABASE_URL).", code=error.code
        ) from None


def _actor() -> str:
    """`cli:` and the login name; in a container the user may have none."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = str(os.getuid())
    printable = "".join(character for character in name if character.isprintable())
    return f"cli:{printable}"[:ACTOR_LENGTH]
