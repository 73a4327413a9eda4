"""The settings that every connection relies on, however the server, the database or the role is set
up, and what becomes of an address that does not keep them.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pysqlite3
import pytest

from frontdesk.config import Config, read_config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.checks import problems
from frontdesk.db.failures import DatabaseState
from frontdesk.db.migrate import upgrade
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.errors import Unavailable
from tests.population import analyze
from tests.postgres import Databases

POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
REFUSED = "connection failed: FATAL:  unsupported startup parameter: options"


class Pooler:
    """Stands between the driver and the server: drops the options of each connection, or refuses
    them.

    "role" drops them where the role has been given the same settings.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.opened: list[Any] = []

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        given = options.pop("options")
        if self.what == "refuses":
            raise psycopg.OperationalError(REFUSED)
        of_role = re.sub(r"-c frontdesk\.\S+", "", given)
        return options | ({"options": of_role} if self.what == "role" else {})


@pytest.fixture(params=["drops", "refuses", "role"])
def pooler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pooler:
    made = Pooler(request.param)
    connect = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]
    connect_async = psycopg.AsyncConnection.connect.__func__  # type: ignore[attr-defined]

    def dropping(kind: Any, *arguments: Any, **options: Any) -> Any:
        made.opened.append(connect(kind, *arguments, **made.options(options)))
        return made.opened[-1]

    async def dropping_async(kind: Any, *arguments: Any, **options: Any) -> Any:
        made.opened.append(await connect_async(kind, *arguments, **made.options(options)))
        return made.opened[-1]

    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(dropping))
    monkeypatch.setattr(psycopg.AsyncConnection, "connect", classmethod(dropping_async))
    return made


@POSTGRESQL
def test_a_connection_without_its_settings_is_refused(
    config: Config, database_url: str, pooler: Pooler
) -> None:
    db = open_database(database_url)
    wire = PipelineDatabase(database_url)

    def write(db: Any) -> None:
        with db.write() as tx:
            tx.exec_driver_sql("SELECT 1").one()

    async def ask() -> None:
        await wire.ask("SELECT 1", ())

    works: list[Callable[[], object]] = [
        lambda: write(db),
        lambda: upgrade(db),
        lambda: asyncio.run(run_in_event_loop(lambda: write(wire))),
        lambda: asyncio.run(ask()),
    ]
    for work in works:
        with pytest.raises(Unavailable) as refused:
            work()
        assert refused.value.code == DatabaseState.SETTINGS
    db.close()
    assert all(connection.closed for connection in pooler.opened)
    with closing(open_database(config.database_url, index_scans=False)) as db:
        [problem] = problems(db, config)
    assert "PgBouncer" in problem.what
    assert "FRONTDESK_DATABASE_URL" in problem.remedy


@pytest.fixture
def stricter(postgres: Databases) -> Iterator[Database]:
    """A database whose transactions are REPEATABLE READ unless they say otherwise."""
    with postgres.database() as url:
        name = url.rpartition("/")[2]
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(
                f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"
            )
        with closing(
            open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
        ) as db:
            yield db


def settings(tx: Tx, *names: str) -> list[str]:
    return [str(tx.exec_driver_sql(f"SHOW {name}").scalar_one()) for name in names]


def test_a_writer_sees_what_others_have_committed_and_a_reader_one_state(
    stricter: Database,
) -> None:
    for _ in range(2):  # also on a connection that a reader has used
        with stricter.write() as tx:
            assert settings(tx, "transaction_isolation") == ["read committed"]
        with stricter.read() as tx:
            assert settings(tx, "transaction_isolation") == ["repeatable read"]

    def work(wire: PipelineDatabase) -> object:
        with wire.write() as tx:
            return tx.exec_driver_sql(
                "SELECT to_json(current_setting('transaction_isolation'))"
            ).one()

    with closing(PipelineDatabase(stricter.url)) as wire:
        assert asyncio.run(run_in_event_loop(work, wire)) == ["read committed"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_statistics_that_another_tool_has_stored_are_not_used(
    db: Database, database_url: str
) -> None:
    def plan() -> str:
        query = "EXPLAIN QUERY PLAN SELECT id FROM plans WHERE account_id = 1"
        with closing(open_database(database_url)) as opened:
            return str(opened.ask(lambda tx: tx.exec_driver_sql(query).all()))

    before = plan()
    analyze(db)
    assert plan() == before
    tables = "SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'"
    assert db.ask(lambda tx: tx.exec_driver_sql(tables).all()) == []
    analyze(db)
    with closing(pysqlite3.connect(str(db.engine.url.database), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")  # so that they can't be dropped
        assert plan()
