"""`frontdesk check` and `migrate`: what is wrong with the installation, and its tables."""

import os
from collections.abc import Callable

from frontdesk.cli.command_group import change_in, opened_database, printing
from frontdesk.cli.output import FAILED, Output, settings
from frontdesk.config import Config, ConfigError, read_config
from frontdesk.db import Database
from frontdesk.db.checks import HEAD, problems
from frontdesk.db.deployment import CheckFailure
from frontdesk.errors import FrontdeskError


@printing
def check() -> Output:
    """Check settings, database, files and migrations; show every problem with its remedy. Status 1 if there is one.

    A warning keeps nothing from serving. Example: frontdesk check --json
    """
    found = sorted(_problems(), key=lambda problem: problem.is_warning)
    items, warnings = (
        [{"what": each.what, "mend": each.remedy} for each in found if each.is_warning is is_warning]
        for is_warning in (False, True)
    )
    parts = [
        f"{'Warning' if each.is_warning else 'Problem'}: {each.what}\nRemedy: {each.remedy}" for each in found
    ]
    well = "All is well: the settings can be used, the database answers and has the tables that this program needs."
    told = {"ok": not items, "problems": items, "warnings": warnings}
    return Output(told, parts or [well], FAILED if items else 0)


def _problems() -> list[CheckFailure]:
    try:
        config = read_config(os.environ)
    except ConfigError as error:
        remedy = "Correct or remove this variable in the environment."
        return [CheckFailure(problem, remedy) for problem in error.problems]
    try:
        with opened_database(config) as db:
            return problems(db, config)
    except FrontdeskError as error:
        return [CheckFailure(error.detail, "Correct FRONTDESK_DATABASE_URL, or make the database reachable.")]


@printing
def migrate() -> Output:
    """Create or update the database's tables; safe to run again.

    Example: frontdesk migrate
    """
    config = settings()
    with opened_database(config) as db:
        notices: list[str] = []
        applied = bring_up_to_date(db, config, tell=notices.append)
    done = f"Migrated: {', '.join(applied)}. The" if applied else "Nothing to do: the"
    told = {"applied": applied, "revision": HEAD, "notices": notices}
    return Output(told, [f"{done} database is at revision {HEAD}.", *notices])


def bring_up_to_date(
    db: Database, config: Config, *, tell: Callable[[str], None] = lambda _: None
) -> list[str]:
    """The revisions that were applied; `tell` gets what they left for people to decide.

    Their audit entry has a later transaction: they may have made the audit trail.
    """
    from frontdesk.db.migrate import upgrade  # alembic takes 0.3 s to import, which `check` need not wait for

    applied = upgrade(db, uniqueness=config.uniqueness.value, tell=tell)
    if applied:
        change_in(db, lambda context: context.record("database.migrated", revisions=applied))
    return applied
