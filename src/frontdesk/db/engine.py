"""Connections and transactions over SQLite and PostgreSQL.

A `Tx` is one open transaction. Features take it and never commit: the door that opened it does, or
a function here that runs the work again when the transaction lost a race (`write_alone`,
`write_together`, `write_in_one`).
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from shutil import disk_usage
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine, QueuePool, Table, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk import codes
from frontdesk.clock import system_clock
from frontdesk.db.failures import (
    DatabaseOutage,
    DatabaseState,
    StateChanged,
    as_unavailable,
    as_unknown_outcome,
    is_deadlock,
    lost_race,
)
from frontdesk.db.failures import unavailable as failure_of
from frontdesk.db.notifications import WorkNotifier
from frontdesk.db.postgresql import (
    ANY_SCAN,
    WAIT_FOR_LOCKS,
    WAIT_SECONDS,
    create_postgresql_engine,
    milliseconds,
)
from frontdesk.db.sqlite import (
    begin_writing,
    create_sqlite_engine,
    empty_log,
    make_light,
    make_private_file,
)
from frontdesk.errors import FrontdeskError, Unavailable

Tx = Connection
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Result = TypeVar("Result")
OpenTx_co = TypeVar("OpenTx_co", covariant=True)
AnyTx = TypeVar("AnyTx")
# One result, or the item's own error, per item.
Work = Callable[[AnyTx, Sequence[Item]], Iterable[Result | Exception]]

MIGRATION_LOCK = 0x66726F6E74  # "front", an advisory lock of PostgreSQL
# As autovacuum does it: after changes to a tenth of the rows that the statistics know of.
_OUTDATED = """
    SELECT relname FROM pg_class
    WHERE oid = ANY(%s::text[]::regclass[]) AND %s > 50 + greatest(reltuples, 0) / 10
    ORDER BY relname
