"""Connections and transactions over SQLite and PostgreSQL.

A `Tx` is one open transaction. Features take it and never commit: the door that opened it does.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, Table, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk.clock import system_clock
from frontdesk.db.failures import DatabaseOutage, as_unavailable, as_unknown_outcome
from frontdesk.db.notifications import WorkNotifier
from frontdesk.db.postgresql import (
    ANY_SCAN,
    WAIT_FOR_LOCKS,
    WAIT_SECONDS,
    create_postgresql_engine,
    milliseconds,
)
from frontdesk.db.sqlite import begin_writing, create_sqlite_engine, empty_log, make_light, make_private_file
from frontdesk.errors import FrontdeskError, Unavailable

Tx = Connection
Answer = TypeVar("Answer")

MIGRATION_LOCK = 0x66726F6E74  # "front", an advisory lock of PostgreSQL
# As autovacuum does it: after changes to a tenth of the rows that the statistics know of.
_OUTDATED = """
    SELECT relname FROM pg_class WHERE oid = ANY(%s::text[]::regclass[]) AND %s > 50 + greatest(reltuples, 0) / 10
    ORDER BY relname
"""
POOL_SIZE = 16  # more than there are threads, so that none waits for a connection


class Database:
    """One database. `write()` and `read()` open a transaction; errors of the driver leave as `Unavailable`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.url = engine.url.render_as_string(hide_password=False)  # for a process that works with this one
        self.outage = DatabaseOutage()
        self._give_up_at = float("inf")
        self._notifier = None if self.is_sqlite else WorkNotifier(engine)
        if self.is_sqlite:
            event.listen(engine, "begin", self._begin_sqlite)
        # SQLite must say at BEGIN that it will write: a deferred one fails when it tries to upgrade under load.
        self._writer = engine.execution_options(begin="BEGIN IMMEDIATE") if self.is_sqlite else engine
        # All statements of one read see one state; SQLite's transactions do so by themselves.
        self._reader = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @contextmanager
    def write(self, *, wait_seconds: float | None = None) -> Iterator[Tx]:
        """A transaction that may write: committed at the end of the block, rolled back if the block raises.

        Waits for locks up to `wait_seconds` (default 5 s). Raises Unavailable; with `outcome_unknown` when the
        connection was lost during the commit.
        """
        with self.translated_errors(), self._writer.connect() as connection:
            if wait_seconds is not None and self.is_sqlite:
                connection.execution_options(wait_seconds=wait_seconds)
            with connection.begin() as transaction:
                if wait_seconds is not None and not self.is_sqlite:
                    connection.exec_driver_sql(WAIT_FOR_LOCKS, (milliseconds(wait_seconds),))
                yield connection
                try:
                    transaction.commit()
                except DBAPIError as error:
                    raise as_unknown_outcome(error) or error from None

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that only reads; all its statements see one state."""
        with self.translated_errors(), self._reader.begin() as tx:
            yield tx

    def ask(self, question: Callable[[Tx], Answer]) -> Answer:
        """`question(tx)` in a reading transaction, repeated if the first connection is dead."""
        try:
            with self.read() as tx:
                return question(tx)
        except Unavailable as error:
            if not error.stale_connection:
                raise
        with self.read() as tx:
            return question(tx)

    def make_missing_file(self) -> None:
        """SQLite: make the file, empty, and its folder. Only this makes a file, so that a wrong address is noticed.

        Raises Unavailable.
        """
        if self.is_sqlite:
            make_private_file(Path(str(self.engine.url.database)))

    @contextmanager
    def write_schema(self) -> Iterator[Tx]:
        """A transaction for a migration, one at a time. PostgreSQL may read whole tables in it."""
        with self.translated_errors(), self._writer.begin() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql(ANY_SCAN)
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            yield connection

    def empty_log(self) -> bool:
        """SQLite: remove deleted data from the write-ahead log too. False while a reader or a writer needs the log; then call
        it again. On PostgreSQL there is nothing to do. Raises Unavailable."""
        if not self.is_sqlite:
            return True
        with self.translated_errors(), self.engine.connect() as connection:
            return empty_log(connection)

    def shorten_waits(self, seconds: float) -> None:
        """The process is to stop: every wait for a lock, under way or to come, ends within `seconds`."""
        self._give_up_at = time.monotonic() + seconds

    def announce_work(self) -> None:
        """Wake the workers after a commit that may have made work. Returns at once. On SQLite workers watch the file."""
        if self._notifier is not None:
            self._notifier.notify()

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()
        self.engine.dispose()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            unavailable = as_unavailable(error)
            if unavailable is None:
                raise
            self.outage.failed(unavailable)
            raise unavailable from None
        except Unavailable as error:
            self.outage.failed(error)
            raise
        self.outage.answered()

    def _begin_sqlite(self, connection: Connection) -> None:
        options = connection.get_execution_options()
        begin = options.get("begin")
        if begin is None:
            connection.exec_driver_sql("BEGIN")
            return
        wanted_until = time.monotonic() + float(options.get("wait_seconds", WAIT_SECONDS))
        begin_writing(
            connection, begin, has_time=lambda: time.monotonic() < min(wanted_until, self._give_up_at)
        )


def open_database(url: str, *, pool_size: int = POOL_SIZE, index_scans: bool = True) -> Database:
    """Open the database behind `url` (Config.database_url). Connects lazily; a missing SQLite file is not made.

    `index_scans`: PostgreSQL reaches rows by an index only, as statements must that serve or load while tables grow.
    Raises FrontdeskError when the address can't be read.
    """
    try:
        parsed = make_url(url)
    except ValueError:
        raise FrontdeskError(
            "The database of FRONTDESK_DATABASE_URL can't be opened: it is not a well-formed address.",
            code="malformed_address",
        ) from None
    if parsed.get_backend_name() == "sqlite":
        return Database(create_sqlite_engine(parsed, pool_size=pool_size, wait_seconds=WAIT_SECONDS))
    return Database(create_postgresql_engine(url, pool_size=pool_size, index_scans=index_scans))


@contextmanager
def scratch_database(tables: Sequence[Table]) -> Iterator[Database]:
    """An empty SQLite database with these tables, deleted at the end. No foreign keys, and writes do not wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="frontdesk-") as folder:
        db = open_database(f"sqlite:///{Path(folder) / 'scratch.db'}", pool_size=1)
        db.make_missing_file()
        event.listen(db.engine, "connect", make_light)
        try:
            with db.write() as tx:
                for table in tables:
                    table.create(tx)
            yield db
        finally:
            db.close()


def database_time(tx: Tx) -> datetime:
    """The time on the database's clock, which all workers share: leases follow it.

    SQLite is a library of this machine, so its clock is the machine's.
    """
    if tx.dialect.name == "sqlite":
        return system_clock()
    now: datetime = tx.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
    return now


def refresh_statistics(db: Database, tables: Sequence[str], *, written: int) -> None:
    """Analyse the tables whose statistics are outdated by `written` rows, because autovacuum runs a minute later, or not at all.
    Raises Unavailable.

    The service's own statements do not depend on statistics (docs/decisions/0067); people's queries do. PostgreSQL skips tables
    of other owners, and tables that another session analyses now; it samples 30,000 pages at most. SQLite has no statistics
    here: stale statistics of a small table cause full scans when the table has grown."""
    if db.is_sqlite:
        return
    for name in db.ask(lambda tx: tx.exec_driver_sql(_OUTDATED, (list(tables), written)).scalars().all()):
        with db.write() as tx:
            tx.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {name}")
