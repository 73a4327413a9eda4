"""`frontdesk check`, `migrate` and `retention`: the problems of the installation, its tables, and
the pruning of old data.
"""

import os
from dataclasses import replace
from typing import Annotated, Any

from frontdesk import codes
from frontdesk.cli.command_group import (
    change_in,
    migrated_database,
    new_request,
    opened_database,
    printing,
)
from frontdesk.cli.layout import table
from frontdesk.cli.options import option
from frontdesk.cli.output import FAILED, Output, settings
from frontdesk.clock import system_clock
from frontdesk.config import (
    Config,
    ConfigError,
    Environment,
    Uniqueness,
    names_uniqueness,
    read_config,
)
from frontdesk.db import Database
from frontdesk.db.checks import HEAD, CheckFailure, foreign_failure, revision_of, uniqueness_of
from frontdesk.db.failures import DatabaseState
from frontdesk.db.service_role import DatabaseRole, current_role, grant_rights
from frontdesk.eligibility import last_member_id
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.system.problems import find_problems, relay_failures

STEP_SECONDS = 5.0  # for each step with the relay
FIRST = "0001"  # the revision that makes a database

# What an answer reveals about other accounts, by FRONTDESK_UNIQUENESS.
UNIQUENESS_TELLS = {
    Uniqueness.SERVICE: (
        "Identifiers and e-mail addresses are unique over the whole service: a refusal shows a "
        "client that another account uses the value, for 1,000 records of an account a day. "
        "For unrelated customers, set FRONTDESK_UNIQUENESS=account before the first migrate."
    ),
    Uniqueness.ACCOUNT: (
        "Identifiers and e-mail addresses are unique inside each account: answers reveal no other "
        "account's."
    ),
}


@printing
def check() -> Output:
    """Check settings, database, files, relay, clock, disk; show each problem with its remedy.
    Status 1 if there is one.

    A warning keeps nothing from serving. The relay gets no message. Example: frontdesk check --json
    """
    failures, role, is_new = _findings()
    found = sorted(failures, key=lambda failure: failure.is_warning)
    items, warnings = (
        [
            {"what": each.what, "remedy": each.remedy}
            for each in found
            if each.is_warning is is_warning
        ]
        for is_warning in (False, True)
    )
    nouns = {True: "Warning", False: "Problem"}
    parts = [f"{nouns[each.is_warning]}: {each.what}\nRemedy: {each.remedy}" for each in found]
    well = (
        "All is well: the settings can be used, the database answers and has the tables that this "
        "program needs."
    )
    notes = [UNIQUENESS_TELLS[settings().uniqueness]] if is_new else []
    answer: dict[str, Any] = {
        "ok": not items,
        "problems": items,
        "warnings": warnings,
        "notes": notes,
    }
    answer["database_role"] = role and role._asdict()
    if role is not None:
        owned = "which owns the tables" if role.owns_tables else "which owns none of the tables"
        parts.append(f"The database is used as the role {role.name}, {owned}.")
    return Output(answer, [*(parts if found else [well, *parts]), *notes], FAILED if items else 0)


def _findings() -> tuple[list[CheckFailure], DatabaseRole | None, bool]:
    """The problems, the role, and whether the database is good and still without members:
    uniqueness can be changed.
    """
    try:
        config = read_config(os.environ)
    except ConfigError as error:
        remedy = "Correct or remove this variable in the environment."
        return [CheckFailure(problem, remedy) for problem in error.problems], None, False
    try:
        with opened_database(config) as db:
            found = find_problems(db, config, step_seconds=STEP_SECONDS)
            is_usable = all(each.is_warning for each in found.deployment)
            # A locked table answers nobody.
            role = current_role(db) if is_usable else None
            is_new = is_usable and not found.locks and not db.ask(last_member_id)
            return found.all, role, is_new
    except FrontdeskError as error:
        remedy = "Correct FRONTDESK_DATABASE_URL, or make the database reachable."
        relay = relay_failures(config, step_seconds=STEP_SECONDS)
        return [CheckFailure(error.detail, remedy), *relay], None, False


CHOICE = """\
This database is empty. In production its first migration asks where identifiers are unique: \
that can't be changed once there
are members.

service: No two members of the whole service have the same external_id, member_id or e-mail address, \
so a person is one record
over all accounts. The account that stores a value first keeps it, and a refusal shows another account \
that the value is in use.

account: These are unique inside each account only, so customers never meet and no answer reveals \
another account's values. A
person that two accounts send has a record, an invitation and a history in each of them.

Choose with: frontdesk migrate --uniqueness service (or account). \
Set FRONTDESK_UNIQUENESS to the same for every process."""


