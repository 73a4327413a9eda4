"""Set statements on PostgreSQL inside the event loop: a transaction in two round trips.

SQLAlchemy and the driver's own coroutines take four trips and a millisecond of Python for a transaction of two statements.
Here BEGIN travels with the first statement and COMMIT with the last one, prepared, in the protocol's pipeline mode
(docs/decisions/0028). What runs on it is written as if it blocked (`run_in_event_loop`).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

from frontdesk.db.failures import NoAnswer, as_unavailable, as_unknown_outcome
from frontdesk.db.postgresql import SILENT_SECONDS, WAIT_FOR_LOCKS, connection_arguments, milliseconds
from frontdesk.deadlines import Deadlines

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
Parameters = tuple[Any, ...]

# A record that another transaction locks must not hold up its neighbours: `db.races` then writes them without it.
LOCK_SECONDS = 1

SILENT = "the server has fallen silent"
_BAD = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR, pq.ExecStatus.BAD_RESPONSE}
_SESSION_ENDED = ("57P", "08")  # an operator's command, a crash, a broken connection


async def run_in_event_loop(work: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
    """Run `work`, written as if it blocked, inside the event loop: each wait of a `PipelineDatabase` lets other tasks run.

    A thread would be simpler, but it and the event loop take the interpreter's lock from each other at every wait.
    """
    return await greenlet_spawn(work, *arguments)


class PipelineDatabase:
    """`write()` as `Database` has it, for work under `run_in_event_loop`. Its transactions take set statements only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[_PipelineConnection] = []
        self._deadlines = Deadlines(SILENT_SECONDS)

    @contextmanager
    def write(self, *, wait_seconds: float | None = None) -> "Iterator[PipelineTransaction]":
        """A transaction that may write. Waits for locks up to `wait_seconds` (default 1 s).

        Raises Unavailable, and DBAPIError for a violation or a lost race.
        """
        connection = self._connect()
        tx = PipelineTransaction(self, connection)
        if wait_seconds is not None:
            tx.exec_driver_sql(WAIT_FOR_LOCKS, (milliseconds(wait_seconds),))
        try:
            yield tx
            tx.commit()
        finally:
            tx.roll_back()
            if connection.is_alive:
                self._idle.append(connection)

    def shorten_waits(self, seconds: float) -> None:
        """The process is to stop: a server that says nothing for so long counts as lost. Call it in the event loop."""
        self._deadlines.shorten(seconds)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> "_PipelineConnection":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive:
                return connection
        try:
            opening = _PipelineConnection.open(self._url, self._deadlines)
            return await_only(self._deadlines.within(opening))
        except TimeoutError:
            raise _translated(NoAnswer(SILENT), is_lost=False, is_committing=False) from None
        except psycopg.Error as error:
            raise _translated(error, is_lost=False, is_committing=False) from None


class PipelineAnswer:
    """The answer of one statement: one row, whose columns are JSON. To read it sends the statement."""

    __slots__ = ("_send",)

    def __init__(self, send: Callable[[], list[Sequence[bytes | None]]]) -> None:
        self._send = send

    def one(self) -> list[Any]:
        return [None if value is None else orjson.loads(value) for value in self._send()[-1]]

    def __iter__(self) -> Iterator[list[Any]]:
        yield self.one()


class PipelineTransaction:
    """A `SetTransaction` on one connection. A statement waits until its answer is read, or travels with the next one or
    with COMMIT."""

    dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]

    def __init__(self, database: PipelineDatabase, connection: "_PipelineConnection") -> None:
        self.engine = database
        self.info: dict[Any, Any] = {}
        self._connection = connection
        self._waiting: list[tuple[str, Parameters]] = []
        self._is_open = False

    def exec_driver_sql(self, statement: str, parameters: Any = (), /) -> PipelineAnswer:
        self._waiting.append((statement, parameters))
        return PipelineAnswer(self._send)

    def commit(self) -> None:
        if self._waiting or self._is_open:
            self._waiting.append(("COMMIT", ()))
            self._send(is_committing=True)
        self._is_open = False

    def roll_back(self) -> None:
        """Undo what was not committed."""
        if self._is_open and self._connection.is_alive:
            try:
                await_only(self._connection.execute([("ROLLBACK", ())]))
            except psycopg.Error:
                self._connection.close()

    def _send(self, *, is_committing: bool = False) -> list[Sequence[bytes | None]]:
        statements = self._waiting if self._is_open else [("BEGIN", ()), *self._waiting]
        self._waiting = []
        self._is_open = True
        try:
            return await_only(self._connection.execute(statements))
        except psycopg.Error as error:
            is_lost = not self._connection.is_alive
            raise _translated(error, is_lost=is_lost, is_committing=is_committing) from None


