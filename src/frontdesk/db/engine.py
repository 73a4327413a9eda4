"""Connections and transactions over SQLite and PostgreSQL; it knows both databases and no table.

A `Tx` is one open transaction. Features take it and never commit: the door that opened it does.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson
import psycopg
import pysqlite3
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout
from psycopg.types.string import TextLoader
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk.clock import system_clock
from frontdesk.db.failures import DatabaseState, NoAnswer, as_unavailable, as_unknown_outcome, unavailable
from frontdesk.errors import Unavailable

Tx = Connection
Answer = TypeVar("Answer")

# Older libraries can corrupt a WAL database that two connections use (the WAL-reset bug).
OLDEST_SAFE_SQLITE = (3, 51, 3)
WAIT_SECONDS = 5
STATEMENT_SECONDS = 8  # PostgreSQL ends a statement that takes longer
SILENT_SECONDS = 9  # and one that has said nothing even then is hung, or gone
LOOK_MILLISECONDS = 2  # how often a writer looks whether SQLite's file is free
BUSY_MILLISECONDS = 250  # how long anything else waits in SQLite, which is rare
POOL_SIZE = 16  # more than there are threads, so that none waits for a connection

WAIT_FOR_LOCKS = "SELECT set_config('lock_timeout', %s, true)"  # in this transaction

# Every statement reaches its rows by an index. A plan that was prepared while a table was small would otherwise go on
# reading all of it when a million members have come.
BY_INDEX = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"


# Who has waited for a row must then see what it has become; a server, a database or a role may be set up otherwise.
READ_COMMITTED = r"-c default_transaction_isolation=read\ committed"


class Database:
    """One database. `write()` and `read()` open a transaction; errors of the driver leave as `Unavailable`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.url = engine.url.render_as_string(hide_password=False)  # for a process that works with this one
        self._give_up_at = float("inf")
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

        It waits for what others have locked, 5 s or `wait_seconds`. Raises Unavailable; with `outcome_unknown` when the
        connection was lost while committing.
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

    def hurry(self, seconds: float) -> None:
        """Wait no longer than that for what others have locked, whoever waits now or will: the process is to stop."""
        self._give_up_at = time.monotonic() + seconds

    def close(self) -> None:
        self.engine.dispose()

    def _begin_sqlite(self, connection: Connection) -> None:
        """BEGIN, which for a writer waits until the file is free, looking often: SQLite by itself looks ever more seldom,
        and whoever writes one transaction after the other would never be caught between two."""
        options = connection.get_execution_options()
        begin = str(options.get("begin", "BEGIN"))
        driver: Any = connection.connection.driver_connection
        if begin == "BEGIN":
            connection.exec_driver_sql(begin)
            return
        wanted_until = time.monotonic() + float(options.get("wait_seconds", WAIT_SECONDS))
        with _looking_often(driver):
            while not _begins(driver, begin):
                now = time.monotonic()
                if now >= wanted_until or now >= self._give_up_at:
                    connection.exec_driver_sql(begin)  # the last attempt, whose error is everybody's
                    return

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


def open_database(url: str, *, pool_size: int = POOL_SIZE) -> Database:
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
    return engine


def _begins(driver: Any, begin: str) -> bool:
    """Whether the transaction has begun; False while another one writes."""
    try:
        driver.execute(begin)
    except pysqlite3.OperationalError as error:
        if error.sqlite_errorcode != pysqlite3.SQLITE_BUSY:
            raise DBAPIError.instance(begin, None, error, pysqlite3.Error, hide_parameters=True) from None
        return False
    return True


@contextmanager
def _looking_often(driver: Any) -> Iterator[None]:
    driver.execute(f"PRAGMA busy_timeout={LOOK_MILLISECONDS}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def _refuse_missing(path: Path, *_: object) -> None:
    """SQLite itself would make an empty database."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise unavailable(DatabaseState.MISSING) from None
    except OSError as error:
        raise Unavailable(f"The database's file can't be opened: {error.strerror}.") from None


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin by itself; _begin_sqlite does
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def _postgresql_engine(url: str, *, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        pool_use_lifo=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=WAIT_SECONDS,
        hide_parameters=True,  # they hold health information
        json_deserializer=orjson.loads,
        connect_args=postgresql_arguments(),
    )
    event.listen(engine, "do_connect", _connect_postgresql)
    event.listen(engine, "connect", _prepare_postgresql)
    return engine


class _Connection(psycopg.Connection[Any]):
    """One that gives up a server which has fallen silent: no statement takes so long, so it is hung or cut off."""

    def wait(self, gen: PQGen[Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:
        try:
            return super().wait(gen, interval, SILENT_SECONDS if timeout is None else timeout)
        except _WaitTimeout:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise NoAnswer("the server has fallen silent") from None


def _connect_postgresql(_dialect: object, _record: object, arguments: Any, options: Any) -> Any:
    return _Connection.connect(*arguments, **options)


def milliseconds(seconds: float) -> str:
    """A setting of PostgreSQL's; 0 would mean for ever."""
    return f"{max(1, round(seconds * 1000))}ms"


def postgresql_arguments(*, lock_seconds: float = WAIT_SECONDS) -> dict[str, Any]:
    """What every connection to PostgreSQL is opened with.

    A peer that vanished without a word (its machine, the network) is found by the system after some 25 s, and at once
    when it leaves what we sent unacknowledged for 10 s.
    """
    return {
        "connect_timeout": WAIT_SECONDS,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "application_name": "frontdesk",
        "options": f"-c lock_timeout={milliseconds(lock_seconds)} -c statement_timeout={STATEMENT_SECONDS}s "
        f"-c timezone=UTC {READ_COMMITTED} {BY_INDEX}",
    }


def _prepare_postgresql(connection: Any, _record: object) -> None:
    connection.prepare_threshold = 2  # statements are prepared from their third execution on
    connection.adapters.register_loader("date", TextLoader)  # dates are text everywhere, as on SQLite
