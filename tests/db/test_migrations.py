"""Migrations: up and down with data, and the models they lead to."""

from contextlib import closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from frontdesk.config import read_config
from frontdesk.db import Database, migrate, open_database
from frontdesk.db.checks import HEAD, problems, revision_of
from frontdesk.db.schema import metadata
from frontdesk.errors import Unavailable
from tests.factories import make_customer


@pytest.fixture
def db(owner: Database) -> Database:
    """Migrations run as the owner of the tables."""
    return owner


def test_the_migrated_schema_is_what_the_models_say_at_the_revision_that_alembic_finds(db: Database) -> None:
    with db.read() as tx:
        context = MigrationContext.configure(tx)
        assert compare_metadata(context, metadata) == []
        found = context.get_current_revision()
    assert revision_of(db) == found == HEAD == ScriptDirectory(str(migrate.FOLDER)).get_current_head()


def test_down_and_up_again_with_data_leaves_an_empty_schema_that_works(
    db: Database, database_url: str
) -> None:
    config = read_config({"FRONTDESK_DATABASE_URL": database_url})
    make_customer(db)
    migrate.downgrade(db, "base")
    assert revision_of(db) is None
    assert "frontdesk migrate" in problems(db, config)[0].remedy
    with db.read() as tx:
        assert [name for name in inspect(tx).get_table_names() if name != "alembic_version"] == []
    assert migrate.upgrade(db)[-1] == HEAD
    assert migrate.upgrade(db) == []
    assert problems(db, config) == []
    make_customer(db)


def test_a_migration_waits_for_locks_so_long_and_changes_nothing(db: Database, database_url: str) -> None:
    lock = "UPDATE installation SET uniqueness = uniqueness" if db.is_sqlite else "SELECT * FROM installation"
    with closing(open_database(database_url)) as blocker, blocker.write() as tx:
        tx.exec_driver_sql(lock)
        with pytest.raises(Unavailable):
            migrate.downgrade(db, "base")
    assert revision_of(db) == HEAD
