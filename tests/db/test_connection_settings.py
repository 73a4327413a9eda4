"""The settings that every connection to PostgreSQL relies on, and what becomes of an address that does not keep them."""

import asyncio
from contextlib import closing
from typing import Any

import psycopg
import pytest

from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import problems
from frontdesk.db.failures import DatabaseState
from frontdesk.db.migrate import upgrade
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.errors import Unavailable

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
REFUSED = "connection failed: FATAL:  unsupported startup parameter: options"


class Pooler:
    """Stands between the driver and the server: drops the options of each connection, or refuses them."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.opened: list[Any] = []

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        assert options.pop("options")
        if self.refuses:
            raise psycopg.OperationalError(REFUSED)
        return options


@pytest.fixture(params=[False, True], ids=["drops", "refuses"])
def pooler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pooler:
    made = Pooler(refuses=request.param)
    connect, connect_async = psycopg.Connection.connect.__func__, psycopg.AsyncConnection.connect.__func__  # type: ignore[attr-defined]

    def dropping(kind: Any, *arguments: Any, **options: Any) -> Any:
        made.opened.append(connect(kind, *arguments, **made.options(options)))
        return made.opened[-1]

    async def dropping_async(kind: Any, *arguments: Any, **options: Any) -> Any:
        made.opened.append(await connect_async(kind, *arguments, **made.options(options)))
        return made.opened[-1]

    monkeypatch.setattr(psycopg.Connection, "connect", classmethod(dropping))
    monkeypatch.setattr(psycopg.AsyncConnection, "connect", classmethod(dropping_async))
    return made


def test_no_statement_is_compiled_and_each_has_its_limits(db: Database) -> None:
    command = open_database(db.url, index_scans=False)
    for opened, hash_joins in ((db, "off"), (command, "on")):
        found = opened.ask(lambda tx: tx.exec_driver_sql(
            "SELECT current_setting('jit'), current_setting('statement_timeout'), current_setting('enable_hashjoin')"
        ).one())  # fmt: skip
        assert tuple(found) == ("off", "8s", hash_joins)
    command.close()


@pytest.mark.usefixtures("pooler")
def test_check_names_a_pooler_and_what_to_do(config: Config) -> None:
    with closing(open_database(config.database_url, index_scans=False)) as db:
        [problem] = problems(db, config)
    assert "PgBouncer" in problem.what
    assert "FRONTDESK_DATABASE_URL" in problem.remedy


def test_a_connection_without_its_settings_is_refused_and_closed(database_url: str, pooler: Pooler) -> None:
    db = open_database(database_url)
    with pytest.raises(Unavailable) as refused, db.write():
        pytest.fail("the connection was used")
    assert refused.value.code == DatabaseState.SETTINGS
    with pytest.raises(Unavailable) as refused:
        upgrade(db)
    db.close()
    assert refused.value.code == DatabaseState.SETTINGS
    assert all(connection.closed for connection in pooler.opened)


def test_a_pipeline_without_its_settings_is_refused_and_closed(database_url: str, pooler: Pooler) -> None:
    wire = PipelineDatabase(database_url)

    def write() -> None:
        with wire.write() as tx:
            tx.exec_driver_sql("SELECT 1").one()

    async def ask() -> None:
        await wire.ask("SELECT 1", ())

    for work in (run_in_event_loop(write), ask()):
        with pytest.raises(Unavailable) as refused:
            asyncio.run(work)
        assert refused.value.code == DatabaseState.SETTINGS
    assert all(connection.closed for connection in pooler.opened)
