"""How long does each page of the console take at the size of a large installation?

One account has all members, files and entries of the trail; a file has so many rows of its own, another
is held for those who would lose access. Each page is asked for by a user whose role shows most, over
HTTP in this process, without a network; a form's time includes the page that it leads to. Processor ms:
the mean of what the service, the database and this browser took, which other programs on the machine
lengthen less than the time. The plans of the database follow statistics. KB: the page as it comes, with
style, without script and icon.
"""

import argparse
import io
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from rich.progress import Progress
from starlette.testclient import TestClient

from bench.files import hand_in, write_members
from bench.harness import Bench, Installation, Option, Row, chosen, databases, processor_seconds
from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.audit.tables import audit_entries
from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness, read_config
from frontdesk.console.cookies import SESSION, cookie_name
from frontdesk.db import open_database
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files.actions import get_file
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import FileKey, FileState
from frontdesk.files.run import run_next
from frontdesk.files.tables import eligibility_files
from frontdesk.formats.model import FileMode
from frontdesk.installation import build_asgi
from frontdesk.reach import EVERY
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role, Visitor
from frontdesk.users.sessions import open_session
from frontdesk.web.telemetry import Telemetry
from tests.console.browsing import Browser
from tests.population import analyze, copy_files, copy_members, fill_trail, without_indexes
from tests.postgres import PostgresServer

HELD_FOR = 200  # people who would lose access
BIRTH_DATES = 25_000
USERS = 20  # who have looked at people
MANY_CHANGED = 200  # rows of the largest file of which the page of an undo counts what it would do
# Millions of rows between two checkpoints. The bench itself renews the statistics, and nothing is
# vacuumed beside the pages.
POSTGRESQL = {"max_wal_size": "8GB", "autovacuum": "off"}


class Places(NamedTuple):
    """What the addresses of the pages name."""

    account: str
    plan: int
    file: int
    counted: int
    held: int
    last_name: str  # of the member whose record the others copy


class Page(NamedTuple):
    """`form`: the fields of a form that this page has, which is sent then."""

    name: str
    role: Role
    path: str
    form: tuple[str, dict[str, str]] | None = None


_BORN = {"dob": "1975-03-04", "last_name": "{last_name}", "first_name": ""}
_CHECK = {"field": "zipcode", "text": "12345"}
PAGES = (
    Page("files", Role.EDITOR, "{account}/files"),
    Page("files of a plan", Role.EDITOR, "{account}/files?plan={plan}"),
    Page("done files", Role.EDITOR, "{account}/files?state=done"),
    Page("a file", Role.EDITOR, "{account}/files/{file}"),
    Page("rows of a file", Role.EDITOR, "{account}/files/{file}/rows?show=created"),
    Page("a held file", Role.APPROVER, "{account}/files/{held}"),
    Page("who loses access", Role.APPROVER, "{account}/files/{held}/rows?show=would_end"),
    Page("undo of a file", Role.EDITOR, "{account}/files/{file}/undo"),
    Page("undo that is counted", Role.EDITOR, "{account}/files/{counted}/undo"),
    Page("people by birth date", Role.EDITOR, "{account}/people", ("{account}/people", _BORN)),
    Page(
        "people by identifier",
        Role.EDITOR,
        "{account}/people",
        ("{account}/people", {"external_id": "AB 00000500"}),
    ),
    Page("a person", Role.EDITOR, "{account}/people/500"),
    Page("a check", Role.SUPPORT, "{account}/people/500", ("{account}/people/500/check", _CHECK)),
    Page("correct a person", Role.EDITOR, "{account}/people/500/correct"),
    Page("end the access", Role.EDITOR, "{account}/people/500/end"),
    Page("another identifier", Role.EDITOR, "{account}/people/500/rename"),
    Page("another address", Role.SUPPORT, "{account}/people/500/address"),
    Page("uploads", Role.EDITOR, "{account}/uploads"),
    Page("now", Role.VIEWER, "{account}/now"),
    Page("a plan's day", Role.VIEWER, "{account}/now/{plan}"),
    Page("account", Role.ADMIN, "{account}/account"),
    Page("API clients", Role.ADMIN, "{account}/account/clients"),
    Page("webhooks", Role.ADMIN, "{account}/account/webhooks"),
    Page("users", Role.ADMIN, "{account}/account/users"),
    Page("invitations", Role.ADMIN, "{account}/account/invitations"),
    Page("who opened records", Role.ADMIN, "{account}/account/looks"),
    Page("trail", Role.ADMIN, "{account}/trail"),
    Page("trail of a person", Role.ADMIN, "{account}/trail?person=500"),
    Page("trail of a file", Role.ADMIN, "{account}/trail?file={file}"),
    Page("trail of all", Role.AUDITOR, "/console/trail"),
    Page("a person in the trail of all", Role.AUDITOR, "/console/trail?person=500"),
    Page("system", Role.OPERATOR, "/console/system"),
    Page("accounts", Role.OPERATOR, "/console/system/accounts"),
    Page("users of the installation", Role.OPERATOR, "/console/system/users"),
    Page("own settings", Role.VIEWER, "/console/me"),
)


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    for name in chosen(options):
        with databases(name, POSTGRESQL) as kind, kind.installation() as installation:
            progress.console.print(f"{name}: filling")
            began = time.monotonic()
            places = _fill(installation, options)
            seconds = time.monotonic() - began
            progress.console.print(
                f"{name}: filled in {seconds:.0f} s, asking for {len(PAGES)} pages"
            )
            for row in ask(installation, places, kind.server, times=options.times):
                yield {"database": name} | row


