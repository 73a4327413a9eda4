"""What every test can ask for: a set clock, a migrated empty database (SQLite and PostgreSQL in
turn), the service itself.
"""

import compileall
import gc
import io
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, QueuePool, text
from sqlalchemy.exc import DBAPIError
from starlette.testclient import TestClient

from frontdesk.app import App
from frontdesk.config import Config, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.db.schema import load_tables
from frontdesk.db.service_role import grant_rights
from frontdesk.installation import build_asgi
from frontdesk.server import COLLECT_AFTER
from frontdesk.usage.counter import forget
from frontdesk.web.telemetry import Telemetry
from tests.declared import check_declared
from tests.factories import NOW, Customer, make_customer
from tests.postgres import OWNER, SERVICE, Databases, PostgresServer, as_role, as_superuser

SOURCE = Path(__file__).parents[1] / "src"
SLOW_FOLDER = Path(__file__).parent / "faults"
TABLES = load_tables().tables  # of every noun, also of those that a test does not import


def pytest_report_header() -> str:
    return f"FRONTDESK_TEST_SEED={os.environ['FRONTDESK_TEST_SEED']} repeats the random input of this run"


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of a long run. Compile what has changed: with PYTHONDONTWRITEBYTECODE set, each
    of hundreds of started processes would compile the package again, and each of pytest's would
    rewrite every module of tests, for 9 s.
    """
    sys.dont_write_bytecode = False
    if not hasattr(config, "workerinput"):  # the processes of xdist find it done
        compileall.compile_dir(SOURCE, quiet=1)
        drawn = secrets.randbelow(2**31) if os.environ.get("FRONTDESK_FAULTS") else 0
        os.environ.setdefault("FRONTDESK_TEST_SEED", str(drawn))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slowest tests come first, so that none of them is left for a single process in the end.

    What is loaded by now stays, and is no garbage: each full search for some would look at a
    million objects.
    """
    items.sort(key=lambda item: SLOW_FOLDER not in item.path.parents)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


class SetClock:
    """A clock that stands where it is set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Api:
    """The service over HTTP, in this process, as one customer; `as_(token)` is another caller."""

    def __init__(self, http: TestClient, token: str | None, log: io.StringIO) -> None:
        self.http = http
        self.token = token
        self.log = log

    def as_(self, token: str | None) -> "Api":
        return Api(self.http, token, self.log)

    def request(self, method: str, path: str, **options: Any) -> Any:
        headers = {"Accept": "application/json"} | options.pop("headers", {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        return self.http.request(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> Any:
        return self.request("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> Any:
        return self.request("POST", path, **({"json": json} if json is not None else {}), **options)

    def patch(self, path: str, json: Any = None, **options: Any) -> Any:
        return self.request(
            "PATCH", path, **({"json": json} if json is not None else {}), **options
        )


@pytest.fixture
def clock() -> SetClock:
    return SetClock(NOW)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "frontdesk.db"
    db = open_database(f"sqlite:///{path}")
    upgrade(db)
    with db.write() as tx:  # copies of it are at home where they are used
        tx.exec_driver_sql("DELETE FROM delivery_home")
    db.close()
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a migrated SQLite database, for tests that depend on no database."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'frontdesk.db')}"


@pytest.fixture(scope="session")
def sqlite_of_customer(sqlite_template: Path) -> tuple[Path, Customer]:
    """The template with a customer in it."""
    path = sqlite_template.with_name("customer.db")
    shutil.copy(sqlite_template, path)
    db = open_database(f"sqlite:///{path}")
    made = make_customer(db)
    db.close()
    return path, made


@pytest.fixture(scope="session")
def postgres_url(postgres: Databases) -> Iterator[str]:
    """The address of a migrated database for the service role; its owner has migrated it."""
    name = f"frontdesk_{secrets.token_hex(6)}"
    yield migrated(postgres, name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def postgres_customer(postgres_url: str) -> tuple[str, Customer]:
    """A customer of the emptied database, and the statements that put it back: its rows are kept in
    a schema of their own.
    """
    db = open_for_test(emptied(postgres_url), "test")
    made = make_customer(db)
    db.close()
    db = open_for_test(as_superuser(postgres_url), "superuser")
    rows = []
    with db.write() as tx:
        tx.exec_driver_sql("CREATE SCHEMA kept")
        for name, table in TABLES.items():
            is_any = text(f"SELECT 1 FROM {name} LIMIT 1")  # noqa: S608
            if name != "installation" and tx.execute(is_any).first():
                tx.exec_driver_sql(f"CREATE TABLE kept.{name} AS TABLE public.{name}")
                columns = ", ".join(f'"{column.name}"' for column in table.columns)
                target = f"{name} ({columns}) OVERRIDING SYSTEM VALUE"
                rows.append(f"INSERT INTO {target} SELECT {columns} FROM kept.{name}")  # noqa: S608
        query = "SELECT schemaname, sequencename, last_value FROM pg_sequences WHERE last_value IS NOT NULL"
        counted = tx.exec_driver_sql(query).all()
    db.close()
    ids = [f"SELECT setval('{schema}.{name}', {last})" for schema, name, last in counted]
    return "; ".join(rows + ids), made


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a migrated database of the test's own: empty, but for `customer` where the
    test asks for that.
    """
    with_customer = "kept_customer" in request.fixturenames
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        if with_customer:
            template, _ = request.getfixturevalue("sqlite_of_customer")
        path = tmp_path / "frontdesk.db"
        shutil.copy(template, path)
        return f"sqlite:///{path}"
    url = str(request.getfixturevalue("postgres_url"))
    return emptied(url, request.getfixturevalue("postgres_customer")[0] if with_customer else "")


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    opened = open_for_test(database_url, "test")
    yield opened
    opened.close()


