"""A database that is locked, full or read-only: writes are put off with 503, reads go on, and all is well afterwards.

A disk that is really full is not tried here, for that takes a file system of its own; SQLite is told how large its file
may become, which ends in the same error of the same library.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from frontdesk.app import App
from frontdesk.db import Database
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
    with pragma(app, "max_page_count=1", undo="max_page_count=1073741823"):  # 1: no more than there are now
        while (answer := api.post(path, member_body(stored + 1))).status_code == 201:
            stored += 1
        check_put_off(answer)
        assert api.get("/v2/plans").status_code == 200
    assert api.post(path, member_body(stored + 1)).status_code == 201
    assert member_count(db) == stored + 1
    with db.read() as tx:
        assert tx.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@contextmanager
def pragma(app: App, setting: str, *, undo: str) -> Iterator[None]:
    """Every connection that the service opens meanwhile has the setting; those it has are given up before and after."""

    def prepare(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA {setting}")

    app.db.engine.dispose()
    event.listen(app.db.engine, "connect", prepare)
    try:
        yield
    finally:
        event.remove(app.db.engine, "connect", prepare)
        with app.db.read() as tx:
            tx.exec_driver_sql(f"PRAGMA {undo}")
        app.db.engine.dispose()


@contextmanager
def sqlite_read_only(app: App, _db: Database, _request: pytest.FixtureRequest) -> Iterator[None]:
    with pragma(app, "query_only=ON", undo="query_only=OFF"):
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
