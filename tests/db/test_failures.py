"""What a driver's error means: the database's state, a lost race, a violated constraint, or a fault
of the statement. An outage is told once when it begins and once when it ends.
"""

import asyncio
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from frontdesk.db import Database, open_database
from frontdesk.db.engine import write_alone
from frontdesk.db.failures import (
    QUIET_SECONDS,
    DatabaseOutage,
    DatabaseState,
    as_unavailable,
    lost_race,
    unavailable,
    unique_columns,
    violation_as,
)
from frontdesk.db.pipeline import PipelineDatabase, run_in_event_loop
from frontdesk.db.sets import one_round_trip
from frontdesk.errors import Conflict, Unavailable
from frontdesk.plans.tables import plans, provider_groups
from tests.factories import NOW
from tests.postgres import Databases

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def fail_with(db: Database, state: str) -> None:
    with db.write() as tx:
        tx.exec_driver_sql(
            f"DO $$ BEGIN RAISE EXCEPTION 'private' USING ERRCODE = '{state}'; END $$"
        )


AWAY = {
    "55P03": "busy",
    "57014": "busy",
    "25006": "read-only",
    "53100": "full",
    "57P01": "reached",
    "58030": "reached",
    "53300": "no more connections",
    "57P03": "starting",
    "08006": "reached",
    "42501": "lacks a right",
}
OF_THE_STATEMENT = ("22001", "23502", "23503", "23514", "42P01")


@ON_POSTGRESQL
def test_a_busy_database_is_unavailable_and_a_lost_race_passes_through(db: Database) -> None:
    for state, said in AWAY.items():
        with pytest.raises(Unavailable, match=said) as refused:
            fail_with(db, state)
        assert "private" not in refused.value.detail
        assert refused.value.__suppress_context__
    for state in ("40001", "40P01", *OF_THE_STATEMENT):
        with pytest.raises(DBAPIError) as caught:
            fail_with(db, state)
        assert lost_race(caught.value) is (state not in OF_THE_STATEMENT)
        assert unique_columns(caught.value) is None


def test_a_missing_column_or_table_is_no_outage(db: Database) -> None:
    for statement in ("SELECT no_such_column FROM plans", "SELECT 1 FROM no_such_table"):
        with db.read() as tx, pytest.raises(DBAPIError, match="no_such"):
            tx.exec_driver_sql(statement)


@ON_POSTGRESQL
def test_connections_to_a_server_that_became_read_only_are_replaced(db: Database) -> None:
    """As after a failover: the connections lead to the demoted primary, and new ones to its
    successor.
    """
    demote = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
    change = "UPDATE installation SET written = written RETURNING to_json(id)"

    def write(database: Any) -> list[Any]:
        return write_alone(database, lambda tx: list(tx.exec_driver_sql(change).one()))

    with ExitStack() as idle:
        for _ in range(3):
            connection = idle.enter_context(
                db.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            )
            connection.exec_driver_sql(demote)
    assert write(db) == [1]
    assert write(db) == [1]

    async def work() -> list[Any]:
        await wire.ask(demote, ())
        return await run_in_event_loop(write, wire)

    with closing(PipelineDatabase(db.url)) as wire:
        assert asyncio.run(work()) == [1]


@ON_POSTGRESQL
def test_a_connection_that_is_lost_within_a_round_trip_is_told_as_lost(
    db: Database, postgres: Databases
) -> None:
    """A file whose chunk met another error failed for good."""

    def lose_connection() -> None:
        with db.write() as tx, one_round_trip(tx):
            postgres.kill_backends(str(db.engine.url.database))
            tx.exec_driver_sql("SELECT 1")

    with pytest.raises(Unavailable, match="was lost"):
        lose_connection()


def break_unique(db: Database, name: str | None = "Private") -> None:
    row = {"name": name, "external_id": "group-1", "created_at": NOW}
    with db.write() as tx:
        for _ in range(2):
            tx.execute(provider_groups.insert().values(row))


