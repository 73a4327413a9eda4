"""`frontdesk migrate`: brings the database's tables to what this program needs."""

from frontdesk.cli.command_group import change_in, printing
from frontdesk.cli.installation import opened_database
from frontdesk.cli.output import Output, settings
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.checks import HEAD
from frontdesk.db.migrate import upgrade


@printing
def migrate() -> Output:
    """Create or update the database's tables; safe to run again.

    Example: frontdesk migrate
    """
    config = settings()
    with opened_database(config) as db:
        applied = bring_up_to_date(db, config)
    done = f"Migrated: {', '.join(applied)}. The" if applied else "Nothing to do: the"
    return Output({"applied": applied, "revision": HEAD}, [f"{done} database is at revision {HEAD}."])


def bring_up_to_date(db: Database, config: Config) -> list[str]:
    """The revisions that were applied. Their audit entry has a later transaction: they may have made the audit trail."""
    applied = upgrade(db, uniqueness=config.uniqueness.value)
    if applied:
        change_in(db, lambda context: context.record("database.migrated", revisions=applied))
    return applied
