"""The planner's statistics after a file: other people's queries go by them."""

import pytest
from sqlalchemy import inspect

from frontdesk.db import Database
from frontdesk.db.engine import refresh_statistics
from frontdesk.db.service_role import MAINTAIN_SINCE
from tests.files.loading import ON_SQLITE, Desk, csv_of, row
from tests.postgres import SERVICE

MANY = 200
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
TABLES = ("members", "member_history", "invitations")


@pytest.fixture
def unknown(owner: Database) -> None:
    """Statistics as of empty tables."""
    with owner.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"VACUUM ANALYZE {table}")


def known_rows(db: Database, table: str = "members") -> int:
    query = "SELECT reltuples FROM pg_class WHERE oid = %s::text::regclass"
    return int(db.ask(lambda tx: tx.exec_driver_sql(query, (table,)).scalar_one()))


def load(desk: Desk, first: int, count: int, **options: object) -> None:
    desk.load(csv_of([row(first + n) for n in range(count)]), **options)


@ON_POSTGRESQL
@pytest.mark.usefixtures("unknown")
def test_a_large_file_is_known_to_the_planner_when_it_is_done_but_no_small_one_and_no_dry_run(
    db: Database, desk: Desk
) -> None:
    load(desk, 0, MANY, dry_run=True)
    load(desk, 0, 20)
    assert known_rows(db) == 0
    load(desk, 20, MANY)
    version = db.ask(lambda tx: tx.exec_driver_sql("SHOW server_version_num").scalar_one())
    expected = 20 + MANY if int(version) >= MAINTAIN_SINCE else 0  # before, only an owner can
    assert (known_rows(db), known_rows(db, "member_history")) == (expected, expected)


@ON_POSTGRESQL
@pytest.mark.usefixtures("unknown")
def test_what_only_the_owner_may_do_is_skipped(db: Database, owner: Database, desk: Desk) -> None:
    load(desk, 0, 20)
    with owner.write() as tx:
        for table in TABLES:
            if tx.exec_driver_sql("SHOW server_version_num").scalar_one() >= str(MAINTAIN_SINCE):
                tx.exec_driver_sql(f"REVOKE MAINTAIN ON {table} FROM {SERVICE}")
    refresh_statistics(db, TABLES, written=10**6)
    assert known_rows(db) == 0


@ON_SQLITE
def test_sqlite_stays_without_statistics_and_so_uses_every_index(db: Database, desk: Desk) -> None:
    load(desk, 0, MANY)
    assert not db.ask(lambda tx: inspect(tx).has_table("sqlite_stat1"))
