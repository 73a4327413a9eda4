"""Set statements on PostgreSQL inside the event loop: a transaction in two round trips.

SQLAlchemy and the driver's own coroutines take four trips and a millisecond of Python for a
transaction of two statements. Here BEGIN travels with the first statement and COMMIT with the last
one, prepared, in the protocol's pipeline mode (docs/decisions/0028). What runs on it is written as
if it blocked (`run_in_event_loop`).
"""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

import orjson
import psycopg
from psycopg import pq
from sqlalchemy import make_url
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only, greenlet_spawn

from frontdesk.db.engine import Database, Item, Result, write_together
from frontdesk.db.failures import DatabaseOutage, NoAnswer, as_unavailable, as_unknown_outcome
from frontdesk.db.group_commit import GroupCommit
from frontdesk.db.postgresql import (
    SILENT_SECONDS,
    WAIT_FOR_LOCKS,
    connection_arguments,
    milliseconds,
    refusal_named,
    session_settings,
    settings_query,
    verify_settings,
)
from frontdesk.db.sets import SetTransaction
from frontdesk.db.sqlite import DriverTransaction
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
Parameters = tuple[Any, ...]
PipelineRows = list[list[bytes | None]]

POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait
# A record that is locked by another transaction must not hold up its chunk: `db.engine` then writes
# the other records without it.
LOCK_SECONDS = 1

_DONE = {pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK}
_BAD = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR, pq.ExecStatus.BAD_RESPONSE}
_SESSION_ENDED = ("57P", "08", "25006")  # by an operator, a crash, the network; a demoted primary


