"""A database that is locked, full or read-only: writes are put off with 503, reads go on, and all is well afterwards.

A disk that is really full takes a file system of its own, which only root can mount. Elsewhere SQLite is told how large its file
may become, which ends in the same error of the same library.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import FRESH_SECONDS, WriteProbe, problems, write_a_little
from frontdesk.errors import Unavailable
from tests.conftest import Api
from tests.factories import Customer, member_body
from tests.postgres import Databases

HOLD_SQLITE = """
import sys, pysqlite3
connection = pysqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(db: Database) -> Iterator[None]:
    """What a write needs is locked, for as long as the block lasts."""
    if db.is_sqlite:
        command = [sys.executable, "-c", HOLD_SQLITE, str(db.engine.url.database)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            try:
                yield
            finally:
                holder.communicate()
    else:
        with psycopg.connect(plain_url(db)) as connection:
            connection.execute("LOCK TABLE members IN EXCLUSIVE MODE")
            yield


def plain_url(db: Database) -> str:
    return db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


def check_put_off(answer: Any) -> None:
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def test_a_lock_held_too_long_puts_writes_off_while_reads_go_on(api: Api, db: Database, path: str) -> None:
    assert api.post(path, member_body(1)).status_code == 201
    with held_by_another_process(db):
        check_put_off(api.post(path, member_body(2)))
        assert api.get("/v2/plans").status_code == 200
    assert api.post(path, member_body(2)).status_code == 201
    assert member_count(db) == 2


def test_a_database_that_turns_read_only_puts_writes_off_while_reads_go_on(
    api: Api, app: App, db: Database, customer: Customer, path: str, request: pytest.FixtureRequest
) -> None:
    assert api.post(path, member_body(1)).status_code == 201
    turn = sqlite_read_only if db.is_sqlite else postgresql_read_only
    with turn(app, db, request):
        check_put_off(api.post(path, member_body(2)))
        check_put_off(api.post(path, {"external_id": "AB 000001", "last_name": "Other"}))
        check_put_off(api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "Another name"}))
        assert api.get("/v2/plans").status_code == 200
    assert api.post(path, member_body(2)).status_code == 201
    assert member_count(db) == 2


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL has no such bound of its own
def test_a_file_that_can_grow_no_more_puts_writes_off_while_reads_go_on(
    api: Api, app: App, db: Database, path: str
) -> None:
    stored = 0
    with pragma(
        app.db, "max_page_count=1", undo="max_page_count=1073741823"
    ):  # 1: no more than there are now
        while (answer := api.post(path, member_body(stored + 1))).status_code == 201:
            stored += 1
        check_put_off(answer)
        assert api.get("/v2/plans").status_code == 200
    assert api.post(path, member_body(stored + 1)).status_code == 201
    assert member_count(db) == stored + 1
    with db.read() as tx:
        assert tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_readiness_and_check_fail_while_the_database_is_read_only(
    api: Api,
    app: App,
    db: Database,
    config: Config,
    request: pytest.FixtureRequest,
    later: Callable[[], None],
) -> None:
    assert api.get("/readyz").status_code == 200
    turn = sqlite_read_only if db.is_sqlite else postgresql_read_only
    with turn(app, db, request):
        later()
        check_put_off(answer := api.get("/readyz"))
        assert answer.json()["detail"] == "The database is read-only."
        assert "The database is read-only." in [problem.what for problem in problems(app.db, config)]
    later()
    assert api.get("/readyz").status_code == 200


