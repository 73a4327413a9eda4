"""Which state of the database a transaction sees on PostgreSQL, however the server, the database or the role is set up."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from frontdesk.config import read_config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from tests.postgres import Databases


@pytest.fixture
def stricter_url(postgres: Databases) -> Iterator[str]:
    """A database whose transactions are REPEATABLE READ unless they say otherwise."""
    with postgres.database() as url:
        name = url.rpartition("/")[2]
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
        yield read_config({"FRONTDESK_DATABASE_URL": url}).database_url


@pytest.fixture
def stricter(stricter_url: str) -> Iterator[Database]:
    db = open_database(stricter_url)
    yield db
    db.close()


def isolation(tx: Tx) -> str:
    return str(tx.exec_driver_sql("SHOW transaction_isolation").scalar_one())


def test_a_writer_sees_what_others_have_committed_and_a_reader_one_state(stricter: Database) -> None:
    for _ in range(2):  # also on a connection that a reader has used
        with stricter.write() as tx:
            assert isolation(tx) == "read committed"
        with stricter.read() as tx:
            assert isolation(tx) == "repeatable read"


def test_a_writer_in_a_pipeline_sees_what_others_have_committed(stricter_url: str) -> None:
    def work(db: PipelineDatabase) -> object:
        with db.write() as tx:
            sql = "SELECT to_json(current_setting('transaction_isolation'))"
            [found] = tx.exec_driver_sql(sql).one()
        return found

    async def run() -> object:
        db = PipelineDatabase(stricter_url)
        try:
            return await run_in_event_loop(work, db)
        finally:
            db.close()

    assert asyncio.run(run()) == "read committed"


def scan_setting(db: Database) -> str:
    return str(db.ask(lambda tx: tx.exec_driver_sql("SHOW enable_seqscan").scalar_one()))


def test_only_statements_that_serve_or_load_are_kept_to_index_scans(stricter: Database) -> None:
    command = open_database(stricter.url, index_scans=False)
    assert (scan_setting(stricter), scan_setting(command)) == ("off", "on")
    command.close()
    with stricter.write_schema() as tx:
        assert tx.exec_driver_sql("SHOW enable_seqscan").scalar_one() == "on"
    assert scan_setting(stricter) == "off"
