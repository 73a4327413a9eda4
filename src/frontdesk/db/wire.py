"""The short way to PostgreSQL for set statements inside the event loop: a transaction in two trips; it knows no table.

Through toolkit and driver a transaction of two statements takes four trips and a millisecond of Python, which one process
has to spare for few callers. Here BEGIN travels with the first statement and COMMIT with the last one, prepared, in the
protocol's pipeline mode (docs/decisions/0028). What runs on it is written as if it blocked (`evented`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar, cast

import orjson
import psycopg
from psycopg import pq
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only, greenlet_spawn

from frontdesk.db.engine import SILENT_SECONDS, WAIT_FOR_LOCKS, Tx, milliseconds, postgresql_arguments
from frontdesk.db.failures import NoAnswer, as_unavailable, as_unknown_outcome
from frontdesk.deadlines import Deadlines

Answer = TypeVar("Answer")
Parameters = tuple[Any, ...]

# One record that somebody else holds must not hold up its neighbours: `db.races` then writes them without it.
LOCK_SECONDS = 1

_BAD = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR, pq.ExecStatus.BAD_RESPONSE}
_SESSION_ENDED = ("57P", "08")  # an operator's command, a crash, a broken connection


async def evented(work: Callable[..., Answer], *arguments: Any) -> Answer:
    """Run `work`, written as if it blocked, inside the event loop: each wait of a `WireDatabase` lets others run.

    A thread would do, but it and the event loop would take the interpreter's lock from each other at every wait.
    """
    return await greenlet_spawn(work, *arguments)


def wait_for(awaitable: Awaitable[Answer]) -> Answer:
    return await_only(awaitable)


class WireDatabase:
    """`write()` as `Database` has it, for work run by `evented`; its Tx takes set statements (`db.sets`) and no others."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[_Wire] = []
        self._deadlines = Deadlines(SILENT_SECONDS)

    @contextmanager
    def write(self, *, wait_seconds: float | None = None) -> Iterator[Tx]:
        """A transaction that may write, and waits 1 s or `wait_seconds` for what others have locked.

        Raises Unavailable, and DBAPIError for a violation or a lost race.
        """
        wire = self._take()
        tx = WireTx(self, wire)
        if wait_seconds is not None:
            tx.run(WAIT_FOR_LOCKS, (milliseconds(wait_seconds),), is_answered=False)
        try:
            yield cast(Tx, tx)
            tx.commit()
        finally:
            tx.give_back(self._idle)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> "_Wire":
        while self._idle:
            wire = self._idle.pop()
            if wire.is_alive:
                return wire
        try:
            return wait_for(_Wire.open(self._url, self._deadlines))
        except psycopg.Error as error:
            raise _translated(error, is_lost=False, is_committing=False) from None


class WireTx:
    """A transaction on one connection. What answers nothing waits, and travels with the next statement or COMMIT."""

    def __init__(self, database: WireDatabase, wire: "_Wire") -> None:
        self.engine = database
        self.info: dict[str, Any] = {}
        self._wire = wire
        self._waiting: list[tuple[str, Parameters]] = []
        self._is_open = False

    def run(self, sql: str, parameters: Parameters, *, is_answered: bool) -> list[Any]:
        """The columns of the one row that `sql` answers, which are JSON; [] unless `is_answered`."""
        self._waiting.append((sql, parameters))
        if not is_answered:
            return []
        return [None if value is None else orjson.loads(value) for value in self._send()[-1]]

    def commit(self) -> None:
        if self._waiting or self._is_open:
            self._waiting.append(("COMMIT", ()))
            self._send(is_committing=True)
        self._is_open = False

    def give_back(self, idle: "list[_Wire]") -> None:
        """Undo what was not committed, and keep the connection if it still works."""
        if self._is_open and self._wire.is_alive:
            try:
                wait_for(self._wire.exchange([("ROLLBACK", ())]))
            except psycopg.Error:
                self._wire.close()
        if self._wire.is_alive:
            idle.append(self._wire)

    def _send(self, *, is_committing: bool = False) -> list[Sequence[bytes | None]]:
        statements = self._waiting if self._is_open else [("BEGIN", ()), *self._waiting]
        self._waiting = []
        self._is_open = True
        try:
            return wait_for(self._wire.exchange(statements))
        except psycopg.Error as error:
            is_lost = not self._wire.is_alive
            raise _translated(error, is_lost=is_lost, is_committing=is_committing) from None


class _Wire:
    """One connection in pipeline mode. `await exchange(statements)` sends them at once and returns a row for each."""

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
    async def open(cls, url: str, deadlines: Deadlines) -> "_Wire":
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        arguments = postgresql_arguments(lock_seconds=LOCK_SECONDS)
        connection = await psycopg.AsyncConnection.connect(plain, **arguments)
        return cls(connection, asyncio.get_running_loop(), deadlines)

    async def exchange(self, statements: Sequence[tuple[str, Parameters]]) -> list[Sequence[bytes | None]]:
        """Raises psycopg.Error: the first statement's that failed (those after it were not run), or of a lost connection,
        which one that says nothing for 9 s counts as."""
        self._rows, self._error, self._fresh = [], None, []
        self._done = self._loop.create_future()
        try:
            for sql, parameters in statements:
                self._send(sql, parameters)
            self._server.pipeline_sync()
            await self._deadlines.within(self._answered(self._done))
        except TimeoutError:
            self.close()
            raise NoAnswer("the server has fallen silent") from None
        except BaseException:  # half an exchange can't be gone on with
            self.close()
            raise
        self._raise_error()
        return self._rows

    async def _answered(self, done: "asyncio.Future[None]") -> None:
        while self._server.flush():
            await self._writable()
        await done

    def _raise_error(self) -> None:
        if self._error is not None:
            for sql in self._fresh:  # whether they were prepared before the failure is not known
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
        """Called by the event loop whenever the server has said something."""
        try:
            self._server.consume_input()
            while not self._server.is_busy():
                result = self._server.get_result()
                if result is None:
                    if self._done is None or self._done.done():
                        return
                elif self._take(result):
                    self._finish()
                    return
        except psycopg.Error as error:
            self._error = self._error or error
            self.close()
            self._finish()

    def _take(self, result: pq.abc.PGresult) -> bool:
        """Note one result; True for the one that ends the exchange."""
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
    """`%s` as the server wants it: `$1`, `$2`, …"""
    first, *others = sql.split("%s")
    return first + "".join(f"${n}{other}" for n, other in enumerate(others, start=1))


def _translated(error: psycopg.Error, *, is_lost: bool, is_committing: bool) -> Exception:
    """The error as the toolkit would have raised it, so that the rest of `db` has one kind of error to know."""
    wrapped = DBAPIError.instance(
        None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=is_lost
    )
    if not isinstance(wrapped, DBAPIError):
        return wrapped
    unknown = as_unknown_outcome(wrapped) if is_committing else None
    return unknown or as_unavailable(wrapped) or wrapped
