"""The state of the installation at one moment: its database, its workers, what waits and how long.

Every count is bounded: it says `MOST_COUNTED` where there is as much or more.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from frontdesk import access
from frontdesk.access.model import WORKING, Account
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.checks import HEAD, CheckFailure, problems, revision_of
from frontdesk.db.engine import database_time
from frontdesk.eligibility import count_members
from frontdesk.events import list_backlogs
from frontdesk.events.model import EndpointBacklog, EndpointState
from frontdesk.files import count_in_state, count_unfinished
from frontdesk.files.model import FileState
from frontdesk.invitations import count_pending_by_account, find_worker_status
from frontdesk.invitations.delivery_hold import find_hold_reason
from frontdesk.invitations.model import HoldReason
from frontdesk.privacy.retention import read_upkeep
from frontdesk.queues import list_feeds
from frontdesk.reach import EVERY
from frontdesk.users.directory import count_by_account

MOST_COUNTED = 1001  # shown as 1,000+
MOST_ROWS = 50  # of a table: the largest, or the oldest
ACCOUNT_PAGE = 50


class DatabaseFacts(NamedTuple):
    """`kind` is SQLite or PostgreSQL. `free_bytes` of the disk of SQLite's file, and the size of the
    file; None for PostgreSQL.
    """

    kind: str
    version: str
    revision: str
    needed_revision: str
    size_bytes: int | None
    free_bytes: int | None


class WorkerFacts(NamedTuple):
    """What the workers have stored. `seen_ago` is None before the first one; `relay_up` before the
    first conversation. `attempts`: ends of attempts, and bounces, since the installation began.
    """

    seen_ago: timedelta | None
    relay_up: bool | None
    lag_seconds: float | None
    hold: HoldReason | None
    attempts: Mapping[str, int]


class AccountBacklog(NamedTuple):
    """What waits of an account."""

    account_id: int
    name: str
    is_working: bool
    files: int
    held_files: int
    mails: int


class FeedAge(NamedTuple):
    """When queue events of an account's plans last came."""

    account_id: int
    name: str
    fed_at: datetime


class WebhookBacklog(NamedTuple):
    """A webhook endpoint that is behind, paused or failing, and the name of its account."""

    name: str
    endpoint: EndpointBacklog


class Backlogs(NamedTuple):
    """What waits by account, the largest first, 50 at most, and how many accounts more have some; the
    feeds, the oldest first; webhooks that are behind, paused or failing.
    """

    accounts: tuple[AccountBacklog, ...]
    more_accounts: int
    feeds: tuple[FeedAge, ...]
    more_feeds: int
    webhooks: tuple[WebhookBacklog, ...]
    more_webhooks: int


@dataclass(frozen=True, slots=True)
class SystemState:
    """`files`: by unfinished state how many, and when the oldest was made. `failures`: the problems
    that are found without writing, and without the relay.
    """

    as_of: datetime
    database: DatabaseFacts
    worker: WorkerFacts
    files: Mapping[FileState, tuple[int, datetime | None]]
    retention_at: datetime | None
    unclean: int
    backlogs: Backlogs
    failures: tuple[CheckFailure, ...]


def read_system(db: Database, config: Config, now: datetime) -> SystemState:
    """The state of the installation; writes nothing. Raises Unavailable."""
    failures = tuple(problems(db, config, tries_write=False))
    revision = revision_of(db) or ""
    return db.ask(lambda tx: _read(tx, config, now, revision, failures))


def _read(
    tx: Tx, config: Config, now: datetime, revision: str, failures: tuple[CheckFailure, ...]
) -> SystemState:
    accounts = access.list_accounts(tx, EVERY)
    retention_at, unclean = read_upkeep(tx)
    return SystemState(
        as_of=now,
        database=_database(tx, config, revision),
        worker=_worker(tx),
        files=count_unfinished(tx),
        retention_at=retention_at,
        unclean=unclean,
        backlogs=_backlogs(tx, accounts),
        failures=failures,
    )


