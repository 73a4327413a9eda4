"""Members, visits, files and entries of the trail by the hundred thousand, written by the database
itself: for tests of query plans and for benchmarks.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

import psycopg
import pysqlite3
from sqlalchemy import Table
from sqlalchemy.schema import CreateIndex, DropIndex

from frontdesk.clock import system_clock
from frontdesk.db import Database, Tx
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files.tables import eligibility_files
from frontdesk.text import stored_time
from tests.factories import Customer

# Rows in one transaction: fewer than a statement's time allows, also while other tests run.
STEP = 5_000
# What makes a stranger's connection fast. A table of a million rows is sorted in memory for an index.
_FAST = {
    "sqlite": ("PRAGMA synchronous = OFF", "PRAGMA cache_size = -1000000"),
    "postgresql": ("SET synchronous_commit = off", "SET maintenance_work_mem = '1GB'"),
}


@contextmanager
def without_indexes(db: Database, *tables: Table) -> Iterator[None]:
    """Drop the indexes of these tables, but for unique keys, and make them anew after the block: so
    ten million rows take a minute and not an hour.
    """
    indexes = sorted(
        (index for table in tables for index in table.indexes), key=lambda index: str(index.name)
    )
    dialect = db.engine.dialect
    with _stranger(db) as connection:
        for index in indexes:
            connection.execute(str(DropIndex(index).compile(dialect=dialect)))
    yield
    with _stranger(db) as connection:
        for index in indexes:
            connection.execute(str(CreateIndex(index).compile(dialect=dialect)))


def copy_members(
    db: Database,
    template: int,
    *,
    numbers: range,
    invited: bool = False,
    birth_dates: int | None = None,
) -> None:
    """Copies of a member with its first history row: `AB 00000007`, `M-00000007`,
    `robin.7@example.com` for the number 7.

    `invited`: each copy has a batched invitation, due now. `birth_dates`: the copies have so many
    in turn, from 1940 on. The statistics of the tables stay as they are.
    """
    for start in range(numbers.start, numbers.stop, STEP):
        with db.write() as tx:
            if not db.is_sqlite:  # the copies refer to what their template refers to
                tx.exec_driver_sql("SET LOCAL session_replication_role = replica")
            some = range(start, min(start + STEP, numbers.stop))
            _copy(tx, template, some, invited=invited, birth_dates=birth_dates)


def fill_queues(db: Database, visits: int, *, days: int, until: datetime) -> None:
    """Visits of plan 1 that are over, evenly over the days before `until`, each with an event and
    an estimate; and a hundredth as many doctors off duty. Their ids lie beyond those that a service
    gives.
    """
    id_ = f"{10**9} + n"
    visit = "'past-' || n"
    group = "(SELECT provider_group_id FROM plans WHERE id = 1)"
    seconds = f"(n * {days * 86_400 / visits})"
    at = f"CAST('{stored_time(until)}' AS timestamptz) - {seconds} * interval '1 second'"
    if db.is_sqlite:
        at = (
            f"replace(datetime('{stored_time(until)}', '-' || {seconds} || "
            "' seconds'), ' ', 'T') || '.000000Z'"
        )
    shared = {"id": id_, "provider_group_id": group}
    event = {
        "event_id": visit,
        "provider_group_id": group,
        "type": "'visit.started'",
        "doctor": "'doctor-' || (n - n / 40 * 40)",
        "at": at,
        "received_at": at,
    }
    encounter = shared | {"visit": visit, "plan_id": "1", "state": "'ended'"}
    estimate = {
        "id": id_,
        "plan_id": "1",
        "taken_at": at,
        "expires_at": at,
        "estimate_seconds": "60",
    }
    duty = shared | {"doctor": visit, "on_duty": "false", "off_at": at, "capacity": "1"}
    times = dict.fromkeys(("joined_at", "started_at", "ended_at", "last_event_at"), at)
    with db.write() as tx:
        if not db.is_sqlite:
            tx.exec_driver_sql("SET LOCAL session_replication_role = replica")
        for table, row, last in (
            ("queue_events", event | {"plan_id": "1", "visit": visit}, visits),
            ("encounters", encounter | times, visits),
            ("estimate_log", estimate, visits),
            ("duties", duty, visits // 100),
        ):
            series = _series(tx, range(1, last + 1))
            values = f"SELECT {', '.join(row.values())} FROM s"
            tx.exec_driver_sql(f"INSERT INTO {table} ({', '.join(row)}) {series} {values}")


def copy_files(db: Database, template: int, *, count: int) -> None:
    """Copies of a file that has ended, as files without rows, one an hour back from the template."""
    hours = "t.created_at - n * interval '1 hour'"
    if db.is_sqlite:
        hours = "replace(datetime(t.created_at, '-' || n || ' hours'), ' ', 'T') || '.000000Z'"
    with db.read() as tx:
        first = _last_id(tx, eligibility_files) + 1
    for start in range(1, count + 1, STEP):
        numbers = range(start, min(start + STEP, count + 1))
        changed = {"id": f"{first + count} - n", "created_at": hours}
        with db.write() as tx:
            if not db.is_sqlite:
                tx.exec_driver_sql("SET LOCAL session_replication_role = replica")
            _insert(tx, eligibility_files, changed, numbers, f"t.id = {template}")


def fill_trail(
    db: Database, customer: Customer, *, users: int, entries: int, until: datetime
) -> None:
    """Entries of the account, a second apart. Of a hundred one is of a user, who searches, checks an
    answer, opens a record or the names of a file; one is of a file; the others tell that a client
    changed a member. The users have the ids from 1 on and take turns.
    """
    seconds = f"{entries} - n"
    at = f"CAST('{stored_time(until)}' AS timestamptz) - ({seconds}) * interval '1 second'"
    if db.is_sqlite:
        at = (
            f"replace(datetime('{stored_time(until)}', '-' || ({seconds}) || "
            "' seconds'), ' ', 'T') || '.000000Z'"
        )
    row = {
        "at": at,
        "account_id": str(customer.account_id),
        "actor": f"CASE n % 100 WHEN 0 THEN 'user:' || (n / 100 % {users} + 1) "
        f"ELSE '{customer.client_id}' END",
        "action": f"CASE n % 100 WHEN 0 THEN CASE n / 100 / {users} % 8 WHEN 0 THEN 'member.opened' "
        "WHEN 1 THEN 'file.names_opened' WHEN 2 THEN 'people.searched' ELSE 'member.checked' END "
        "WHEN 1 THEN 'file.received' ELSE 'eligibility.updated' END",
        "detail": """CASE n % 100 WHEN 0 THEN json('{"reason": "complaint"}') END""",
        "subject_id": "CASE n % 100 WHEN 1 THEN n % 1000 ELSE CAST(n AS bigint) * 7919 % 1000000 END + 1",
        "request_id": "'request-' || n",
    }
    for start in range(1, entries + 1, 4 * STEP):
        numbers = range(start, min(start + 4 * STEP, entries + 1))
        with db.write() as tx:
            values = f"{_series(tx, numbers)} SELECT {', '.join(row.values())} FROM s"
            _execute(tx, f"INSERT INTO audit_entries ({', '.join(row)}) {values}")


def analyze(db: Database) -> None:
    """Give the planner statistics of every table, however long it takes; on PostgreSQL as autovacuum
    does, which also notes the pages where an index alone answers.
    """
    with _stranger(db) as connection:
        connection.execute("ANALYZE" if db.is_sqlite else "VACUUM (ANALYZE)")


@contextmanager
def _stranger(db: Database) -> Iterator[Any]:
    """A connection of the driver on which each statement is a transaction. The service's own give up
    a statement that says nothing for seconds.
    """
    connection: Any
    if db.is_sqlite:
        connection = pysqlite3.connect(str(db.engine.url.database), isolation_level=None)
    else:
        url = db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(url, autocommit=True)
    with closing(connection):
        for statement in _FAST[db.engine.dialect.name]:
            connection.execute(statement)
        yield connection


def _copy(tx: Tx, template: int, numbers: range, *, invited: bool, birth_dates: int | None) -> None:
    is_sqlite = tx.dialect.name == "sqlite"
    last_member = _last_id(tx, members)
    last_history = _last_id(tx, member_history)
    padded = f"substr(CAST({10**8} + n AS text), 2)"
    offset = last_member + 1 - numbers.start
    email = "'robin.' || n || '@example.com'"
    member = {
        "id": f"{offset} + n",
        "external_id": f"'AB ' || {padded}",
        "member_id": f"'M-' || {padded}",
        "email": email,
        "email_folded": email,
        "person_digest": f"substr('{'0' * 32}' || {padded}, -32)"
        if is_sqlite
        else f"lpad({padded}, 32, '0')",
    }
    if birth_dates is not None:
        days = f"n % {birth_dates}"
        member["dob"] = (
            f"date('1940-01-01', '+' || ({days}) || ' days')"
            if is_sqlite
            else f"DATE '1940-01-01' + CAST({days} AS integer)"
        )
    history = {"id": f"{last_history + 1 - numbers.start} + n", "member_id": f"{offset} + n"}
    _insert(tx, members, member, numbers, f"t.id = {template}")
    first = f"t.id = (SELECT min(id) FROM member_history WHERE member_id = {template})"
    _insert(tx, member_history, history, numbers, first)
    if invited:
        at = stored_time(system_clock())
        tx.exec_driver_sql(
            "INSERT INTO invitations (account_id, plan_id, member_id, kind, delivery, state, "
            "address, address_folded, created_at, updated_at, due_at) SELECT account_id, "
            f"plan_id, id, 'enrolment', 'batched', 'pending', email, email_folded, '{at}', "
            f"'{at}', '{at}' FROM members WHERE id > {last_member}"
        )


def _execute(tx: Tx, statement: str) -> None:
    """A statement with signs of percent, which the driver of PostgreSQL takes for parameters."""
    is_sqlite = tx.dialect.name == "sqlite"
    tx.exec_driver_sql(statement if is_sqlite else statement.replace("%", "%%"))


def _last_id(tx: Tx, table: Table) -> int:
    """No id after it has been given: a service reserves ids of PostgreSQL ahead."""
    query = f"SELECT coalesce(max(id), 0) FROM {table.name}"
    if tx.dialect.name != "sqlite":
        query = f"SELECT last_value FROM {table.name}_id_seq"
    return int(tx.exec_driver_sql(query).scalar_one())


def _insert(tx: Tx, table: Table, changed: dict[str, str], numbers: range, template: str) -> None:
    """A row of the template's values for each number `n`, but for the columns that are `changed`."""
    series = _series(tx, numbers)
    names = [column.name for column in table.columns]
    values = ", ".join(changed.get(name, f"t.{name}") for name in names)
    _execute(
        tx,
        f"INSERT INTO {table.name} ({', '.join(names)}) {series} SELECT {values} FROM s, "
        f"{table.name} t WHERE {template}",
    )
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql(
            f"SELECT setval('{table.name}_id_seq', (SELECT max(id) FROM {table.name}))"
        )


def _series(tx: Tx, numbers: range) -> str:
    """The beginning of a statement in which `s` has a row for each number `n`."""
    first = numbers.start
    last = numbers.stop - 1
    if tx.dialect.name == "sqlite":
        return f"WITH RECURSIVE s(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last})"
    return f"WITH s(n) AS (SELECT generate_series({first}, {last}))"