@printing
def migrate(
    *,
    uniqueness: Annotated[
        Uniqueness | None,
        option(
            "Where external_id, member_id and e-mail are unique: over the whole service, "
            "or inside each account. For a new database; in production it asks for this, "
            "or for FRONTDESK_UNIQUENESS."
        ),
    ] = None,
    service_role: Annotated[
        str | None,
        option(
            "PostgreSQL: give this role exactly the rights that the service needs (docs/security.md).",
            metavar="ROLE",
        ),
    ] = None,
) -> Output:
    """Create or update the database's tables; safe to run again.

    Example: frontdesk migrate --service-role frontdesk_service --uniqueness service
    """
    given = settings()
    with opened_database(given) as db:
        config = _with_uniqueness(given, db, uniqueness)
        notices: list[str] = []
        applied = bring_up_to_date(db, config)
        damaged = repair_guards(db)
        if damaged:
            notices.append(
                f"The guards of the append-only tables were made anew, for: {'; '.join(damaged)}."
            )
        if service_role is not None:
            grant_rights(db, service_role)
            change_in(
                db, lambda context: context.record("database.rights_given", role=service_role)
            )
            notices.append(f"The role {service_role} has the rights of the service, and no other.")
    if FIRST in applied:
        notices.append(UNIQUENESS_TELLS[config.uniqueness])
        if config.uniqueness is not given.uniqueness:
            notices.append(
                f"Set FRONTDESK_UNIQUENESS={config.uniqueness} for every process: without it none starts."
            )
    done = f"Migrated: {', '.join(applied)}. The" if applied else "Nothing to do: the"
    answer = {"applied": applied, "revision": HEAD, "notices": notices}
    return Output(answer, [f"{done} database is at revision {HEAD}.", *notices])


def _with_uniqueness(config: Config, db: Database, chosen: Uniqueness | None) -> Config:
    """The settings with the uniqueness that the database has or will have.

    Raises FrontdeskError `uniqueness_not_chosen` for an empty database of production when neither
    the command nor the environment says it, `uniqueness_differs` when they say different ones,
    `uniqueness_fixed` for another one than the database has.
    """
    is_said = names_uniqueness(os.environ)
    if chosen is not None and is_said and chosen is not config.uniqueness:
        detail = (
            f"--uniqueness is {chosen}, but FRONTDESK_UNIQUENESS is {config.uniqueness}. "
            "Make them the same."
        )
        raise FrontdeskError(detail, code=codes.operators.UNIQUENESS_DIFFERS)
    if _is_empty(db):
        if chosen is None and not is_said and config.environment is Environment.PRODUCTION:
            raise FrontdeskError(CHOICE, code=codes.operators.UNIQUENESS_NOT_CHOSEN)
    elif chosen is not None and chosen != (installed := uniqueness_of(db)):
        detail = (
            f"This database was set up with uniqueness {installed}, which can't be changed. "
            "Leave --uniqueness out."
        )
        raise FrontdeskError(detail, code=codes.operators.UNIQUENESS_FIXED)
    return config if chosen is None else replace(config, uniqueness=chosen)


def _is_empty(db: Database) -> bool:
    """Whether the database has no tables of the program. One of SQLite that the migration will make
    has none, and neither has another program's, which the migration will refuse.
    """
    try:
        revision = revision_of(db)
        return revision is None or foreign_failure(db, revision) is not None
    except Unavailable as error:
        if error.code != DatabaseState.MISSING:
            raise
        return True


def bring_up_to_date(db: Database, config: Config) -> list[str]:
    """The revisions that were applied.

    Their audit entry has a later transaction: they may have made the audit trail.
    """
    # alembic takes 0.3 s to import, which `check` need not wait for
    from frontdesk.db.migrate import upgrade

    applied = upgrade(db, uniqueness=config.uniqueness.value)
    if applied:
        change_in(db, lambda context: context.record("database.migrated", revisions=applied))
    return applied


def repair_guards(db: Database) -> list[str]:
    """What was wrong with the guards of the append-only tables; they are made anew, and the audit
    trail has an entry.
    """
    from frontdesk.db.migrate import restore_guards  # imports alembic, as above

    damaged = restore_guards(db)
    if damaged:
        change_in(db, lambda context: context.record("database.guards_restored", damage=damaged))
    return damaged


@printing
def retention(
    dry_run: Annotated[bool, option("Only count the due rows.", "--dry-run")] = False,
) -> Output:
    """Apply retention now: erase or delete old data. Workers do it every night.

    Example: frontdesk retention --dry-run
    """
    config = settings()
    days = retention_days(config)
    with migrated_database(config, index_scans=True) as db:
        turn = RetentionTurn(db, system_clock, days, new_request())
        counts = turn.count() if dry_run else turn.run()
    rows = [
        {"kind": kind, "kept_days": days.get(kind), "count": counts.get(kind, 0)}
        for kind in RetentionKind
    ]
    done = "Only counted: nothing is gone yet." if dry_run else "All these are gone."
    return Output(rows, [table(rows, "kind kept_days count"), done])
