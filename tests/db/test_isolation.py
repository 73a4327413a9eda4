"""Which state of the database a transaction sees on PostgreSQL, however the server, the database or the role is set up."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from frontdesk.config import read_config
from frontdesk.db import Database, Tx, open_database
from frontdesk.db.wire import WireDatabase, evented
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


def test_a_writer_on_the_short_way_sees_what_others_have_committed(stricter_url: str) -> None:
    def work(db: WireDatabase) -> object:
        with db.write() as tx:
            sql = "SELECT to_json(current_setting('transaction_isolation'))"
            [found] = cast(Any, tx).run(sql, (), is_answered=True)
        return found

    async def run() -> object:
        wire = WireDatabase(stricter_url)
        try:
            return await evented(work, wire)
        finally:
            wire.close()

    assert asyncio.run(run()) == "read committed"
