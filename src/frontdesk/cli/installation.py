"""`frontdesk check`, `migrate` and `retention`: the problems of the installation, its tables, and the pruning of old data."""

import os
from typing import Annotated, Any

from frontdesk.cli.command_group import change_in, migrated_database, new_request, opened_database, printing
from frontdesk.cli.layout import table
from frontdesk.cli.options import option
from frontdesk.cli.output import FAILED, Output, settings
from frontdesk.clock import system_clock
from frontdesk.config import Config, ConfigError, Uniqueness, read_config
from frontdesk.db import Database
from frontdesk.db.checks import HEAD, CheckFailure, problems
from frontdesk.db.service_role import DatabaseRole, current_role, grant_rights
from frontdesk.eligibility import last_member_id
from frontdesk.errors import FrontdeskError
from frontdesk.mail.model import RelayRefused
from frontdesk.mail.smtp import SmtpMailer, SmtpTimeouts
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import RetentionTurn, kept_days

STEP_SECONDS = 5.0  # for each step with the relay
_RELAY_REMEDY = "Correct FRONTDESK_SMTP_URL, or look at the relay, its certificate, and the network and firewalls on the way."
FIRST = "0001"  # the revision that makes a database

# What an answer reveals about other accounts, by FRONTDESK_UNIQUENESS.
UNIQUENESS_TELLS = {
    Uniqueness.SERVICE: "Identifiers and e-mail addresses are unique over the whole service: a refusal shows a client that "
    "another account uses the value, for 1,000 records a day at most. For unrelated customers, set "
    "FRONTDESK_UNIQUENESS=account before the first migrate.",
    Uniqueness.ACCOUNT: "Identifiers and e-mail addresses are unique inside each account: answers reveal no other account's.",
}


@printing
def check() -> Output:
    """Check settings, database, files, relay, clock, disk; show each problem with its remedy. Status 1 if there is one.

    A warning keeps nothing from serving. The relay gets no message. Example: frontdesk check --json
    """
    failures, role, is_new = _findings()
    found = sorted(failures, key=lambda failure: failure.is_warning)
    items, warnings = (
        [{"what": each.what, "mend": each.remedy} for each in found if each.is_warning is is_warning]
        for is_warning in (False, True)
    )
    nouns = {True: "Warning", False: "Problem"}
    parts = [f"{nouns[each.is_warning]}: {each.what}\nRemedy: {each.remedy}" for each in found]
    well = "All is well: the settings can be used, the database answers and has the tables that this program needs."
    notes = [UNIQUENESS_TELLS[settings().uniqueness]] if is_new else []
    told: dict[str, Any] = {"ok": not items, "problems": items, "warnings": warnings, "notes": notes}
    told["database_role"] = role and role._asdict()
    if role is not None:
        owned = "which owns the tables" if role.owns_tables else "which owns none of the tables"
        parts.append(f"The database is used as the role {role.name}, {owned}.")
    return Output(told, [*(parts if found else [well, *parts]), *notes], FAILED if items else 0)


def _findings() -> tuple[list[CheckFailure], DatabaseRole | None, bool]:
    """The problems, the role, and whether the database is good and still without members: uniqueness can be changed."""
    try:
        config = read_config(os.environ)
    except ConfigError as error:
        remedy = "Correct or remove this variable in the environment."
        return [CheckFailure(problem, remedy) for problem in error.problems], None, False
    try:
        with opened_database(config) as db:
            found = problems(db, config)
            is_usable = all(each.is_warning for each in found)
            role, is_new = (current_role(db), not db.ask(last_member_id)) if is_usable else (None, False)
            return [*found, *_relay_failures(config)], role, is_new
    except FrontdeskError as error:
        remedy = "Correct FRONTDESK_DATABASE_URL, or make the database reachable."
        return [CheckFailure(error.detail, remedy), *_relay_failures(config)], None, False


def _relay_failures(config: Config) -> list[CheckFailure]:
    """Talks to the relay up to AUTH and RSET; gives each step up after STEP_SECONDS."""
    if config.smtp_url is None:
        return []
    try:
        mailer = SmtpMailer(config.smtp_url, config.host_name or None, SmtpTimeouts(*[STEP_SECONDS] * 7))
        mailer.open().probe()
    except RelayRefused as refused:
        said = " ".join(str(each) for each in (refused.code or refused.cause, refused.words) if each)
        what = f"The relay can't be used: {refused.stage} failed ({said or 'no reply'})."
        return [CheckFailure(what, _RELAY_REMEDY, is_warning=True)]
    return []


@printing
def migrate(
    service_role: Annotated[
        str | None,
        option(
            "PostgreSQL: give this role exactly the rights that the service needs (docs/security.md).",
            metavar="ROLE",
        ),
    ] = None,
) -> Output:
    """Create or update the database's tables; safe to run again.

    Example: frontdesk migrate --service-role frontdesk_service
    """
    config = settings()
    with opened_database(config) as db:
        notices: list[str] = []
        applied = bring_up_to_date(db, config)
        if service_role is not None:
            grant_rights(db, service_role)
            change_in(db, lambda context: context.record("database.rights_given", role=service_role))
            notices.append(f"The role {service_role} has the rights of the service, and no other.")
    if FIRST in applied:
        notices.append(UNIQUENESS_TELLS[config.uniqueness])
    done = f"Migrated: {', '.join(applied)}. The" if applied else "Nothing to do: the"
    told = {"applied": applied, "revision": HEAD, "notices": notices}
    return Output(told, [f"{done} database is at revision {HEAD}.", *notices])


def bring_up_to_date(db: Database, config: Config) -> list[str]:
    """The revisions that were applied.

    Their audit entry has a later transaction: they may have made the audit trail.
    """
    from frontdesk.db.migrate import upgrade  # alembic takes 0.3 s to import, which `check` need not wait for

    applied = upgrade(db, uniqueness=config.uniqueness.value)
    if applied:
        change_in(db, lambda context: context.record("database.migrated", revisions=applied))
    return applied


@printing
def retention(dry_run: Annotated[bool, option("Only count the due rows.", "--dry-run")] = False) -> Output:
    """Apply retention now: erase or delete old data. Workers do it every night.

    Example: frontdesk retention --dry-run
    """
    config = settings()
    kept = kept_days(config)
    with migrated_database(config, index_scans=True) as db:
        turn = RetentionTurn(db, system_clock, kept, new_request())
        counts = turn.count() if dry_run else turn.run()
    rows = [
        {"kind": kind, "kept_days": kept.get(kind), "count": counts.get(kind, 0)} for kind in RetentionKind
    ]
    done = "Only counted: nothing is gone yet." if dry_run else "All these are gone."
    return Output(rows, [table(rows, "kind kept_days count"), done])