def test_readiness_and_check_fail_while_the_disk_has_no_room(
    api: Api,
    app: App,
    db: Database,
    config: Config,
    request: pytest.FixtureRequest,
    later: Callable[[], None],
) -> None:
    with (sqlite_without_room if db.is_sqlite else postgresql_without_room)(app, db, request):
        later()
        check_put_off(api.get("/readyz"))
        assert problems(app.db, config) != []
    later()
    assert api.get("/readyz").status_code == 200
    assert problems(app.db, config) == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_full_disk_is_not_ready_and_a_check_says_so(
    db: Database, config: Config, small_disk: Path | None
) -> None:
    url = db.url if small_disk is None else f"sqlite:///{small_disk / 'frontdesk.db'}"
    if small_disk is not None:
        db.close()
        shutil.copy(str(db.engine.url.database), small_disk / "frontdesk.db")
    full = open_database(url)
    with contextlib.ExitStack() as stack:
        if small_disk is None:
            stack.enter_context(pragma(full, "max_page_count=1", undo="max_page_count=1073741823"))
        else:
            write_a_little(full)
            fill(small_disk / "filler")
        with pytest.raises(Unavailable) as caught:
            WriteProbe(full).verify()
        assert [caught.value.detail] == [problem.what for problem in problems(full, config)]
    full.close()


def test_readiness_stands_while_another_process_writes_for_long(
    api: Api, db: Database, later: Callable[[], None]
) -> None:
    with held_by_another_process(db):
        later()
        assert api.get("/readyz").status_code == 200


def test_readiness_writes_once_in_five_seconds(api: Api, app: App, later: Callable[[], None]) -> None:
    written = []
    with listening(app.db.engine, lambda *told: written.append(told[2].startswith("UPDATE"))):
        for _ in range(10):
            assert api.get("/readyz").status_code == 200
        assert sum(written) == 1
        later()
        assert api.get("/readyz").status_code == 200
    assert sum(written) == 2


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the time pass for which an answer of the probe is good."""
    seconds = [0.0]
    monkeypatch.setattr("frontdesk.db.checks.monotonic", lambda: seconds[0])

    def wait() -> None:
        seconds[0] += FRESH_SECONDS

    return wait


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of 6 MiB, or None where this user can't mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextmanager
def listening(engine: Engine, listener: Callable[..., None]) -> Iterator[None]:
    event.listen(engine, "before_cursor_execute", listener)
    yield
    event.remove(engine, "before_cursor_execute", listener)


@contextmanager
def sqlite_without_room(app: App, _db: Database, _request: pytest.FixtureRequest) -> Iterator[None]:
    with pragma(app.db, "max_page_count=1", undo="max_page_count=1073741823"):
        yield


@contextmanager
def postgresql_without_room(app: App, db: Database, request: pytest.FixtureRequest) -> Iterator[None]:
    """No room for a temporary file; there is no bound for tables."""
    server: Databases = request.getfixturevalue("postgres")
    name = str(db.engine.url.database)
    for change in ("SET temp_file_limit = 0", "RESET temp_file_limit"):
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" {change}'.encode())
        app.db.engine.dispose()
        if "RESET" not in change:
            yield


@contextmanager
def pragma(db: Database, setting: str, *, undo: str) -> Iterator[None]:
    """Every connection that the service opens meanwhile has the setting; those it has are given up before and after."""

    def prepare(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA {setting}")

    db.engine.dispose()
    event.listen(db.engine, "connect", prepare)
    try:
        yield
    finally:
        event.remove(db.engine, "connect", prepare)
        with db.read() as tx:
            tx.exec_driver_sql(f"PRAGMA {undo}")
        db.engine.dispose()


@contextmanager
def sqlite_read_only(app: App, _db: Database, _request: pytest.FixtureRequest) -> Iterator[None]:
    with pragma(app.db, "query_only=ON", undo="query_only=OFF"):
        yield


@contextmanager
def postgresql_read_only(_app: App, db: Database, request: pytest.FixtureRequest) -> Iterator[None]:
    """As on a standby, or on a server that its operator keeps from filling its disk."""
    server: Databases = request.getfixturevalue("postgres")
    set_read_only(server, db, "on")
    try:
        yield
    finally:
        set_read_only(server, db, "off")


def set_read_only(server: Databases, db: Database, value: str) -> None:
    name = str(db.engine.url.database)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'.encode())
    server.kill_backends(name)  # the setting is for new connections


def member_count(db: Database) -> int:
    return int(db.ask(lambda tx: tx.exec_driver_sql("SELECT count(*) FROM members").scalar_one()))
