"""Migrations: up and down with data, and the models they lead to."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import delete, insert, inspect, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError

from frontdesk.audit.tables import audit_entries
from frontdesk.config import read_config
from frontdesk.db import Database, migrate, open_database
from frontdesk.db.checks import HEAD, problems, revision_of
from frontdesk.db.schema import metadata
from frontdesk.eligibility.tables import member_history
from frontdesk.errors import Unavailable
from tests.conftest import Api
from tests.factories import Customer, make_customer, member_body


@pytest.fixture
def db(owner: Database) -> Database:
    """Migrations run as the owner of the tables."""
    return owner


def test_the_migrated_schema_is_what_the_models_say(db: Database) -> None:
    with db.read() as tx:
        context = MigrationContext.configure(tx)
        assert compare_metadata(context, metadata) == []


def test_this_program_and_the_database_are_at_the_revision_that_alembic_finds(db: Database) -> None:
    with db.read() as tx:
        found = MigrationContext.configure(tx).get_current_revision()
    assert revision_of(db) == found == HEAD == ScriptDirectory(str(migrate.FOLDER)).get_current_head()


def test_constraints_and_indexes_have_the_names_of_the_models(db: Database) -> None:
    with db.read() as tx:
        looked_at = inspect(tx)
        for table in metadata.sorted_tables:
            unique = {thing["name"] for thing in looked_at.get_unique_constraints(table.name)}
            indexes = {thing["name"] for thing in looked_at.get_indexes(table.name)} - unique
            assert indexes == {str(index.name) for index in table.indexes}
            assert unique == {
                str(thing.name)
                for thing in table.constraints
                if thing.__class__.__name__ == "UniqueConstraint"
            }


def test_down_and_up_again_with_data_leaves_an_empty_schema_that_works(db: Database) -> None:
    make_customer(db)
    migrate.downgrade(db, "base")
    with db.read() as tx:
        assert [name for name in inspect(tx).get_table_names() if name != "alembic_version"] == []
    assert migrate.upgrade(db)[-1] == HEAD
    assert migrate.upgrade(db) == []
    make_customer(db)


def test_history_and_audit_can_only_be_added_to(api: Api, db: Database, customer: Customer) -> None:
    api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body())
    for table in (member_history, audit_entries):
        for deed in (update(table).values(request_id="other"), delete(table)):
            with pytest.raises(DBAPIError), db.write() as tx:
                tx.execute(deed)


def test_what_is_in_history_or_audit_can_not_be_replaced_either(
    api: Api, db: Database, customer: Customer
) -> None:
    api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body())
    for table in (member_history, audit_entries):
        with db.read() as tx:
            before = [dict(row) for row in tx.execute(select(table).order_by(table.c.id)).mappings()]
        row = before[-1] | {"request_id": "other"}
        replacing = (
            insert(table).prefix_with("OR REPLACE").values(row)
            if db.is_sqlite
            else postgresql.insert(table)
            .values(row)
            .on_conflict_do_update(index_elements=["id"], set_={"request_id": "other"})
        )
        with pytest.raises(DBAPIError, match="append-only"), db.write() as tx:
            tx.execute(replacing)
        with db.read() as tx:
            assert [dict(row) for row in tx.execute(select(table).order_by(table.c.id)).mappings()] == before


def test_checks_name_what_is_wrong_and_its_remedy(db: Database, database_url: str) -> None:
    good = read_config({"FRONTDESK_DATABASE_URL": database_url})
    other = read_config({"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_UNIQUENESS": "account"})
    assert problems(db, good) == []
    assert "FRONTDESK_UNIQUENESS=service" in problems(db, other)[0].remedy
    migrate.downgrade(db, "base")
    assert revision_of(db) is None
    assert "frontdesk migrate" in problems(db, good)[0].remedy
    migrate.upgrade(db)


def test_a_migration_waits_for_locks_only_so_long_and_changes_nothing(
    db: Database, database_url: str
) -> None:
    if db.is_sqlite:
        blocker = open_database(database_url)
        with blocker.write() as tx:
            tx.exec_driver_sql("UPDATE installation SET uniqueness = uniqueness")
            with pytest.raises(Unavailable):
                migrate.downgrade(db, "base")
        blocker.close()
    else:
        with db.read() as tx:
            tx.exec_driver_sql("SELECT * FROM installation")
            with pytest.raises(Unavailable):
                migrate.downgrade(db, "base")
    assert revision_of(db) == HEAD
