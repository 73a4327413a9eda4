"""The database of the installation that a command works on. What can't be used is told in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import HEAD, revision_of
from frontdesk.db.failures import DatabaseState
from frontdesk.errors import FrontdeskError, Unavailable


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