async def run_in_event_loop(work: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
    """Run `work`, written as if it blocked, inside the event loop: each wait of a
    `PipelineDatabase` lets other tasks run.

    A thread would be simpler, but it and the event loop take the interpreter's lock from each other
    at every wait.
    """
    return await greenlet_spawn(work, *arguments)


class PipelineDatabase:
    """`write()` as `Database` has it, for work under `run_in_event_loop`. Its transactions take set
    statements only.

    `engine` is that of the Database that it belongs to, if there is one: counts of usage are kept
    by it.
    """

    def __init__(
        self, url: str, outage: DatabaseOutage | None = None, *, engine: Any = None
    ) -> None:
        self._url = url
        self.engine: Any = engine or self
        self._outage = outage or DatabaseOutage()
        self._idle: list[_PipelineConnection] = []
        self._deadlines = Deadlines(SILENT_SECONDS)

    @contextmanager
    def write(self, *, wait_seconds: float | None = None) -> "Iterator[PipelineTransaction]":
        """A transaction that may write. Waits for locks up to `wait_seconds` (default 1 s).

        Raises Unavailable, and DBAPIError for a violation or a lost race.
        """
        connection = self._idle_connection() or await_only(self._open())
        tx = PipelineTransaction(self, connection)
        if wait_seconds is not None:
            tx.exec_driver_sql(WAIT_FOR_LOCKS, (milliseconds(wait_seconds),))
        try:
            yield tx
            tx.commit()
            if self._outage.began_at is not None:
                self._outage.ended()
        finally:
            tx.roll_back()
            if connection.is_alive:
                self._idle.append(connection)
            else:
                self.close()  # the others may be as dead

    async def ask(self, statement: str, parameters: Parameters) -> PipelineRows:
        """The rows of ONE statement that only reads, which needs no BEGIN; each value as the server
        sends it. The statement is sent again when the connection turns out to be dead. Raises
        Unavailable.
        """
        try:
            return await self._ask_once(statement, parameters)
        except Unavailable as error:
            if not error.stale_connection:
                raise
        return await self._ask_once(statement, parameters)

    def shorten_waits(self, seconds: float) -> None:
        """The process is stopping: a server that is silent for so long counts as lost. Call it in
        the event loop.
        """
        self._deadlines.shorten(seconds)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _idle_connection(self) -> "_PipelineConnection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive:
                return connection
        return None

    async def _open(self) -> "_PipelineConnection":
        try:
            return await _PipelineConnection.open(self._url, self._deadlines)
        except psycopg.Error as error:
            raise self.translated(error, is_lost=False) from None

    async def _ask_once(self, statement: str, parameters: Parameters) -> PipelineRows:
        connection = self._idle_connection() or await self._open()
        answer = PipelineAnswer(statement, parameters)
        try:
            await connection.execute([answer])
        except psycopg.Error as error:
            raise self.translated(error, is_lost=not connection.is_alive) from None
        finally:
            if connection.is_alive:
                self._idle.append(connection)
            else:
                self.close()  # the others may be as dead
        if self._outage.began_at is not None:
            self._outage.ended()
        return answer.rows or []

    def translated(
        self, error: psycopg.Error, *, is_lost: bool, is_committing: bool = False
    ) -> Exception:
        """The error as SQLAlchemy would raise it, so that `db` handles one kind of error; or
        Unavailable.
        """
        wrapped = DBAPIError.instance(
            None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=is_lost
        )
        if not isinstance(wrapped, DBAPIError):
            return wrapped
        unavailable = (as_unknown_outcome(wrapped) if is_committing else None) or as_unavailable(
            wrapped
        )
        if unavailable is not None:
            self._outage.failed(unavailable)
        return unavailable or wrapped


class GroupWriter(GroupCommit[Item, Result]):
    """A group commit that writes each group where the database is quickest: on PostgreSQL inside
    the event loop, with a second lane; on SQLite in a thread. A subclass says what a transaction
    does.
    """

    def __init__(self, db: Database, deadlines: Deadlines) -> None:
        super().__init__(deadlines=deadlines, lanes=1 if db.is_sqlite else POSTGRESQL_LANES)
        self.db = db
        self._pipeline_db = (
            None if db.is_sqlite else PipelineDatabase(db.url, db.outage, engine=db.engine)
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="group")

    @abstractmethod
    def work(self, tx: SetTransaction, items: Sequence[Item]) -> Iterable[Result | Exception]:
        """Write the items, as `write_together` asks for it."""

    async def commit_group(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        if self._pipeline_db is not None:
            return await run_in_event_loop(write_together, self._pipeline_db, items, self.work)
        loop = asyncio.get_running_loop()

        def work(tx: Any, items: Sequence[Item]) -> Iterable[Result | Exception]:
            return self.work(DriverTransaction(tx), items)

        return await loop.run_in_executor(self._thread, write_together, self.db, items, work)

    def shorten_waits(self, seconds: float) -> None:
        """The process is stopping: a database that is silent for so long counts as lost."""
        if self._pipeline_db is not None:
            self._pipeline_db.shorten_waits(seconds)

    async def close(self) -> None:
        await super().close()
        self._thread.shutdown(wait=False, cancel_futures=True)  # a wait would block the event loop
        if self._pipeline_db is not None:
            self._pipeline_db.close()


@dataclass(slots=True, eq=False)
class PipelineAnswer:
    """A statement and, once it was sent, the rows of its answer; each column is JSON. Reading them
    sends the statement.
    """

    sql: str
    parameters: Parameters = ()
    send: Callable[[], None] | None = None
    rows: PipelineRows | None = None

    def one(self) -> list[Any]:
        [row] = self
        return row

    def __iter__(self) -> Iterator[list[Any]]:
        if self.rows is None and self.send is not None:
            self.send()
        for row in self.rows or ():
            yield [None if value is None else orjson.loads(value) for value in row]


class PipelineTransaction:
    """A `SetTransaction` on one connection. A statement waits until its answer is read, or travels
    with the next one or with COMMIT.
    """

    dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]

    def __init__(self, database: PipelineDatabase, connection: "_PipelineConnection") -> None:
        self.engine = database
        self.info: dict[Any, Any] = {}
        self._connection = connection
        self._waiting: list[PipelineAnswer] = []
        self._is_open = False

    def exec_driver_sql(self, statement: str, parameters: Any = (), /) -> PipelineAnswer:
        answer = PipelineAnswer(statement, parameters, self._send)
        self._waiting.append(answer)
        return answer

    def commit(self) -> None:
        if self._waiting or self._is_open:
            self.exec_driver_sql("COMMIT")
            self._send(is_committing=True)
        self._is_open = False

    def roll_back(self) -> None:
        """Undo what was not committed."""
        self._waiting.clear()
        if self._is_open and self._connection.is_alive:
            try:
                await_only(self._connection.execute([PipelineAnswer("ROLLBACK")]))
            except psycopg.Error:
                self._connection.close()

    def _send(self, *, is_committing: bool = False) -> None:
        begin = [] if self._is_open else [PipelineAnswer("BEGIN")]
        statements = [*begin, *self._waiting]
        self._waiting = []
        self._is_open = True
        try:
            await_only(self._connection.execute(statements))
        except psycopg.Error as error:
            is_lost = not self._connection.is_alive
            raise self.engine.translated(
                error, is_lost=is_lost, is_committing=is_committing
            ) from None


class _PipelineConnection:
    """One connection in pipeline mode. `await execute(statements)` sends them at once and fills in
    their rows.
    """

    def __init__(
        self,
        connection: "psycopg.AsyncConnection[Any]",
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
    ) -> None:
        self.is_alive = True
        self._deadlines = deadlines
        self._connection = connection
        self._server = connection.pgconn
        self._loop = loop
        self._prepared: dict[str, bytes] = {}
        self._fresh: list[str] = []
        self._names = count(1)
        # one per result to come; None: a preparation
        self._expected: deque[PipelineAnswer | None] = deque()
        self._errors: list[psycopg.Error] = []
        self._done: asyncio.Future[None] = loop.create_future()
        self._done.set_result(None)
        self._server.nonblocking = 1
        self._server.enter_pipeline_mode()
        self._socket = self._server.socket
        loop.add_reader(self._socket, self._receive)

    @classmethod
    async def open(cls, url: str, deadlines: Deadlines) -> "_PipelineConnection":
        """Raises Unavailable when the settings do not hold."""
        address = make_url(url).set(drivername="postgresql")
        plain = address.render_as_string(hide_password=False)
        settings = session_settings(lock_seconds=LOCK_SECONDS)
        try:
            with deadlines.timeout(), refusal_named():
                arguments = connection_arguments(settings, address)
                connection = await psycopg.AsyncConnection.connect(
                    plain, **arguments, autocommit=True
                )
                try:
                    answer = await connection.execute(settings_query(settings))
                    verify_settings(settings, await answer.fetchone())
                except BaseException:
                    await connection.close()
                    raise
        except TimeoutError:
            raise NoAnswer from None
        return cls(connection, asyncio.get_running_loop(), deadlines)

    async def execute(self, statements: Sequence[PipelineAnswer]) -> None:
        """Raises psycopg.Error: of the first statement that failed (the later ones were not run),
        or of a lost connection. A connection that says nothing for 9 s counts as lost (sooner after
        `shorten_waits`).
        """
        self._fresh = []
        self._expected.clear()
        self._errors.clear()
        self._done = self._loop.create_future()
        try:
            for statement in statements:
                self._send(statement)
            self._server.pipeline_sync()
            with self._deadlines.timeout():
                while self._server.flush():
                    await self._writable()
                await self._done
        except TimeoutError:
            self.close()
            raise NoAnswer from None
        except BaseException:  # the pipeline is in an unknown state
            self.close()
            raise
        if self._errors:
            for sql in self._fresh:  # they may or may not have been prepared before the failure
                self._prepared.pop(sql, None)
            raise self._errors.pop(0)

    def close(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._loop.remove_reader(self._socket)
            self._server.finish()

    def _send(self, statement: PipelineAnswer) -> None:
        sql = statement.sql
        name = self._prepared.get(sql)
        if name is None:
            name = self._prepared[sql] = b"w%d" % next(self._names)
            self._fresh.append(sql)
            self._expected.append(None)
            self._server.send_prepare(name, _numbered(sql).encode())
        self._expected.append(statement)
        self._server.send_query_prepared(
            name, [str(value).encode() for value in statement.parameters]
        )

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._socket, _settle, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        """The event loop calls this whenever the server has sent something."""
        try:
            self._server.consume_input()
            while not self._server.is_busy():
                result = self._server.get_result()
                if result is None:
                    if self._done.done():
                        return
                elif self._keep(result):
                    _settle(self._done)
                    return
        except psycopg.Error as error:
            self._errors.append(error)
            self.close()
            _settle(self._done)

    def _keep(self, result: pq.abc.PGresult) -> bool:
        """Store one result. True for the last result of the pipeline."""
        status = result.status
        if status == pq.ExecStatus.PIPELINE_SYNC:
            return True
        if status in _DONE:
            if (statement := self._expected.popleft()) is not None:
                columns = range(result.nfields)
                statement.rows = [
                    [result.get_value(n, column) for column in columns]
                    for n in range(result.ntuples)
                ]
        elif status in _BAD:
            self._errors.append(psycopg.errors.error_from_result(result))
            if (self._errors[0].sqlstate or "").startswith(_SESSION_ENDED):
                self.close()
                return True
        return False


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _numbered(sql: str) -> str:
    """The statement with `$1`, `$2`, … for each `%s`, as the server takes it."""
    first, *others = sql.split("%s")
    return first + "".join(f"${n}{other}" for n, other in enumerate(others, start=1))
