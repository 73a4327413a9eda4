"""Migrations: up and down with data, and the models they lead to."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import delete, insert, inspect, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError

from frontdesk.access import caller_of, list_clients
from frontdesk.access.model import Scope, digest
from frontdesk.audit.tables import audit_entries
from frontdesk.config import read_config
from frontdesk.db import Database, migrate, open_database
from frontdesk.db.checks import HEAD, problems, revision_of
from frontdesk.db.schema import metadata
from frontdesk.eligibility.tables import member_history
from frontdesk.errors import Unavailable
from frontdesk.files import list_mappings
from frontdesk.invitations.tables import invitations
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, make_operator, member_body


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


def test_the_mapping_of_an_account_becomes_its_default_and_comes_back(db: Database) -> None:
    account_id = make_customer(db).account_id
    migrate.downgrade(db, "0008")
    with db.write() as tx:
        tx.execute(
            text(
                "INSERT INTO file_mappings (account_id, mapping, changed_at) VALUES (:account, :mapping, :at)"
            ),
            {"account": account_id, "mapping": '{"clear": "-"}', "at": "2026-11-20 12:00:00+00:00"},
        )
    migrate.upgrade(db)
    with db.read() as tx:
        [found] = list_mappings(tx, account_id)
    assert (found.name, found.is_default, found.mapping) == ("default", True, {"clear": "-"})
    migrate.downgrade(db, "0008")
    with db.read() as tx:
        assert tx.execute(text("SELECT account_id FROM file_mappings")).scalars().all() == [account_id]
    migrate.upgrade(db)


def test_a_token_that_an_older_version_kept_as_revoked_stays_ended(db: Database, clock: SetClock) -> None:
    ended, alive = (make_customer(db, name=name, now=clock()) for name in ("Ended", "Alive"))
    migrate.downgrade(db, "0022")
    with db.write() as tx:
        tx.execute(
            text("UPDATE access_tokens SET revoked = true WHERE token_hash = :hash"),
            {"hash": digest(ended.token)},
        )
    migrate.upgrade(db)
    with db.read() as tx:
        assert tx.execute(text("SELECT token_hash FROM access_tokens")).scalars().all() == [
            digest(alive.token)
        ]


def test_an_operators_client_leaves_its_account_and_a_customers_loses_the_scope(
    db: Database, clock: SetClock
) -> None:
    customer = make_customer(db, now=clock())
    migrate.downgrade(db, "0026")
    made = ("client_id, account_id, name, scopes, created_at", "'2026-11-20 12:00:00+00:00'")
    scopes = {"both": "customer operator", "relay": "operator"}
    with db.write() as tx:
        for number, (name, held) in enumerate(scopes.items(), 2):
            row = f"'{name}', {customer.account_id}, '{name}', '{held}', {made[1]}"
            tx.execute(text(f"INSERT INTO api_clients ({made[0]}) VALUES ({row})"))  # noqa: S608
            for token, of_token in ((b"%d" % number, held), (b"%d only" % number, "operator")):
                values = {"hash": token, "client": number, "scopes": of_token}
                tx.execute(
                    text(
                        "INSERT INTO access_tokens (token_hash, api_client_id, scopes, created_at, expires_at) "  # noqa: S608
                        f"VALUES (:hash, :client, :scopes, {made[1]}, {made[1]})"
                    ),
                    values,
                )
    told: list[str] = []
    migrate.upgrade(db, tell=told.append)
    with db.read() as tx:
        kept = {each.client_id: (each.account_id, set(each.scopes)) for each in list_clients(tx)}
        tokens = {
            (row[0], row[1]) for row in tx.execute(text("SELECT api_client_id, scopes FROM access_tokens"))
        }
    assert kept == {
        customer.client_id: (customer.account_id, {Scope.CUSTOMER}),
        "both": (customer.account_id, {Scope.CUSTOMER}),
        "relay": (None, {Scope.OPERATOR}),
    }
    assert tokens == {(1, "customer"), (2, "customer"), (3, "operator")}
    assert ["relay" in told[0], "both" in told[1], len(told)] == [True, True, 2]


def test_an_older_version_finds_operators_clients_in_an_account_of_their_own(
    db: Database, clock: SetClock
) -> None:
    customer, operator = make_customer(db, now=clock()), make_operator(db, now=clock())
    migrate.downgrade(db, "0026")
    query = "SELECT accounts.name, client_id FROM api_clients JOIN accounts ON accounts.id = account_id"
    with db.read() as tx:
        found = {(row[0], row[1]) for row in tx.execute(text(query))}
    assert found == {("Example Health", customer.client_id), ("Operators", operator.client_id)}
    migrate.upgrade(db)
    with db.read() as tx:
        caller = caller_of(digest(operator.token)).read(tx)
    assert caller is not None
    assert (caller.account_id, caller.account_state) == (None, None)


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


def test_what_was_in_line_before_addresses_were_folded_is_folded(
    api: Api, db: Database, customer: Customer
) -> None:
    body = member_body(email="Zoë@Example.com", invite_immediately=True)
    api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    with db.write() as tx:
        tx.execute(update(invitations).values(address_folded=None))
    migrate.downgrade(db, "0007")
    assert migrate.upgrade(db)[0] == "0008"
    with db.read() as tx:
        assert tx.execute(select(invitations.c.address_folded)).scalars().all() == ["zoë@example.com"]
