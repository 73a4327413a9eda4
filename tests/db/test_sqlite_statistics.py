"""Statistics of SQLite that a stranger's tool has stored: no connection of ours goes by them."""

from contextlib import closing

import pysqlite3
import pytest

from frontdesk.db import Database, open_database
from tests.population import analyze

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
QUERY = "EXPLAIN QUERY PLAN SELECT id FROM plans WHERE account_id = 1"


def plan_of(url: str) -> str:
    with closing(open_database(url)) as db:
        return str(db.ask(lambda tx: tx.exec_driver_sql(QUERY).all()))


def test_what_was_found_in_small_tables_is_forgotten(db: Database, database_url: str) -> None:
    before = plan_of(database_url)
    analyze(db)
    assert plan_of(database_url) == before
    tables = "SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'"
    assert db.ask(lambda tx: tx.exec_driver_sql(tables).all()) == []


def test_a_connection_opens_where_they_cant_be_dropped(db: Database, database_url: str) -> None:
    analyze(db)
    with closing(pysqlite3.connect(str(db.engine.url.database), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert plan_of(database_url)
