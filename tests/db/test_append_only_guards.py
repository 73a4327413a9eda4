"""Nobody talks the triggers of the append-only tables round: not with a temporary table, type or
function, nor by search_path.
"""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import DBAPIError

from frontdesk.audit.tables import audit_entries
from frontdesk.config import read_config
from frontdesk.db import Database
from frontdesk.db.checks import guard_failures, problems
from frontdesk.db.migrate import downgrade, restore_guards, upgrade
from frontdesk.db.migrations.append_only import damaged_guards, make_guards
from frontdesk.db.schema import metadata
from frontdesk.db.service_role import wrong_rights
from frontdesk.eligibility.tables import members
from frontdesk.errors import Unavailable
from frontdesk.privacy.model import ErasureCause
from frontdesk.privacy.store import WITHOUT_VALUES
from frontdesk.privacy.tables import audit_prunings, erasures
from tests.cli.conftest import CommandLine
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body
from tests.postgres import OWNER, SERVICE, as_role

LONG_AGO = NOW - timedelta(days=3650)

# Each takes something from a person's history or from the trail that the guards keep there.
FORBIDDEN = {
    "history loses its values": "UPDATE {schema}.member_history SET changes = {without_values}",
    "an old audit entry goes": "DELETE FROM {schema}.audit_entries WHERE action = 'old.entry'",
    "a young audit entry goes": "DELETE FROM {schema}.audit_entries",
}


@pytest.fixture
def history(db: Database, api: Api, customer: Customer) -> int:
    """A member with a history, an old entry in the trail, and no erasure and no pruning; the
    member's id.
    """
    assert api.post("/v2/plans/1/eligibility", member_body()).status_code == 201
    with db.write() as tx:
        old = {"at": LONG_AGO, "actor": "test", "action": "old.entry", "request_id": "r"}
        tx.execute(insert(audit_entries).values(old))
        return int(tx.execute(select(members.c.id)).scalar_one())


def erase_in_words(db: Database, member_id: int) -> None:
    """Note the erasure of the member, and leave its history."""
    with db.write() as tx:
        row = {
            "member_id": member_id,
            "account_id": 1,
            "erased_at": NOW,
            "cause": ErasureCause.REQUEST,
        }
        tx.execute(insert(erasures).values(row | {"actor": "test", "request_id": "r"}))


def main_schema(db: Database) -> str:
    return "main" if db.is_sqlite else "public"


def statement_of(db: Database, change: str) -> str:
    """The change in the words of this database."""
    without_values = WITHOUT_VALUES["sqlite"] if db.is_sqlite else "public.without_values(changes)"
    return change.format(schema=main_schema(db), without_values=without_values)


def refuse(db: Database, preparations: Sequence[str], change: str) -> None:
    """The change is refused by a guard after these statements of the same session; nothing of them
    stays.
    """
    with pytest.raises(DBAPIError, match="append-only"), db.write() as tx:
        execute_all(tx, [*preparations, statement_of(db, change)])


