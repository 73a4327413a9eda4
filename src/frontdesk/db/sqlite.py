"""SQLite: its engine, its settings, and how a writer waits for the file."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pysqlite3
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from frontdesk.db.failures import DatabaseState, unavailable
from frontdesk.errors import Unavailable

# Older libraries can corrupt a WAL database that two connections use (the WAL-reset bug).
OLDEST_SAFE_VERSION = (3, 51, 3)
POLL_MILLISECONDS = 2  # how often a writer tries whether the file is free
BUSY_MILLISECONDS = 250  # how long any other statement waits, which is rare

# Without an adapter the driver searches None for two protocols, which took three quarters of an
# INSERT with 14 empty columns.
pysqlite3.register_adapter(type(None), {}.get)


def create_sqlite_engine(url: URL, *, pool_size: int, wait_seconds: float) -> Engine:
    """Raises Unavailable when the library is too old. A connection to a missing file raises it too."""
    if pysqlite3.sqlite_version_info < OLDEST_SAFE_VERSION:
        raise Unavailable(
            f"SQLite {pysqlite3.sqlite_version} can corrupt a database in WAL mode; "
            f"install a pysqlite3 wheel with {'.'.join(map(str, OLDEST_SAFE_VERSION))} or newer."
        )
    engine = create_engine(
        url,
        module=pysqlite3,
        pool_size=pool_size,
        max_overflow=0,
        pool_use_lifo=True,  # what another connection has written empties the page cache of this one
        pool_timeout=wait_seconds,
        hide_parameters=True,  # they hold health information
        connect_args={
            "timeout": wait_seconds,
            "check_same_thread": False,
            "cached_statements": 256,
        },
    )
    event.listen(engine, "do_connect", partial(_refuse_missing, Path(str(url.database))))
    event.listen(engine, "connect", _configure)
    return engine


def make_private_file(path: Path) -> None:
    """Make the file if it is missing, and missing folders, for this user only whatever the umask.
    Raises Unavailable.

    SQLite gives the write-ahead log and its index the rights of the database.
    """
    try:
        for folder in reversed((path.parent, *path.parent.parents)):
            folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise Unavailable(f"The database's file can't be made: {error.strerror}.") from None


def begin_writing(connection: Connection, begin: str, *, has_time: Callable[[], bool]) -> None:
    """Execute `begin`, and try again until the file is free or `has_time` says no. Raises
    DBAPIError.

    SQLite's own wait tries less and less often, so a process that writes one transaction after the
    other would keep a waiting one out for ever.
    """
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA busy_timeout={POLL_MILLISECONDS}")
    try:
        while True:
            try:
                driver.execute(begin)
            except pysqlite3.OperationalError as error:
                if error.sqlite_errorcode != pysqlite3.SQLITE_BUSY or not has_time():
                    raise _wrapped(error) from None
            else:
                return
    finally:
        driver.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def empty_log(connection: Connection) -> bool:
    """Write the write-ahead log into the database and cut it to nothing; False while a reader or
    writer needs it.

    Outside a transaction only. The log has the pages as they were before each change, erased values
    too.
    """
    driver: Any = connection.connection.driver_connection
    try:
        [is_busy, *_] = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except pysqlite3.OperationalError as error:
        raise _wrapped(error) from None
    return not is_busy


def _wrapped(error: pysqlite3.Error) -> BaseException:
    """The error as SQLAlchemy would raise it."""
    wrapped: BaseException = DBAPIError.instance(
        "", None, error, pysqlite3.Error, hide_parameters=True
    )
    return wrapped


class _Answer(pysqlite3.Cursor):  # type: ignore[misc]
    """The rows of a statement's answer, as a `SetAnswer` has them."""

    one = pysqlite3.Cursor.fetchone


class DriverTransaction:
    """A writing transaction that takes set statements, straight to the driver: SQLAlchemy takes 45
    µs for each.
    """

    def __init__(self, connection: Connection) -> None:
        self.engine = connection.engine
        self.dialect = connection.dialect
        self.info = connection.info
        self._driver: Any = connection.connection.driver_connection

    def exec_driver_sql(self, statement: str, parameters: Any = (), /) -> Any:
        """Execute the statement; a list of parameters executes it for each. Raises DBAPIError."""
        answer = self._driver.cursor(_Answer)
        try:
            (answer.executemany if type(parameters) is list else answer.execute)(
                statement, parameters
            )
        except pysqlite3.Error as error:
            raise _wrapped(error) from None
        return answer


def make_light(connection: Any, _record: object) -> None:
    """A listener to new connections: what is written is not meant to last."""
    for pragma in ("foreign_keys=OFF", "synchronous=OFF", "journal_mode=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")


def _refuse_missing(path: Path, *_: object) -> None:
    """SQLite itself would make an empty database."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise unavailable(DatabaseState.MISSING) from None
    except OSError as error:
        raise Unavailable(f"The database's file can't be opened: {error.strerror}.") from None


def _configure(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin by itself: `Database` does
    [is_secure] = connection.execute(
        "PRAGMA secure_delete=ON"
    ).fetchone()  # an erased value is overwritten
    if is_secure != 1:
        raise Unavailable(
            "This SQLite does not overwrite what is deleted (PRAGMA secure_delete), "
            "so erased values would stay in the file; install the pysqlite3 wheel of "
            "requirements/run.txt."
        )
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
    _forget_statistics(connection)


def _forget_statistics(connection: Any) -> None:
    """What somebody's ANALYZE found while tables were small would have them read as a whole when
    they have grown.

    Without statistics each statement goes by key. A connection that finds the file locked keeps
    them for its time.
    """
    named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4')"
    if tables := connection.execute(named).fetchall():
        with suppress(pysqlite3.OperationalError):
            for [name] in tables:
                connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute("PRAGMA writable_schema=RESET")  # reads the schema anew