def test_only_a_unique_violation_is_a_lost_race_and_names_its_columns(db: Database) -> None:
    with pytest.raises(IntegrityError) as caught:
        break_unique(db)
    assert lost_race(caught.value)
    named = "provider_groups.external_id" if db.is_sqlite else "uq_provider_groups_external_id"
    assert unique_columns(caught.value) == named
    with pytest.raises(IntegrityError) as caught:
        break_unique(db, name=None)
    assert unique_columns(caught.value) is None
    assert not lost_race(caught.value)
    # The violation becomes the error of its constraint only.
    ours = Conflict("taken")
    with pytest.raises(Conflict), violation_as(ours, provider_groups, "external_id"):
        break_unique(db)
    with pytest.raises(IntegrityError), violation_as(ours, plans, "account_id", "external_id"):
        break_unique(db)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("pragma", "said"),
    [("query_only=ON", "read-only"), ("max_page_count=1", "full"), ("busy_timeout=1", "busy")],
)
def test_sqlite_tells_locks_from_full_disks(
    db: Database, database_url: str, pragma: str, said: str
) -> None:
    other = open_database(database_url)
    event.listen(
        other.engine, "connect", lambda connection, _: connection.execute(f"PRAGMA {pragma}")
    )
    lock = db.write() if said == "busy" else nullcontext()
    with lock, pytest.raises(Unavailable, match=said), other.write() as tx:
        tx.exec_driver_sql("CREATE TABLE growth AS SELECT randomblob(100000) AS bytes")
    other.close()


def test_a_file_that_is_gone_is_not_made_anew_and_one_that_is_no_database_is_told(
    tmp_path: Path,
) -> None:
    gone = tmp_path / "folder" / "frontdesk.db"
    other = tmp_path / "no.db"
    other.write_bytes(b"no database" * 1000)
    for path, said in ((gone, "no database here"), (other, "damaged")):
        with (
            closing(open_database(f"sqlite:///{path}")) as db,
            pytest.raises(Unavailable, match=said),
        ):
            db.ask(lambda tx: tx.exec_driver_sql("SELECT * FROM plans").all())
    assert not gone.parent.exists()


TEXTS = {
    DatabaseState.FULL: (
        'FATAL:  could not write lock file "postmaster.pid": No space left on device'
    ),
    DatabaseState.LOGIN: 'connection failed: FATAL:  password authentication failed for user "x"',
    DatabaseState.NOT_ADMITTED: (
        'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "x", database "y", no encryption'
    ),
    DatabaseState.NO_SUCH_DATABASE: 'connection failed: FATAL:  database "y" does not exist',
    DatabaseState.HOST: "failed to resolve host 'db.example.com': [Errno -2] Name or service not known",
    DatabaseState.NO_PRIMARY: (
        "connection failed: session is read-only\nAll failures were:\n"
        "- host: 'a': Connection refused"
    ),
    DatabaseState.NO_SERVER: 'connection to server at "10.0.0.1", port 5432 failed: Connection refused',
    DatabaseState.TLS: "connection failed: SSL error: certificate verify failed",
    DatabaseState.STARTING: "connection failed: FATAL:  the database system is not yet accepting connections",
    DatabaseState.CROWDED: (
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute"
    ),
    DatabaseState.SILENT: "connection timeout expired",
    DatabaseState.UNREACHABLE: "FATAL:  Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen",
}


@pytest.mark.parametrize("state", TEXTS)
def test_a_refused_connection_is_told_by_its_cause_and_without_a_value(
    state: DatabaseState,
) -> None:
    error = OperationalError("", None, psycopg.OperationalError(TEXTS[state]))
    found = as_unavailable(error)
    assert found is not None
    assert (found.code, found.detail) == (state, unavailable(state).detail)


@dataclass
class Told:
    """What an outage told, and its clock."""

    outage: DatabaseOutage = field(default_factory=DatabaseOutage)
    seconds: float = 0.0
    events: list[tuple[str, Any]] = field(default_factory=list)

    def tell(self, event: str, **values: Any) -> None:
        self.events.append((event, values.get("cause", values.get("seconds"))))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    made = Told()
    made.outage.tell = made.tell
    monkeypatch.setattr("frontdesk.db.failures.monotonic", lambda: made.seconds)
    return made


def test_many_failures_are_one_outage_with_the_cause_of_the_first(told: Told) -> None:
    lost = Unavailable("The connection to the database was lost.", stale_connection=True)
    for error in (unavailable(DatabaseState.BUSY), unavailable(DatabaseState.FULL), lost):
        told.outage.failed(error)  # none of these is an outage
    told.outage.ended()
    told.outage.failed(unavailable(DatabaseState.NO_SERVER))
    told.outage.failed(unavailable(DatabaseState.STARTING))
    told.seconds += 60
    told.outage.ended()
    told.outage.ended()
    assert told.events == [("database_away", "database_no_server"), ("database_back", 60)]


def test_a_server_that_takes_some_connections_only_is_told_now_and_then(told: Told) -> None:
    for _ in range(100):
        told.outage.failed(unavailable(DatabaseState.CROWDED))
        told.outage.ended()
    told.seconds += QUIET_SECONDS
    told.outage.failed(unavailable(DatabaseState.CROWDED))
    assert [event for event, _ in told.events] == [
        "database_away",
        "database_back",
        "database_away",
    ]
