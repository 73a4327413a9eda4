"""Reads inside the event loop: one SELECT without a thread or BEGIN, in one round trip, and one
query for many identical reads.

A thread costs a lone caller more than its query: each of its waits takes the interpreter's lock
from the event loop (docs/decisions/0028).
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from time import monotonic, perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
import pysqlite3
from sqlalchemy import Select, func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from frontdesk.db.engine import Database, Tx
from frontdesk.db.pipeline import PipelineDatabase
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Answer = TypeVar("Answer")
Row = Sequence[Any]
Parameters = tuple[Any, ...]

POSTGRESQL_LOOKUPS = 4  # at a time; further ones wait for a connection
REMEMBERED = 64

# SQLite reads the file inside the event loop. On a disk that stalls, threads do it for a while, and
# only they are held up.
SLOW_SECONDS = 0.02
IN_THREADS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Lookup(Generic[Answer]):
    """A SELECT with its values, and the function that makes the answer of its rows. The query is
    compiled once.

    The answer is shared by all callers while the rows are the same, so it must not be changed.
    """

    query: Select[Any]
    values: Mapping[str, Any]
    answer: Callable[[Sequence[Row]], Answer]

    def read(self, tx: Tx) -> Answer:
        return self.answer(tx.execute(self.query, self.values).all())


class Remembered:
    """The last value of each of some keys, with its input; another input makes a new value.

    Reads always query the database. Values derived from the rows are computed again only if the
    rows differ.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[object, Any]] = OrderedDict()

    def get(self, key: Hashable, source: object, make: Callable[[], Answer]) -> Answer:
        known = self._made.get(key)
        if known is None or known[0] != source:
            known = self._made[key] = (source, make())
            if len(self._made) > REMEMBERED:
                self._made.popitem(last=False)
        answer: Answer = known[1]
        return answer


class PostgresqlLookups:
    """Queries on connections in pipeline mode, repeated if the first connection is dead."""

    def __init__(self, db: Database) -> None:
        self._db = PipelineDatabase(db.url, db.outage)
        self._answers = Remembered()
        self._free = asyncio.Semaphore(POSTGRESQL_LOOKUPS)

    async def ask(self, lookup: Lookup[Answer]) -> Answer:
        statement = _compiled(lookup.query, "postgresql")
        parameters = tuple(map(_as_text, statement.parameters(lookup.values)))
        async with self._free:
            rows = await self._db.ask(statement.sql, parameters)
        key = (statement.sql, parameters)
        return self._answers.get(key, rows, lambda: lookup.answer(statement.from_json(rows)))

    def shorten_waits(self, seconds: float) -> None:
        self._db.shorten_waits(seconds)

    def close(self) -> None:
        self._db.close()


class SqliteLookups:
    """Asks in the event loop: in WAL mode a reader waits for no writer. In a thread of `executor`
    when the file is locked (recovery after a crash), can't be read, or was slow a moment ago.
    """

    def __init__(self, db: Database, executor: Executor) -> None:
        self._db = db
        self._executor = executor
        self._connection: Any = None
        self._answers = Remembered()
        self._opening = threading.Lock()
        self._threads_until = 0.0

    async def ask(self, lookup: Lookup[Answer]) -> Answer:
        if self._connection is not None and monotonic() >= self._threads_until:
            statement = _compiled(lookup.query, "sqlite")
            parameters = statement.parameters(lookup.values)
            try:
                rows = self._read(statement.sql, parameters)
            except pysqlite3.Error:
                self._threads_until = monotonic() + IN_THREADS_SECONDS
            else:
                key = (statement.sql, parameters)
                return self._answers.get(
                    key, rows, lambda: lookup.answer(statement.converted(rows))
                )
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, self._ask_in_thread, lookup
        )

    def shorten_waits(self, seconds: float) -> None:
        """Nothing in the event loop waits."""

    def close(self) -> None:
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.invalidate()  # its settings differ from those of the pool

    def _read(self, sql: str, parameters: Parameters) -> list[Row]:
        started = perf_counter()
        rows: list[Row] = self._connection.execute(sql, parameters).fetchall()
        if perf_counter() - started > SLOW_SECONDS:
            self._threads_until = monotonic() + IN_THREADS_SECONDS
        return rows

    def _ask_in_thread(self, lookup: Lookup[Answer]) -> Answer:
        answer = self._db.ask(lookup.read)
        with self._opening:  # beside the event loop, since a file that recovers is locked
            if self._connection is None:
                opened: Any = self._db.engine.raw_connection()
                opened.execute("PRAGMA busy_timeout=0")
                self._connection = opened
        return answer


# `await ask(lookup)`: its answer as of now, or what its `answer` raises. Raises Unavailable.
Lookups = PostgresqlLookups | SqliteLookups


class _Statement(NamedTuple):
    """A compiled query: its text, its parameters in order, those that have a value already, and
    what to convert.
    """

    sql: str
    names: tuple[str, ...]
    known: Mapping[str, Any]
    converters: tuple[tuple[int, Callable[[Any], Any]], ...]

    def parameters(self, values: Mapping[str, Any]) -> Parameters:
        return tuple(values[name] if name in values else self.known[name] for name in self.names)

    def from_json(self, rows: Iterable[Sequence[bytes | None]]) -> list[list[Any]]:
        return self.converted(orjson.loads(row or b"[]") for (row,) in rows)

    def converted(self, rows: Iterable[Row]) -> list[list[Any]]:
        """The rows with times and booleans as SQLAlchemy would give them."""
        found = [list(row) for row in rows]
        for place, convert in self.converters:
            for row in found:
                row[place] = convert(row[place])
        return found


@cache
def _compiled(query: Select[Any], dialect: str) -> _Statement:
    """The query for a driver. On PostgreSQL each row is ONE column, a JSON array."""
    columns = query.selected_columns
    driver = _DIALECTS[dialect]
    converters = tuple(
        (place, convert)
        for place, column in enumerate(columns)
        if (convert := column.type.dialect_impl(driver).result_processor(driver, None)) is not None
    )
    if dialect == "postgresql":
        query = query.with_only_columns(func.json_build_array(*columns), maintain_column_froms=True)
    made: Any = query.compile(dialect=driver)
    return _Statement(str(made), tuple(made.positiontup), made.params, converters)


def _as_text(value: Any) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


_DIALECTS: dict[str, Dialect] = {
    "postgresql": postgresql.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
    "sqlite": sqlite.dialect(paramstyle="qmark"),
}


class SharedReads(Generic[Answer]):
    """`await get(key, read)`: the answer of `await read()`, shared by all callers that wait for the
    same key.

    A read joins a query that has not STARTED when it arrives, never a running query. So every
    caller sees each write that was acknowledged before its call. Raises Unavailable when the answer
    takes longer than `deadlines` allow, counted from this caller. A query has the same time from
    its start, so a hanging query delays the next callers and does not fail them.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}
        self._next: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[Answer]]) -> Answer:
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._read(key, read))
            # All callers may have gone when it fails; asyncio would report an error that nobody
            # took.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await self._in_time(asyncio.shield(task))

    async def _in_time(self, answer: Awaitable[Answer]) -> Answer:
        try:
            with self._deadlines.timeout():
                return await answer
        except TimeoutError:
            raise Unavailable("The database did not answer in time.") from None

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[Answer]]) -> Answer:
        before = self._running.get(key)
        try:
            if before is not None:
                await asyncio.wait([before])
        finally:
            task = self._next.pop(key)
        self._running[key] = task
        try:
            return await self._in_time(read())
        finally:
            del self._running[key]
