"""A database that is locked, full or read-only: writes are put off with 503, reads go on, and all
is well afterwards.

A disk that is really full takes a file system of its own, which only root can mount. Elsewhere
SQLite is told how large its file may become, which ends in the same error of the same library.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import FRESH_SECONDS, WriteProbe, problems, write_a_little
from frontdesk.db.failures import DatabaseState
from frontdesk.errors import Unavailable
from tests.conftest import Api
from tests.db.statements import statements
from tests.factories import Customer, member_body
from tests.faults.locks import held_by_another_process
from tests.postgres import Databases

# Pragmas of SQLite and how they are undone; settings of PostgreSQL, which has no bound for tables:
# only for temporary files.
PRAGMAS = {
    "read-only": ("query_only=ON", "query_only=OFF"),
    "full": ("max_page_count=1", "max_page_count=1073741823"),
}
SETTINGS = {"read-only": "default_transaction_read_only = on", "full": "temp_file_limit = 0"}

Trouble = tuple[str, AbstractContextManager[Any]]


@contextmanager
def with_pragma(db: Database, kind: str) -> Iterator[None]:
    """Every connection that the service opens meanwhile has the pragma; those it has are given up
    before and after.
    """
    pragma, undo = PRAGMAS[kind]

    def prepare(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA {pragma}")

    db.engine.dispose()
    event.listen(db.engine, "connect", prepare)
    try:
        yield
    finally:
        event.remove(db.engine, "connect", prepare)
        db.ask(lambda tx: tx.exec_driver_sql(f"PRAGMA {undo}"))
        db.engine.dispose()


@contextmanager
def with_setting(postgres: Databases, db: Database, setting: str) -> Iterator[None]:
    """As on a standby, or on a server whose operator keeps it from filling its disk."""
    name = str(db.engine.url.database)
    for change in (f"SET {setting}", f"RESET {setting.partition(' ')[0]}"):
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" {change}'.encode())
        postgres.kill_backends(name)  # a setting is for new connections
        if change.startswith("SET"):
            yield


def check_put_off(answer: Any) -> None:
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.fixture(params=["locked", "read-only", "full"])
def trouble(request: pytest.FixtureRequest, app: App, db: Database) -> Trouble:
    kind = str(request.param)
    if kind == "locked":
        return kind, held_by_another_process(db)
    if db.is_sqlite:
        return kind, with_pragma(app.db, kind)
    return kind, with_setting(request.getfixturevalue("postgres"), db, SETTINGS[kind])


def test_writes_are_put_off_while_reads_go_on(
    api: Api,
    app: App,
    config: Config,
    customer: Customer,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Trouble,
) -> None:
    for seconds in ("FRESH_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(f"frontdesk.db.checks.{seconds}", 0)
    db = app.db
    plan = f"/v2/plans/{customer.plan_ids[0]}"
    kind, in_trouble = trouble
    assert api.post(f"{plan}/eligibility", member_body(1)).status_code == 201
    stored = 1
    with in_trouble:
        ready = api.get("/readyz")
        if kind == "locked":
            assert ready.status_code == 200
        else:
            check_put_off(ready)
            assert ready.json()["detail"] in [problem.what for problem in problems(db, config)]
        if kind != "full" or db.is_sqlite:
            while (
                answer := api.post(f"{plan}/eligibility", member_body(stored + 1))
            ).status_code == 201:
                stored += 1
            check_put_off(answer)
        if kind == "read-only":
            assert ready.json()["detail"] == "The database is read-only."
            update = {"external_id": "AB 000001", "last_name": "Other"}
            check_put_off(api.post(f"{plan}/eligibility", update))
            check_put_off(api.patch(plan, {"name": "Another name"}))
        assert api.get("/v2/plans").status_code == 200
    assert api.get("/readyz").status_code == 200
    assert problems(db, config) == []
    assert api.post(f"{plan}/eligibility", member_body(stored + 1)).status_code == 201
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM members").scalar() == stored + 1
        assert not db.is_sqlite or tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_readiness_writes_once_in_five_seconds(
    api: Api, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr("frontdesk.db.checks.monotonic", lambda: seconds[0])
    with statements(app.db, "UPDATE installation") as written:
        for _ in range(10):
            assert api.get("/readyz").status_code == 200
        assert len(written) == 1
        seconds[0] += FRESH_SECONDS
        assert api.get("/readyz").status_code == 200
    assert len(written) == 2


def fill(folder: Path) -> None:
    with (folder / "filler").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("free", [0, 2**20])
def test_a_full_disk_is_told_where_sqlite_speaks_of_its_files(
    database_url: str, monkeypatch: pytest.MonkeyPatch, *, free: int
) -> None:
    """SQLite says that a file can't be opened or written, not why."""
    Path(database_url.removeprefix("sqlite:///") + "-wal").mkdir()
    monkeypatch.setattr(Database, "free_disk_bytes", lambda _db: free)
    with closing(open_database(database_url)) as db, pytest.raises(Unavailable) as caught:
        write_a_little(db)
    expected = DatabaseState.UNREACHABLE if free else DatabaseState.FULL
    assert caught.value.code == expected


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_full_disk_is_not_ready_and_a_check_says_so(
    database_url: str, config: Config, tmp_path: Path
) -> None:
    """Where this user can't mount a disk of 6 MiB, the bound of a file, above, is what can be
    tried.
    """
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs", str(tmp_path)]
    source = shutil.copy(database_url.removeprefix("sqlite:///"), tmp_path.with_suffix(".db"))
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        return
    try:
        path = shutil.copy(source, tmp_path / "full.db")
        with closing(open_database(f"sqlite:///{path}")) as full:
            write_a_little(full)
            fill(tmp_path)
            with pytest.raises(Unavailable) as caught:
                WriteProbe(full).verify()
            assert caught.value.code == DatabaseState.FULL
            assert caught.value.detail in [problem.what for problem in problems(full, config)]
        # Without a connection there is no index of the log, and no room for one.
        with closing(open_database(f"sqlite:///{path}")) as full:
            fill(tmp_path)
            with pytest.raises(Unavailable) as caught:
                write_a_little(full)
            assert caught.value.code == DatabaseState.FULL
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
