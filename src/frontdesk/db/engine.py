"""Connections and transactions over SQLite and PostgreSQL; it knows both databases and no table.

A `Tx` is one open transaction. Features take it and never commit: the door that opened it does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pysqlite3
from psycopg.types.string import TextLoader
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk.clock import system_clock
from frontdesk.db.failures import MISSING, as_unavailable, as_unknown_outcome
from frontdesk.errors import Unavailable

Tx = Connection
Answer = TypeVar("Answer")

# Older libraries can corrupt a WAL database that two connections use (the WAL-reset bug).
OLDEST_SAFE_SQLITE = (3, 51, 3)
WAIT_SECONDS = 5
STATEMENT_SECONDS = 8

# Every statement reaches its rows by an index. A plan that was prepared while a table was small would otherwise go on
# reading all of it when a million members have come.
BY_INDEX = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"


class Database:
    """One database. `write()` and `read()` open a transaction; errors of the driver leave as `Unavailable`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.url = engine.url.render_as_string(hide_password=False)  # for a process that works with this one
        # SQLite must say at BEGIN that it will write: a deferred one fails when it tries to upgrade under load.
        self._writer = engine.execution_options(begin="BEGIN IMMEDIATE") if self.is_sqlite else engine
        # All statements of one read see one state; SQLite's transactions do so by themselves.
        self._reader = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that may write: committed at the end of the block, rolled back if the block raises.

        Raises Unavailable; with `outcome_unknown` when the connection was lost while committing.
        """
        with (
            self.translated_errors(),
            self._writer.connect() as connection,
            connection.begin() as transaction,
        ):
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
        """`question(tx)` in a reading transaction, asked again when the first connection turns out to be dead."""
        try:
            with self.read() as tx:
                return question(tx)
        except Unavailable as error:
            if not error.stale_connection:
                raise
        with self.read() as tx:
            return question(tx)

    def make_missing_file(self) -> None:
        """SQLite: make the file and its folder, empty. Nothing else does: a wrong address would go unnoticed.

        Raises Unavailable.
        """
        if self.is_sqlite:
            path = Path(str(self.engine.url.database))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError as error:
                raise Unavailable(f"The database's file can't be made: {error.strerror}.") from None

    @contextmanager
    def write_schema(self) -> Iterator[Tx]:
        """A transaction for a migration: foreign keys are not enforced by SQLite meanwhile (tables are rebuilt)."""
        with self.translated_errors(), self._writer.connect() as connection:
            if self.is_sqlite:
                self._set_foreign_keys(connection, on=False)
            try:
                with connection.begin():
                    yield connection
            finally:
                if self.is_sqlite:
                    self._set_foreign_keys(connection, on=True)

    def close(self) -> None:
        self.engine.dispose()

    def _set_foreign_keys(self, connection: Connection, *, on: bool) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA foreign_keys={'ON' if on else 'OFF'}")

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            unavailable = as_unavailable(error)
            if unavailable is None:
                raise
            raise unavailable from None


def open_database(url: str, *, pool_size: int = 8) -> Database:
    """Open the database behind `url` (Config.database_url). Connects lazily; a missing SQLite file is not made."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return Database(_sqlite_engine(str(parsed.database), url, pool_size=pool_size))
    return Database(_postgresql_engine(url, pool_size=pool_size))


def database_time(tx: Tx) -> datetime:
    """What time it is on the database's clock, which all workers share: leases are kept by it.

    SQLite is a library of this machine, so its clock is the machine's.
    """
    if tx.dialect.name == "sqlite":
        return system_clock()
    now: datetime = tx.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
    return now


def _sqlite_engine(path: str, url: str, *, pool_size: int) -> Engine:
    if pysqlite3.sqlite_version_info < OLDEST_SAFE_SQLITE:
        raise Unavailable(
            f"SQLite {pysqlite3.sqlite_version} can corrupt a database in WAL mode; "
            f"install a pysqlite3 wheel with {'.'.join(map(str, OLDEST_SAFE_SQLITE))} or newer."
        )
    engine = create_engine(
        url,
        module=pysqlite3,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=WAIT_SECONDS,
        hide_parameters=True,  # they hold health information
        connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False, "cached_statements": 256},
    )
    event.listen(engine, "do_connect", partial(_refuse_missing, Path(path)))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _refuse_missing(path: Path, *_: object) -> None:
    """SQLite itself would make an empty database."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise Unavailable(MISSING) from None
    except OSError as error:
        raise Unavailable(f"The database's file can't be opened: {error.strerror}.") from None


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin by itself; _begin_sqlite does
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get("begin", "BEGIN")))


def _postgresql_engine(url: str, *, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_use_lifo=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=WAIT_SECONDS,
        hide_parameters=True,  # they hold health information
        connect_args=postgresql_arguments(),
    )
    event.listen(engine, "connect", _prepare_postgresql)
    return engine


def postgresql_arguments() -> dict[str, Any]:
    """What every connection to PostgreSQL is opened with."""
    return {
        "connect_timeout": WAIT_SECONDS,
        "application_name": "frontdesk",
        "options": f"-c lock_timeout={WAIT_SECONDS}s -c statement_timeout={STATEMENT_SECONDS}s "
        "-c timezone=UTC " + BY_INDEX,
    }


def _prepare_postgresql(connection: Any, _record: object) -> None:
    connection.prepare_threshold = 2  # statements are prepared from their third execution on
    connection.adapters.register_loader("date", TextLoader)  # dates are text everywhere, as on SQLite
