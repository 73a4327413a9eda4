"""Which state of the database a transaction sees on PostgreSQL, however the server, the database or the role is set up."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from frontdesk.config import read_config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from tests.patience import in_event_loop
from tests.postgres import Databases


@pytest.fixture
def stricter(postgres: Databases) -> Iterator[Database]:
    """A database whose transactions are REPEATABLE READ unless they say otherwise."""
    with postgres.database() as url:
        name = url.rpartition("/")[2]
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
        with closing(open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)) as db:
            yield db


def setting(tx: Tx, name: str = "transaction_isolation") -> str:
    return str(tx.exec_driver_sql(f"SHOW {name}").scalar_one())


def test_a_writer_sees_what_others_have_committed_and_a_reader_one_state(stricter: Database) -> None:
    for _ in range(2):  # also on a connection that a reader has used
        with stricter.write() as tx:
            assert setting(tx) == "read committed"
        with stricter.read() as tx:
            assert setting(tx) == "repeatable read"


@in_event_loop
async def test_a_writer_in_a_pipeline_sees_what_others_have_committed(stricter: Database) -> None:
    def work() -> object:
        with db.write() as tx:
            sql = "SELECT to_json(current_setting('transaction_isolation'))"
            return tx.exec_driver_sql(sql).one()

    with closing(PipelineDatabase(stricter.url)) as db:
        assert await run_in_event_loop(work) == ["read committed"]


def test_only_statements_that_serve_or_load_are_kept_to_index_scans(stricter: Database) -> None:
    def scans(tx: Tx) -> str:
        return setting(tx, "enable_seqscan")

    with closing(open_database(stricter.url, index_scans=False)) as command:
        assert (stricter.ask(scans), command.ask(scans)) == ("off", "on")
    with stricter.write_schema() as tx:
        assert scans(tx) == "on"
    assert stricter.ask(scans) == "off"