def execute_all(tx: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        tx.exec_driver_sql(statement)


def temporary_tables(db: Database) -> list[str]:
    """A temporary table of the name of every table, and those that the guards ask say what the
    attacker likes.
    """
    schema = main_schema(db)
    made = {name: f"SELECT * FROM {schema}.{name} WHERE false" for name in metadata.tables}  # noqa: S608
    made["erasures"] = f"SELECT id AS member_id FROM {schema}.members"  # noqa: S608
    made["audit_prunings"] = "SELECT 1000000 AS through_id"
    return [f"CREATE TEMP TABLE {name} AS {query}" for name, query in made.items()]


@pytest.mark.parametrize("change", FORBIDDEN)
def test_temporary_tables_of_every_name_let_nothing_through(
    db: Database, history: int, change: str
) -> None:
    refuse(db, temporary_tables(db), FORBIDDEN[change])


@pytest.mark.parametrize("change", FORBIDDEN)
def test_temporary_views_let_nothing_through(db: Database, history: int, change: str) -> None:
    schema = main_schema(db)
    views = [
        f"CREATE TEMP VIEW erasures AS SELECT id AS member_id FROM {schema}.members",  # noqa: S608
        "CREATE TEMP VIEW audit_prunings AS SELECT 1000000 AS through_id",
    ]
    refuse(db, views, FORBIDDEN[change])


# What a session of PostgreSQL can make or set, by what it is.
SESSIONS = {
    "temporary functions": [
        "CREATE FUNCTION pg_temp.without_values(json) RETURNS json LANGUAGE sql AS 'SELECT ''{}''::json'",
        (
            "CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT "
            "''2100-01-01''::timestamptz'"
        ),
        "CREATE FUNCTION pg_temp.json_each(json) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1 WHERE false'",
        "SET LOCAL search_path = pg_temp, public, pg_catalog",
    ],
    "temporary types": [
        *(f"CREATE DOMAIN pg_temp.{name} AS varchar(1)" for name in ("text", "json", "interval")),
        "SET LOCAL search_path = pg_temp, public, pg_catalog",
    ],
    "temporary operators": [
        "CREATE FUNCTION pg_temp.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.yes)",
        "SET LOCAL search_path = pg_temp, public, pg_catalog",
    ],
    "another search path": [
        "CREATE TEMP TABLE erasures AS SELECT id AS member_id FROM members",
        "SET LOCAL search_path = pg_temp",
    ],
    "another time zone": ["SET LOCAL timezone = '-167'"],
}


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("change", FORBIDDEN)
def test_what_a_session_makes_or_sets_lets_nothing_through(
    db: Database, history: int, session: str, change: str
) -> None:
    refuse(db, SESSIONS[session], FORBIDDEN[change])


FORGED = """UPDATE public.member_history SET changes = '{{"first_name": [null, "Forged"]}}'"""


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("session", SESSIONS)
def test_the_history_of_an_erased_member_takes_no_forged_value(
    db: Database, history: int, session: str
) -> None:
    erase_in_words(db, history)
    refuse(db, SESSIONS[session], FORGED)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_an_operator_in_the_schema_of_the_tables_takes_no_place(
    db: Database, superuser: Database, history: int
) -> None:
    """PostgreSQL 14 lets every role make things in `public`."""
    erase_in_words(db, history)
    operators = [
        "CREATE FUNCTION public.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.yes)",
        "SET LOCAL search_path = public, pg_catalog",
    ]
    with superuser.write() as tx:
        tx.exec_driver_sql(f"GRANT CREATE ON SCHEMA public TO {SERVICE}")
    try:
        refuse(db, operators, FORGED)
    finally:
        with superuser.write() as tx:
            tx.exec_driver_sql(f"REVOKE CREATE ON SCHEMA public FROM {SERVICE}")


def test_a_forged_erasure_takes_values_only_and_stays_to_be_seen(
    db: Database, history: int
) -> None:
    """The service role has to add erasures. docs/decisions/0109 says what a forged one can do."""
    erase_in_words(db, history)
    for change in (
        "UPDATE {schema}.member_history SET outcome = 'moved'",
        "DELETE FROM {schema}.erasures",
    ):
        with pytest.raises((DBAPIError, Unavailable)), db.write() as tx:
            tx.exec_driver_sql(statement_of(db, change))
    with db.write() as tx:
        tx.exec_driver_sql(statement_of(db, FORBIDDEN["history loses its values"]))
    [actor] = db.ask(lambda tx: tx.execute(select(erasures.c.actor)).scalars().all())
    assert actor == "test"


def test_an_erasure_and_a_pruning_still_do_what_they_are_for(db: Database, history: int) -> None:
    erase_in_words(db, history)
    with db.write() as tx:
        tx.exec_driver_sql(statement_of(db, FORBIDDEN["history loses its values"]))
        tx.execute(insert(audit_prunings).values(through_id=10**6, chain="", pruned_at=NOW))
        tx.exec_driver_sql(statement_of(db, FORBIDDEN["an old audit entry goes"]))
    refuse(db, [], FORBIDDEN["a young audit entry goes"])


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_the_guards_work_in_a_schema_of_any_name(superuser: Database, db: Database) -> None:
    """The functions name the schema that migrate ran in."""
    schema = 'Odd "schema" of 100%: one'
    quoted = '"' + schema.replace('"', '""') + '"'
    with superuser.write() as tx:
        tx.exec_driver_sql(f"CREATE SCHEMA {quoted}".replace("%", "%%"))
        tx.exec_driver_sql(f"SET LOCAL search_path = {quoted}".replace("%", "%%"))
        metadata.create_all(tx)
        make_guards(tx)
        make_guards(tx)  # anew
        assert damaged_guards(tx) == []
        tx.execute(
            insert(audit_entries).values(at=LONG_AGO, actor="test", action="a", request_id="r")
        )
        with pytest.raises(DBAPIError, match="append-only"), tx.begin_nested():
            tx.exec_driver_sql("DELETE FROM audit_entries")
        tx.execute(insert(audit_prunings).values(through_id=10**6, chain="", pruned_at=NOW))
        assert tx.exec_driver_sql("DELETE FROM audit_entries").rowcount == 1
        tx.exec_driver_sql(f"DROP SCHEMA {quoted} CASCADE".replace("%", "%%"))


DAMAGE = {
    "postgresql": {
        "ALTER FUNCTION guard_member_history() RESET search_path": "has not its own search_path",
        "ALTER FUNCTION without_values(json) SET search_path = public": "has not its own search_path",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql "
        "SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'": "refuse_change was changed",
        "ALTER FUNCTION guard_audit_entries() SECURITY DEFINER": "guard_audit_entries was changed",
        "DROP TRIGGER audit_entries_append_only ON audit_entries": (
            "audit_entries_append_only of audit_entries is missing"
        ),
        "ALTER TABLE erasures DISABLE TRIGGER erasures_append_only": (
            "erasures_append_only of erasures is disabled"
        ),
        "ALTER TABLE member_history ENABLE REPLICA TRIGGER member_history_append_only": "is disabled",
        "DROP TRIGGER erasures_append_only ON erasures; CREATE TRIGGER erasures_append_only "
        "BEFORE UPDATE OR TRUNCATE ON erasures EXECUTE FUNCTION refuse_change()": (
            "erasures_append_only of erasures was changed"
        ),
        "DROP TRIGGER erasures_append_only ON erasures; CREATE TRIGGER erasures_append_only "
        "BEFORE UPDATE OR DELETE OR TRUNCATE ON erasures WHEN (false) EXECUTE FUNCTION "
        "refuse_change()": "was changed",
    },
    "sqlite": {
        "DROP TRIGGER audit_entries_no_delete": "audit_entries_no_delete is missing",
        "DROP TRIGGER erasures_no_update; CREATE TRIGGER erasures_no_update BEFORE UPDATE ON erasures WHEN 0 "
        "BEGIN SELECT RAISE(ABORT, 'erasures is append-only'); END": "erasures_no_update was changed",
    },
}


@pytest.mark.parametrize(
    ("database_url", "damage"),
    [(kind, statement) for kind, statements in DAMAGE.items() for statement in statements],
    indirect=["database_url"],
)
def test_check_names_a_damaged_guard_and_migrate_makes_it_anew(
    owner: Database, database_url: str, damage: str
) -> None:
    said = next(statements[damage] for statements in DAMAGE.values() if damage in statements)
    config = read_config({"FRONTDESK_DATABASE_URL": as_role(database_url, OWNER)})
    cli = CommandLine(as_role(database_url, OWNER))
    with owner.write_schema() as tx:
        for statement in damage.split("; CREATE"):
            begun = (
                statement
                if statement.startswith(("DROP", "ALTER", "CREATE"))
                else f"CREATE{statement}"
            )
            tx.exec_driver_sql(begun)
    [problem] = problems(owner, config)
    assert said in problem.what
    assert "frontdesk migrate" in problem.remedy
    assert "made anew" in cli.text("migrate")
    assert problems(owner, config) == []
    [entry] = [each for each in cli.audit_trail() if each["action"] == "database.guards_restored"]
    assert said in entry["detail"]["damage"][0]
    assert restore_guards(owner) == []


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_check_names_a_role_for_which_no_trigger_runs(superuser: Database, db: Database) -> None:
    with superuser.write() as tx:
        tx.exec_driver_sql("SET session_replication_role = replica")
    # The setting is the session's: this session's own check sees it.
    [failure] = guard_failures(superuser)
    assert "no trigger runs" in failure.what
    assert list(guard_failures(db)) == []


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_the_right_to_silence_triggers_is_an_excess(superuser: Database, db: Database) -> None:
    version = "SELECT current_setting('server_version_num')::int >= 150000"
    can_be_granted = superuser.ask(lambda tx: tx.exec_driver_sql(version).scalar_one())
    right = "SET session_replication_role on the server"
    assert right not in wrong_rights(db)[1]
    if not can_be_granted:
        return
    with superuser.write() as tx:
        tx.exec_driver_sql(f"GRANT SET ON PARAMETER session_replication_role TO {SERVICE}")
    try:
        assert right in wrong_rights(db)[1]
    finally:
        with superuser.write() as tx:
            tx.exec_driver_sql(f"REVOKE SET ON PARAMETER session_replication_role FROM {SERVICE}")


def test_down_and_up_again_leaves_whole_guards(owner: Database) -> None:
    downgrade(owner, "base")
    upgrade(owner)
    assert owner.ask(damaged_guards) == []