@pytest.fixture
def owner(database_url: str) -> Iterator[Database]:
    """The database as the role that migrates sees it; `db` and the service are the service role."""
    opened = open_for_test(as_role(database_url, OWNER), "owner")
    yield opened
    if not opened.is_sqlite:  # the test may have made the tables anew
        grant_rights(opened, SERVICE)
    opened.close()


@pytest.fixture
def superuser(database_url: str) -> Iterator[Database]:
    """The database as an administrator of the server sees it."""
    opened = open_for_test(as_superuser(database_url), "superuser")
    yield opened
    opened.close()


@pytest.fixture
def base_address() -> str:
    """FRONTDESK_BASE_URL. Modules whose webhooks go to this machine have it on this machine too."""
    return "https://api.example.com"


@pytest.fixture
def config(database_url: str, base_address: str) -> Config:
    said = {"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_BASE_URL": base_address}
    return read_config(said)


@pytest.fixture
def app(config: Config, clock: SetClock) -> App:
    """Closed by the lifespan of `api`."""
    return App(config, open_for_test(config.database_url, "service"), clock)


@pytest.fixture
def kept_customer(request: pytest.FixtureRequest, database_url: str) -> Customer:
    """Made once: making it took half of the time of a small test. `database_url` has put its rows
    into the database.
    """
    kept = "sqlite_of_customer" if database_url.startswith("sqlite") else "postgres_customer"
    made: Customer = request.getfixturevalue(kept)[1]
    return made


@pytest.fixture
def customer(kept_customer: Customer) -> Customer:
    return kept_customer


@pytest.fixture
def api(app: App, customer: Customer) -> Iterator[Api]:
    log = io.StringIO()
    asgi = build_asgi(app, Telemetry(log))
    with TestClient(asgi, base_url="http://testserver", raise_server_exceptions=True) as http:
        http.event_hooks = {"response": [check_declared]}
        yield Api(http, customer.token, log)


def migrated(server: Databases, name: str) -> str:
    """A new database that its owner has migrated; its address for the service role."""
    server.create_database(name)
    url = read_config({"FRONTDESK_DATABASE_URL": server.give_to_owner(name)}).database_url
    db = open_database(url)
    upgrade(db)
    grant_rights(db, SERVICE)
    db.close()
    return as_role(url, SERVICE)


def emptied(url: str, then: str = "") -> str:
    """Empty every table and start its ids anew, then run `then`; append-only tables are changed as
    a replica would do it.

    By DELETE: TRUNCATE makes new files for every table and index, which took most of the time of a
    small test.
    """
    db = open_for_test(as_superuser(url), "superuser")
    tables = [table for table in TABLES if table != "installation"]
    deletes = "; ".join(f"DELETE FROM {table}" for table in tables)  # noqa: S608
    restart = "SELECT setval(format('%I.%I', schemaname, sequencename), 1, false) FROM pg_sequences"
    with db.write() as tx:
        tx.exec_driver_sql(
            f"SET LOCAL session_replication_role = replica; {deletes}; {restart}; {then}".replace(
                "%", "%%"
            )
        )
    db.close()
    for engine in filter(None, _engines.values()):  # they outlive the accounts
        forget(engine)
    return url


class LentDatabase(Database):
    """A database on an engine that outlives it. What a test listens to on its engine ends with the
    test.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.execution_options())

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()


_engines: dict[tuple[str, str], Engine] = {}
# A thread may still use one: a connection that goes while it is open is a warning.
_left: list[Engine | None] = []


def open_for_test(url: str, user: str) -> Database:
    """The database; on PostgreSQL tests lend one engine per user to each other: half of the time of
    a small test went into new connections and into compiling the same statements again.
    """
    if url.startswith("sqlite"):
        return open_database(url)
    engine = _engines.get((url, user))
    if engine is None or not _is_whole(engine):
        _left.append(engine)
        engine = _engines[url, user] = open_database(url).engine
    return LentDatabase(engine)


def _is_whole(engine: Engine) -> bool:
    """Whether no connection is missing or dead: some tests cut them, or leave a thread behind that
    has one.
    """
    if not isinstance(engine.pool, QueuePool) or engine.pool.checkedout():
        return False
    try:
        with ExitStack() as stack:
            for _ in range(engine.pool.checkedin()):
                stack.enter_context(engine.connect()).exec_driver_sql("SELECT 1")
    except DBAPIError:
        engine.dispose()
        return False
    return True


os.environ.pop("FRONTDESK_DATABASE_URL", None)