class _PipelineConnection:
    """One connection in pipeline mode. `await execute(statements)` sends them at once and returns a row for each."""

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
        self._done: asyncio.Future[None] | None = None
        self._rows: list[Sequence[bytes | None]] = []
        self._error: psycopg.Error | None = None
        self._server.nonblocking = 1
        self._server.enter_pipeline_mode()
        self._socket = self._server.socket
        loop.add_reader(self._socket, self._receive)

    @classmethod
    async def open(cls, url: str, deadlines: Deadlines) -> "_PipelineConnection":
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        arguments = connection_arguments(lock_seconds=LOCK_SECONDS)
        connection = await psycopg.AsyncConnection.connect(plain, **arguments)
        return cls(connection, asyncio.get_running_loop(), deadlines)

    async def execute(self, statements: Sequence[tuple[str, Parameters]]) -> list[Sequence[bytes | None]]:
        """Raises psycopg.Error: of the first statement that failed (the later ones were not run), or of a lost connection.
        A connection that says nothing for 9 s counts as lost (sooner after `shorten_waits`)."""
        self._rows, self._error, self._fresh = [], None, []
        self._done = self._loop.create_future()
        try:
            for sql, parameters in statements:
                self._send(sql, parameters)
            self._server.pipeline_sync()
            await self._deadlines.within(self._flush_and_wait(self._done))
        except TimeoutError:
            self.close()
            raise NoAnswer(SILENT) from None
        except BaseException:  # the pipeline is in an unknown state
            self.close()
            raise
        self._raise_error()
        return self._rows

    async def _flush_and_wait(self, done: "asyncio.Future[None]") -> None:
        while self._server.flush():
            await self._writable()
        await done

    def _raise_error(self) -> None:
        if self._error is not None:
            for sql in self._fresh:  # they may or may not have been prepared before the failure
                self._prepared.pop(sql, None)
            raise self._error

    def close(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._loop.remove_reader(self._socket)
            self._server.finish()

    def _send(self, sql: str, parameters: Parameters) -> None:
        name = self._prepared.get(sql)
        if name is None:
            name = self._prepared[sql] = b"w%d" % next(self._names)
            self._fresh.append(sql)
            self._server.send_prepare(name, _numbered(sql).encode())
        self._server.send_query_prepared(name, [str(value).encode() for value in parameters])

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
                    if self._done is None or self._done.done():
                        return
                elif self._keep(result):
                    self._finish()
                    return
        except psycopg.Error as error:
            self._error = self._error or error
            self.close()
            self._finish()

    def _keep(self, result: pq.abc.PGresult) -> bool:
        """Keep one result. True for the one that ends the pipeline."""
        status = result.status
        if status == pq.ExecStatus.PIPELINE_SYNC:
            return True
        if status == pq.ExecStatus.TUPLES_OK:
            self._rows.append([result.get_value(0, column) for column in range(result.nfields)])
        elif status in _BAD and self._error is None:
            self._error = psycopg.errors.error_from_result(result)
            if (self._error.sqlstate or "").startswith(_SESSION_ENDED):
                self.close()
                return True
        return False

    def _finish(self) -> None:
        if self._done is not None:
            _settle(self._done)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _numbered(sql: str) -> str:
    """The statement with `$1`, `$2`, … for each `%s`, as the server takes it."""
    first, *others = sql.split("%s")
    return first + "".join(f"${n}{other}" for n, other in enumerate(others, start=1))


def _translated(error: psycopg.Error, *, is_lost: bool, is_committing: bool) -> Exception:
    """The error as SQLAlchemy would raise it, so that `db` handles one kind of error."""
    wrapped = DBAPIError.instance(
        None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=is_lost
    )
    if not isinstance(wrapped, DBAPIError):
        return wrapped
    unknown = as_unknown_outcome(wrapped) if is_committing else None
    return unknown or as_unavailable(wrapped) or wrapped