def _database(tx: Tx, config: Config, revision: str) -> DatabaseFacts:
    is_sqlite = tx.dialect.name == "sqlite"
    if not is_sqlite:
        version = str(tx.exec_driver_sql("SHOW server_version").scalar_one())
        return DatabaseFacts("PostgreSQL", version, revision, HEAD, None, None)
    version = str(tx.exec_driver_sql("SELECT sqlite_version()").scalar_one())
    path = Path(config.database_url.removeprefix("sqlite:///")).absolute()
    try:
        size: int | None = path.stat().st_size
        free: int | None = shutil.disk_usage(path.parent).free
    except OSError:
        size = None
        free = None
    return DatabaseFacts("SQLite", version, revision, HEAD, size, free)


def _worker(tx: Tx) -> WorkerFacts:
    status = find_worker_status(tx)
    seen_at = status.get("seen_at")
    facts = ("id", "seen_at", "relay_up", "lag_seconds")
    return WorkerFacts(
        seen_ago=None if seen_at is None else max(timedelta(0), database_time(tx) - seen_at),
        relay_up=status.get("relay_up"),
        lag_seconds=status.get("lag_seconds"),
        hold=find_hold_reason(tx),
        attempts={name: count for name, count in status.items() if name not in facts},
    )


def _backlogs(tx: Tx, accounts: list[Account]) -> Backlogs:
    ids = [each.id for each in accounts]
    names = {each.id: each.name for each in accounts}
    files = count_in_state(tx, ids, FileState.WAITING, most=MOST_COUNTED)
    held = count_in_state(tx, ids, FileState.HELD, most=MOST_COUNTED)
    mails = count_pending_by_account(tx, ids, most=MOST_COUNTED)
    waiting = [
        AccountBacklog(
            each.id, each.name, each.state in WORKING, files[each.id], held[each.id], mails[each.id]
        )
        for each in accounts
        if files[each.id] or held[each.id] or mails[each.id]
    ]
    waiting.sort(key=lambda each: (-each.files - each.held_files, -each.mails, each.account_id))
    feeds = [FeedAge(id_, names.get(id_, ""), at) for id_, at in list_feeds(tx).items()]
    feeds.sort(key=lambda each: each.fed_at)
    webhooks = [each for each in list_backlogs(tx, most=MOST_COUNTED) if _is_late(each)]
    webhooks.sort(key=lambda each: (each.failing_since is None, -each.behind, each.id))
    return Backlogs(
        tuple(waiting[:MOST_ROWS]),
        len(waiting[MOST_ROWS:]),
        tuple(feeds[:MOST_ROWS]),
        len(feeds[MOST_ROWS:]),
        tuple(WebhookBacklog(names[each.account_id], each) for each in webhooks[:MOST_ROWS]),
        len(webhooks[MOST_ROWS:]),
    )


def _is_late(endpoint: EndpointBacklog) -> bool:
    is_working = endpoint.state in (EndpointState.ACTIVE, EndpointState.UNVERIFIED)
    return bool(endpoint.behind or endpoint.failing_since or not is_working)


class AccountRow(NamedTuple):
    """An account of the list, and how much it has."""

    account: Account
    members: int
    clients: int
    users: int
    files: int


class AccountPage(NamedTuple):
    """Accounts by id, and the id after which the next page begins; None after the last."""

    rows: tuple[AccountRow, ...]
    after_id: int | None


def list_account_rows(tx: Tx, *, after_id: int = 0, size: int = ACCOUNT_PAGE) -> AccountPage:
    """A page of all accounts."""
    found = access.list_account_page(tx, after_id=after_id, limit=size + 1)
    accounts = found[:size]
    ids = [each.id for each in accounts]
    members = count_members(tx, ids, most=MOST_COUNTED)
    clients = access.count_clients(tx, ids, most=MOST_COUNTED)
    users = count_by_account(tx, ids, most=MOST_COUNTED)
    files = count_in_state(tx, ids, FileState.WAITING, most=MOST_COUNTED)
    rows = tuple(
        AccountRow(each, members[each.id], clients[each.id], users[each.id], files[each.id])
        for each in accounts
    )
    return AccountPage(rows, accounts[-1].id if len(found) > size else None)