def ask(
    installation: Installation, places: Places, server: PostgresServer | None, *, times: int
) -> Iterator[dict[str, Any]]:
    """Each page, so many times."""
    config = read_config({"FRONTDESK_DATABASE_URL": installation.url})
    app = App(config, open_database(config.database_url))
    asgi = build_asgi(app, Telemetry(io.StringIO()))
    with TestClient(asgi, base_url="http://127.0.0.1:8000") as http:
        for page in PAGES:
            http.cookies.clear()
            http.cookies.set(cookie_name(config, SESSION), _sign_in(installation, page.role))
            yield _measure(Browser(http), page, places, server, times=times)


def _fill(installation: Installation, options: argparse.Namespace) -> Places:
    """The members, files and entries."""
    db = installation.db
    customer = installation.customer
    gold, silver, bronze = customer.plan_ids[:3]
    for _ in range(USERS):
        _sign_in(installation, Role.EDITOR)
    load = partial(_load, installation)
    file = load(gold, rows=options.rows, seed=1)
    others = range(options.rows, options.members)
    with without_indexes(db, members, member_history, eligibility_files, audit_entries):
        copy_members(db, 1, numbers=others, birth_dates=BIRTH_DATES)
        copy_files(db, file, count=options.files)
        fill_trail(db, customer, users=USERS, entries=options.entries, until=system_clock())
    load(silver, rows=HELD_FOR, seed=2)
    held = load(silver, rows=1, seed=2, mode=FileMode.FULL, ends=FileState.HELD)
    counted = load(bronze, rows=MANY_CHANGED, seed=3)
    analyze(db)
    with db.read() as tx:
        name = str(tx.exec_driver_sql("SELECT last_name FROM members WHERE id = 1").scalar_one())
    account = f"/console/accounts/{customer.account_id}"
    return Places(account, gold, file=file, counted=counted, held=held, last_name=name)


def _load(
    installation: Installation,
    plan: int,
    *,
    rows: int,
    seed: int,
    mode: FileMode = FileMode.CHANGE,
    ends: FileState = FileState.DONE,
) -> int:
    """A file that a worker has had; its id. Raises RuntimeError if it has not ended so."""
    path = installation.folder / "members.csv"
    write_members(path, rows, seed=seed)
    file_id = hand_in(installation.db, plan, path, mode)
    run_next(installation.db, system_clock, RunOptions(Uniqueness.SERVICE), only=file_id)
    file = installation.db.ask(lambda tx: get_file(tx, FileKey(file_id, EVERY)))
    if file.state is not ends:
        raise RuntimeError(f"the file of {rows} rows is {file.state}: {file.problem}")
    return file_id


def _sign_in(installation: Installation, role: Role) -> str:
    """The cookie of a user with the role and a fresh second factor."""
    now = system_clock()
    home = installation.customer.account_id if role in ACCOUNT_ROLES else None
    new = NewUser(f"{role}-{time.time_ns()}@example.com", home, frozenset({role}))
    user, _ = create_demo_user(installation.db, new, name="Ana Ruiz", now=now)
    requester = Requester("bench", "request", now)
    with installation.db.write() as tx:
        visitor = Visitor("203.0.113.7", None, requester)
        return open_session(tx, visitor, user, factor_at=now).secret


def _measure(
    browser: Browser, page: Page, places: Places, server: PostgresServer | None, *, times: int
) -> dict[str, Any]:
    """Raises RuntimeError for a page that is an error."""
    known = places._asdict()
    path = page.path.format(**known)
    taken = []
    worked = []
    for _ in range(times):
        if page.form is not None:
            browser.open(path)
        before = 0.0 if server is None else processor_seconds(server.pid)
        worked_before = time.process_time()
        began = time.perf_counter()
        if page.form is None:
            browser.open(path)
        else:
            action, fields = page.form
            filled = {name: text.format(**known) for name, text in fields.items()}
            browser.send(action.format(**known), **filled)
        taken.append((time.perf_counter() - began) * 1000)
        own = time.process_time() - worked_before
        of_server = 0.0 if server is None else processor_seconds(server.pid) - before
        worked.append((own + of_server) * 1000)
        if browser.status != 200:
            raise RuntimeError(f"{page.name}: {browser.status} at {browser.path}")
    return {
        "page": page.name,
        "median ms": statistics.median(taken),
        "worst ms": max(taken),
        "processor ms": statistics.mean(worked),
        "KB": round(len(browser.answer.content) / 1000, 1),
    }


BENCH = Bench(
    __doc__,
    run,
    Option("members", 1_000_000, 2_000, "of the account"),
    Option("files", 100_000, 500, "of the account"),
    Option("entries", 10_000_000, 5_000, "of the trail"),
    Option("rows", 100_000, 500, "of the file"),
    Option("times", 9, 3, "that each page is asked for"),
)