"""
POOL_SIZE = 16  # more than there are threads, so that none waits for a connection
FULL_BYTES = 2**16  # SQLite's log and its index need more at their beginning

ATTEMPTS_TOGETHER = 3
ATTEMPTS_ALONE = 8

# When other transactions lock rows of a set, its items share this time to wait for locks; after
# LAST_SECONDS no item is tried.
SHARED_SECONDS = 3.0
LAST_SECONDS = 5.0
SHORTEST_WAIT_SECONDS = 0.02

OTHERS_WRITE = "Other requests keep changing the same record."


class Database:
    """One database. `write()` and `read()` open a transaction; errors of the driver leave as
    `Unavailable`.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        # for a process that works with this one
        self.url = engine.url.render_as_string(hide_password=False)
        self.outage = DatabaseOutage()
        self._give_up_at = float("inf")
        self._notifier = None if self.is_sqlite else WorkNotifier(engine)
        if self.is_sqlite:
            event.listen(engine, "begin", self._begin_sqlite)
        # SQLite must say at BEGIN that it will write: a deferred one fails when it tries to upgrade
        # under load.
        self._writer = (
            engine.execution_options(begin="BEGIN IMMEDIATE") if self.is_sqlite else engine
        )
        # All statements of one read see one state; SQLite's transactions do so by themselves.
        self._reader = (
            engine
            if self.is_sqlite
            else engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @contextmanager
    def write(self, *, wait_seconds: float | None = None) -> Iterator[Tx]:
        """A transaction that may write: committed at the end of the block, rolled back if the block
        raises.

        Waits for locks up to `wait_seconds` (default 5 s). Raises Unavailable; with
        `outcome_unknown` when the connection was lost during the commit.
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

    def free_disk_bytes(self) -> int:
        """In the folder of SQLite's file, or else in that of temporary files."""
        file = self.engine.url.database if self.is_sqlite else None
        return disk_usage(Path(file).parent if file else tempfile.gettempdir()).free

    def count_connections(self) -> tuple[int, int]:
        """How many connections of the pool are used, and how many are idle."""
        pool = self.engine.pool
        return (pool.checkedout(), pool.checkedin()) if isinstance(pool, QueuePool) else (0, 0)

    def make_missing_file(self) -> None:
        """SQLite: make the file, empty, and its folder. Only this makes a file, so that a wrong
        address is noticed.

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
        """SQLite: remove deleted data from the write-ahead log too. False while a reader or a
        writer needs the log; then call it again. On PostgreSQL there is nothing to do. Raises
        Unavailable.
        """
        if not self.is_sqlite:
            return True
        with self.translated_errors(), self.engine.connect() as connection:
            return empty_log(connection)

    def shorten_waits(self, seconds: float) -> None:
        """The process is to stop: every wait for a lock, under way or to come, ends within
        `seconds`.
        """
        self._give_up_at = time.monotonic() + seconds

    def announce_work(self) -> None:
        """Wake the workers after a commit that may have made work. Returns at once. On SQLite
        workers watch the file.
        """
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
            if unavailable.code == DatabaseState.UNREACHABLE and self._has_full_disk():
                unavailable = failure_of(DatabaseState.FULL)
            self.outage.failed(unavailable)
            raise unavailable from None
        except Unavailable as error:
            self.outage.failed(error)
            raise
        if self.outage.began_at is not None:
            self.outage.ended()

    def _has_full_disk(self) -> bool:
        """SQLite says `disk I/O error` where it can't make the index of its log: 32 KiB."""
        if not self.is_sqlite:
            return False
        try:
            return self.free_disk_bytes() < FULL_BYTES
        except OSError:
            return False

    def _begin_sqlite(self, connection: Connection) -> None:
        options = connection.get_execution_options()
        begin = options.get("begin")
        if begin is None:
            connection.exec_driver_sql("BEGIN")
            return
        wanted_until = time.monotonic() + float(options.get("wait_seconds", WAIT_SECONDS))
        begin_writing(
            connection,
            begin,
            has_time=lambda: time.monotonic() < min(wanted_until, self._give_up_at),
        )


def open_database(url: str, *, pool_size: int = POOL_SIZE, index_scans: bool = True) -> Database:
    """Open the database behind `url` (Config.database_url). Connects lazily; a missing SQLite file
    is not made.

    `index_scans`: PostgreSQL reaches rows by an index only, as statements must that serve or load
    while tables grow. Raises FrontdeskError when the address can't be read.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "sqlite":
            return Database(
                create_postgresql_engine(parsed, pool_size=pool_size, index_scans=index_scans)
            )
    except (ValueError, ArgumentError):
        raise FrontdeskError(
            "The database of FRONTDESK_DATABASE_URL can't be opened: it is not a well-formed address.",
            code=codes.operators.MALFORMED_ADDRESS,
        ) from None
    return Database(create_sqlite_engine(parsed, pool_size=pool_size, wait_seconds=WAIT_SECONDS))


@contextmanager
def scratch_database(tables: Sequence[Table]) -> Iterator[Database]:
    """An empty SQLite database with these tables, deleted at the end. No foreign keys, and writes
    do not wait for the disk.
    """
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
    """Analyse the tables whose statistics are outdated by `written` rows, because autovacuum runs a
    minute later, or not at all. Raises Unavailable.

    The service's own statements do not depend on statistics (docs/decisions/0067); people's queries
    do. PostgreSQL skips tables of other owners, and tables that another session analyses now; it
    samples 30,000 pages at most. SQLite has no statistics here: stale statistics of a small table
    cause full scans when the table has grown.
    """
    if db.is_sqlite:
        return
    for name in db.ask(
        lambda tx: tx.exec_driver_sql(_OUTDATED, (list(tables), written)).scalars().all()
    ):
        with db.write() as tx:
            tx.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {name}")


class Writable(Protocol[OpenTx_co]):
    """A database that opens writing transactions: `Database` or `PipelineDatabase`."""

    def write(self, *, wait_seconds: float | None = None) -> AbstractContextManager[OpenTx_co]: ...


def write_together(
    db: Writable[AnyTx],
    items: Sequence[Item],
    work: Work[AnyTx, Item, Result],
    *,
    wait_seconds: float | None = None,
) -> list[Result | Exception]:
    """Write the items by `work(tx, items)` in one transaction: one result, or the item's own error,
    per item.

    After a lost race (unique violation, deadlock, dead connection, StateChanged) the set runs again
    on the new state. If that fails too, it runs item by item, so that a bad or locked item does not
    fail the others. Raises Unavailable when no item can be written.
    """
    is_alone = len(items) == 1
    try:
        return [*_attempt(db, lambda tx: work(tx, items), ATTEMPTS_TOGETHER, wait_seconds)]
    except Unavailable as error:
        if is_alone or not error.busy:
            raise
        is_busy = True
    except Exception as error:  # noqa: BLE001  # one item may be the cause, and each gets its own answer
        if is_alone and not lost_race(error):
            return [error]  # it would only fail again
        is_busy = False
    return _one_by_one(db, items, work, is_busy=is_busy)


def _one_by_one(
    db: Writable[AnyTx], items: Sequence[Item], work: Work[AnyTx, Item, Result], *, is_busy: bool
) -> list[Result | Exception]:
    """When other transactions lock rows, each item waits for its share of the time, so free items
    are written soon.
    """
    results: list[Result | Exception] = []
    started = time.monotonic()
    for position, item in enumerate(items):
        left = SHARED_SECONDS - (time.monotonic() - started)
        share = max(SHORTEST_WAIT_SECONDS, left / (len(items) - position)) if is_busy else None
        try:
            results += _attempt(db, lambda tx: work(tx, [item]), ATTEMPTS_ALONE, share)  # noqa: B023
        except Exception as error:  # noqa: BLE001  # it is the item's answer
            results.append(Unavailable(OTHERS_WRITE) if lost_race(error) else error)
        is_away = isinstance(results[-1], Unavailable) and not results[-1].busy
        if is_busy and (is_away or time.monotonic() - started > LAST_SECONDS):
            break
    refused = Unavailable("The database is busy.", busy=True)
    return results + [refused] * (len(items) - len(results))


def write_alone(
    db: Writable[AnyTx], work: Callable[[AnyTx], Result], *, wait_seconds: float | None = None
) -> Result:
    """`work(tx)` in one transaction, repeated after a lost race. Raises what `work` raises, and
    Unavailable.
    """
    [result] = write_together(
        db, [work], lambda tx, works: [works[0](tx)], wait_seconds=wait_seconds
    )
    if isinstance(result, Exception):
        raise result
    return result


def write_in_one(
    db: Writable[Tx],
    items: Sequence[Item],
    work: Work[Tx, Item, Result],
    *,
    save: Callable[[Tx, Sequence[Result | Exception]], None],
    begin: Callable[[], None] | None = None,
) -> None:
    """Write the items in ONE transaction, together with what `save(tx, results)` notes down.
    `begin()` precedes each attempt.

    After lost races the items run one by one behind savepoints of one transaction. An item that
    can't be written has an error as its result: Unavailable if other requests keep changing the
    same rows, else the driver's. Raises Unavailable, and what `save` raises.
    """

    def attempt(tx: Tx, *, is_split: bool = False) -> None:
        if begin is not None:
            begin()
        if is_split:
            save(tx, [_behind_savepoint(tx, item, work) for item in items])
        else:
            save(tx, [*work(tx, items)] if items else [])

    try:
        _attempt(db, attempt, ATTEMPTS_TOGETHER)
    except (DBAPIError, StateChanged):
        _attempt(db, lambda tx: attempt(tx, is_split=True), ATTEMPTS_ALONE)


def _attempt(
    db: Writable[AnyTx],
    work: Callable[[AnyTx], Result],
    limit: int,
    wait_seconds: float | None = None,
) -> Result:
    """`work(tx)` in one transaction, repeated after lost races. Raises the error of the last
    attempt.
    """
    while True:
        limit -= 1
        try:
            with db.write(wait_seconds=wait_seconds) as tx:
                result = work(tx)
        except (DBAPIError, StateChanged, Unavailable) as error:
            is_stale = isinstance(error, Unavailable) and error.stale_connection
            if limit == 0 or not (is_stale or lost_race(error)):
                raise
        else:
            return result


def _behind_savepoint(tx: Tx, item: Item, work: Work[Tx, Item, Result]) -> Result | Exception:
    for _ in range(ATTEMPTS_ALONE):
        try:
            with tx.begin_nested():
                [result] = work(tx, [item])
        except (DBAPIError, StateChanged) as error:
            if isinstance(error, DBAPIError) and is_deadlock(error):
                raise  # the whole transaction is gone
            if not lost_race(error):
                return error
        else:
            return result
    return Unavailable(OTHERS_WRITE)
