"""Statements over a whole set of rows, for both databases.

PostgreSQL takes a set as ONE JSON parameter and several statements in one round trip; SQLite takes
a set through the driver's `executemany`. Row by row through SQLAlchemy costs 4 times as much
(docs/decisions/0013). A set of thousands of rows goes by COPY, where the transaction can: the
server reads that text several times faster than one JSON parameter, and reads it while the rest is
still being written out. An ordinary `Tx` is a `SetTransaction`, and so is a `PipelineTransaction`.
The text of a statement is built once from the Table objects, never from values. A row is a dict of
stored values: text, numbers, `YYYY-MM-DD`, `text.stored_time` text; dicts for JSON columns.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import orjson
import psycopg
from sqlalchemy import JSON, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NULLTYPE

from frontdesk.db.engine import Tx
from frontdesk.db.postgresql import COPY_CONNECTION

Row = Mapping[str, Any]

# Smaller sets share a round trip with other statements, which is worth more to them.
FEWEST_ROWS = 300
MANY_UPDATES = 100  # so many updated rows are worth a statement of their own
# PostgreSQL's ids are reserved in blocks. Ids that a process does not use are gaps, which do no
# harm.
ID_BLOCK = 1000

_TRIP = "frontdesk_trip"
_reserved: WeakKeyDictionary[Any, dict[str, deque[int]]] = WeakKeyDictionary()
_taking = threading.Lock()
# By engine and table: the columns that small updates have named so far.
_updated: WeakKeyDictionary[Any, dict[str, set[str]]] = WeakKeyDictionary()
_keys: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # of digests, by engine


class SetAnswer(Protocol):
    def one(self) -> Sequence[Any]: ...

    def __iter__(self) -> Iterator[Sequence[Any]]: ...


class SetTransaction(Protocol):
    """An open transaction that takes set statements. `info` lives as long as its connection."""

    @property
    def engine(self) -> Any: ...

    @property
    def dialect(self) -> Dialect: ...

    @property
    def info(self) -> dict[Any, Any]: ...

    def exec_driver_sql(self, statement: str, parameters: Any = None, /) -> SetAnswer:
        """Execute the statement, at the latest when its answer is read or the transaction commits."""
        ...


def lock_name(tx: SetTransaction, name: str) -> None:
    """Let other transactions that lock this name wait until this one ends; SQLite has a single
    writer anyway.
    """
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))


def lock_names(tx: SetTransaction, names: Collection[str]) -> None:
    """`lock_name` for a set, in one order, so that two transactions can't wait for each other."""
    if tx.dialect.name != "sqlite":
        ordered = "SELECT value FROM json_array_elements_text(%s::json) ORDER BY value"
        sql = f"SELECT pg_advisory_xact_lock(hashtextextended(value, 0)) FROM ({ordered}) AS names"
        tx.exec_driver_sql(sql, (as_json(sorted(names)),))


def installation_key(tx: SetTransaction) -> bytes:
    """The installation's key of digests. It never changes, so a process reads it once for each
    engine.
    """
    if (key := _keys.get(tx.engine)) is None:
        # A pipeline's answers are JSON.
        column = "row_digest_key" if tx.dialect.name == "sqlite" else "to_json(row_digest_key)"
        [text] = tx.exec_driver_sql(f"SELECT {column} FROM installation").one()
        key = _keys[tx.engine] = bytes.fromhex(text)
    return key


def keyed_hasher(tx: SetTransaction, *, size: int, person: bytes = b"") -> blake2b:
    """For `text.keyed_hash`, with the installation's key and `size` bytes. `person` separates uses
    of the key.
    """
    return blake2b(key=installation_key(tx), digest_size=size, person=person)


class Found:
    """The rows of a set read, as dicts. Inside a block of `one_round_trip` they are there once the
    block has ended.

    On a `PipelineTransaction` the first look at `rows` sends the trip. If that is after the commit,
    the trip travels with COMMIT.
    """

    received: list[dict[str, Any]] | None = None
    receive: Callable[[], None] | None = None  # fills in `received` of every read of the trip

    @property
    def rows(self) -> list[dict[str, Any]]:
        if self.received is None and self.receive is not None:
            self.receive()
        return self.received or []


# Statements that wait to be sent together, with their parameters; the third says where a read's
# rows go.
_Trip = list[tuple[str, Sequence[Any], Found | None]]


def as_json(value: Any) -> str:
    """The text of a JSON value, as both databases take it."""
    return orjson.dumps(value).decode()


@contextmanager
def one_round_trip(tx: SetTransaction) -> Iterator[None]:
    """Send the set statements of the block as ONE statement at its end. They see one state, in no
    particular order.

    Each further trip is another wait for the caller and for the interpreter's lock. SQLite has no
    trips: there each statement runs at once.
    """
    if tx.dialect.name == "sqlite":
        yield
        return
    info = tx.info
    trip = _Trip()
    info[_TRIP] = trip
    try:
        yield
    finally:
        info.pop(_TRIP, None)  # `tx.info` of a connection that was lost raises another error
    _send(tx, trip)


def _send(tx: SetTransaction, trip: _Trip) -> None:
    """Send the waiting statements in their order, and begin a new trip."""
    if not trip:
        return
    statements, parameters, reads = zip(*trip, strict=True)
    trip.clear()
    sql = _combined_sql(statements, tuple(map(bool, reads)))
    answer = tx.exec_driver_sql(sql, tuple(chain.from_iterable(parameters)))
    cursors = [*filter(None, reads)]

    def receive() -> None:
        for found, rows in zip(reads, answer.one(), strict=True):
            if found is not None:
                found.received = rows

    for found in cursors:
        found.receive = receive
    if cursors and isinstance(tx, Tx):  # its answers end with it
        receive()


def next_ids(tx: SetTransaction, table: Table, count: int) -> list[int]:
    """`count` fresh ids for `table`, ascending, so that rows that point at each other can be
    written as sets.
    """
    if tx.dialect.name == "sqlite":
        # A writing transaction is alone on SQLite, so no other one can take these.
        last = tx.exec_driver_sql(f"SELECT coalesce(max(id), 0) FROM {table.name}").one()[0]
        return list(range(last + 1, last + 1 + count))
    reserved = _reserved.setdefault(tx.engine, {}).setdefault(table.name, deque())
    # Never held over a wait: threads write, and so do the lanes of one event loop, which share its
    # thread.
    with _taking:
        if len(reserved) >= count:
            return sorted(reserved.popleft() for _ in range(count))
    sql = f"SELECT json_agg(nextval('{table.name}_id_seq')) FROM generate_series(1, %s::int)"
    fresh: list[int] = tx.exec_driver_sql(sql, (count + ID_BLOCK,)).one()[0]
    with _taking:
        reserved.clear()  # a later row has a higher id than an earlier one of this process
        reserved.extend(fresh[count:])
    return fresh[:count]


def insert_set(tx: SetTransaction, table: Table, rows: Sequence[Row]) -> None:
    """Insert the rows; each has the same keys, which are the columns that are written."""
    if rows:
        columns = tuple(rows[0])
        if _is_bulk(tx, rows):
            _copy(tx, f"COPY {table.name} ({', '.join(columns)}) FROM STDIN", table, rows, columns)
            return
        _write(tx, _insert_sql(tx.dialect.name, table, columns=columns), table, rows, columns)


def insert_missing(tx: SetTransaction, table: Table, rows: Sequence[Row]) -> None:
    """Insert the rows with unique keys that are not stored yet; each row has the same keys."""
    if rows:
        columns = tuple(rows[0])
        sql = _insert_sql(tx.dialect.name, table, columns=columns) + " ON CONFLICT DO NOTHING"
        _write(tx, sql, table, rows, columns)


def update_set(
    tx: SetTransaction, table: Table, rows: Sequence[Row], *, columns: Sequence[str] | None = None
) -> None:
    """Update the columns by `id`; without `columns` every other one that the rows carry (each row
    the same ones).
    """
    if rows:
        columns = (*(name for name in columns or rows[0] if name != "id"), "id")
        if _is_bulk(tx, rows):
            _copy_and_update(tx, table, rows, columns)
            return
        _write(tx, _update_sql(tx.dialect.name, table, columns=columns), table, rows, columns)


def update_changed(
    tx: SetTransaction,
    table: Table,
    rows: Sequence[Row],
    *,
    changed: Collection[str],
    seldom: Collection[str],
) -> None:
    """Update by `id` the columns that any of the rows has `changed`, and few others: SQLite renews
    the indexes of every named column, and PostgreSQL reads them all.

    A large set names its changed columns only. A small one also names those that earlier small sets
    of the engine have changed, without the `seldom` ones, so there are at most as many prepared
    statements as columns (docs/decisions/0013).
    """
    if not rows:
        return
    columns = set(changed)
    if len(rows) < MANY_UPDATES:
        earlier = _updated.setdefault(tx.engine, {}).setdefault(table.name, set())
        earlier.update(columns.difference(seldom))
        columns |= earlier
    update_set(tx, table, rows, columns=sorted(columns))


def delete_set(tx: Tx, table: Table, rows: Sequence[Row]) -> int:
    """Delete the rows of the table that hold the values of any of `rows`, of which each has the
    same columns; how many.
    """
    if not rows:
        return 0
    columns = tuple(rows[0])
    is_sqlite = tx.dialect.name == "sqlite"
    given = (
        [tuple(row[name] for name in columns) for row in rows] if is_sqlite else (as_json(rows),)
    )
    return tx.exec_driver_sql(_delete_sql(tx.dialect.name, table, columns=columns), given).rowcount


def find_set(
    tx: SetTransaction,
    table: Table,
    column: str,
    values: Collection[Any],
    *,
    columns: Sequence[str],
) -> Found:
    sql = find_sql(tx.dialect.name, table, column=column, columns=tuple(columns))
    return read_set(tx, sql, parameters=(as_json(list(values)),), columns=columns)


def find_pairs(
    tx: Tx, table: Table, column: str, values: Collection[Any], *, pair: tuple[str, str]
) -> dict[Any, Any]:
    """Two columns of the rows whose `column` holds one of the values: the second one by the first.
    At once, in a round trip of its own, without a dict for each row.
    """
    sql = find_sql(tx.dialect.name, table, column=column, columns=pair)
    return dict(tx.exec_driver_sql(sql, (as_json(list(values)),)).all())


def lock_set(
    tx: SetTransaction,
    table: Table,
    keys: Mapping[str, Collection[str | int]],
    *,
    columns: Sequence[str],
    within: Mapping[str, int],
    lock: bool = True,
) -> Found:
    """The rows where any column of `keys` holds one of its values and every column of `within` its
    one value, in id order, locked until the transaction ends (unless only read).
    """
    names = {"columns": tuple(columns), "keys": tuple(keys), "within": tuple(within)}
    sql = _lock_sql(tx.dialect.name, table, **names, lock=lock)
    parameters = [
        given for values in keys.values() for given in (as_json(list(values)), *within.values())
    ]
    return read_set(tx, sql, parameters=tuple(parameters), columns=columns)


def read_set(
    tx: SetTransaction, sql: str, *, parameters: tuple[Any, ...], columns: Sequence[str]
) -> Found:
    """The rows that the statement answers, by these columns in their order."""
    found = Found()
    trip = tx.info.get(_TRIP)
    if trip is None:
        rows = tx.exec_driver_sql(sql, parameters)
        found.received = [dict(zip(columns, row, strict=True)) for row in rows]
    else:
        trip.append((sql, parameters, found))
    return found


def _write(
    tx: SetTransaction, sql: str, table: Table, rows: Sequence[Row], columns: tuple[str, ...]
) -> None:
    if tx.dialect.name == "sqlite":
        tx.exec_driver_sql(sql, [*values_of_rows(table, columns, rows)])
        return
    if len(columns) < len(rows[0]):  # PostgreSQL would read what it does not write
        rows = [{name: row[name] for name in columns} for row in rows]
    trip = tx.info.get(_TRIP)
    if trip is not None:
        trip.append((sql, (as_json(rows),), None))
    else:
        tx.exec_driver_sql(sql, (as_json(rows),))


def _is_bulk(tx: SetTransaction, rows: Sequence[Row]) -> bool:
    """True if COPY, with round trips of its own, is faster for the set. Then waiting statements are
    sent first.
    """
    if len(rows) < FEWEST_ROWS or COPY_CONNECTION not in tx.info:
        return False
    trip = tx.info.get(_TRIP)
    if trip is not None:
        _send(tx, trip)
    return True


def values_of_rows(
    table: Table, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    """Each row's values in the order of the columns (two or more), as drivers take them: JSON as
    text.
    """
    # Each row of a file comes here: itemgetter reads a row's columns in one call.
    values_of = itemgetter(*columns)
    json_places = [
        place for place, name in enumerate(columns) if isinstance(table.c[name].type, JSON)
    ]
    for row in rows:
        values = values_of(row)
        for place in json_places:
            if (value := values[place]) is not None:
                values = (*values[:place], orjson.dumps(value).decode(), *values[place + 1 :])
        yield values


def _copy_and_update(
    tx: SetTransaction, table: Table, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Update the other columns by `id`: the rows go into a temporary table, and from there in one
    statement.
    """
    staging = f"staging_{table.name}"
    names = ", ".join(columns)
    tx.exec_driver_sql(
        f"CREATE TEMP TABLE {staging} ON COMMIT DROP AS SELECT {names} FROM {table.name} WITH NO DATA"
    )
    _copy(tx, f"COPY {staging} ({names}) FROM STDIN", table, rows, columns)
    changes = ", ".join(f"{name} = s.{name}" for name in columns if name != "id")
    tx.exec_driver_sql(
        f"UPDATE {table.name} t SET {changes} FROM {staging} s WHERE {by_key('t.id', 's.id')}"
    )
    tx.exec_driver_sql(f"DROP TABLE {staging}")


def _copy(
    tx: SetTransaction,
    sql: str,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
) -> None:
    driver: psycopg.Connection[Any] = tx.info[COPY_CONNECTION]
    try:
        with driver.cursor() as cursor, cursor.copy(sql) as copy:
            write = copy.write_row
            for values in values_of_rows(table, columns, rows):
                write(values)
    except psycopg.Error as error:
        # As SQLAlchemy would raise it: `db.engine` decides by it, and it holds no value.
        raise DBAPIError.instance(
            "COPY", None, error, psycopg.Error, hide_parameters=True, dialect=tx.dialect
        ) from None


@lru_cache(maxsize=256)
def _combined_sql(statements: tuple[str, ...], are_reads: tuple[bool, ...]) -> str:
    """One statement that executes them all and answers one row: for each read its rows as JSON, for
    each write null.
    """
    parts = ", ".join(
        f"s{n} AS ({statement}{'' if is_read else ' RETURNING 1'})"
        for n, (statement, is_read) in enumerate(zip(statements, are_reads, strict=True))
    )
    answers = ", ".join(
        f"(SELECT coalesce(json_agg(s{n}), '[]') FROM s{n})" if is_read else "NULL"
        for n, is_read in enumerate(are_reads)
    )
    return f"WITH {parts} SELECT {answers}"


def _among(dialect: str, table: Table, column: str) -> str:
    if dialect == "sqlite":
        return f"{column} IN (SELECT value FROM json_each(?))"
    element = "value" if table.c[column].type.python_type is str else "value::bigint"
    return f"{column} = ANY(ARRAY(SELECT {element} FROM json_array_elements_text(%s::json)))"


def by_key(column: str, value: str) -> str:
    """A condition that joins rows to a stored table by an indexed column: PostgreSQL can only look
    each row up.

    A plain `=` can also be a hash or a merge join, for which the whole index is read, and
    misleading statistics are enough to prefer that (docs/decisions/0067).
    """
    return f"{column} = ANY(ARRAY[{value}])"


class SameKey(FunctionElement[Any]):
    """`SameKey(column, value)`: the condition of `by_key` for a query of SQLAlchemy, on both
    databases.
    """

    type = (
        NULLTYPE  # of a boolean SQLAlchemy would ask SQLite whether it `= 1`, which uses no index
    )
    inherit_cache = True


@compiles(SameKey)
def _compile(element: SameKey, compiler: Any, **options: Any) -> str:
    column, value = (compiler.process(clause, **options) for clause in element.clauses)
    # SQLite's `+` keeps it from looking `value` up by `column`.
    return f"{column} = +{value}" if compiler.dialect.name == "sqlite" else by_key(column, value)


@lru_cache(maxsize=64)
def _insert_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    if dialect == "sqlite":
        return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_recordset(table, columns)}"


@lru_cache(maxsize=64)
def _update_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        changes = ", ".join(f"{name} = ?" for name in columns[:-1])
        return f"UPDATE {table.name} SET {changes} WHERE id = ?"
    changes = ", ".join(f"{name} = r.{name}" for name in columns[:-1])
    return (
        f"UPDATE {table.name} t SET {changes} FROM {_recordset(table, columns)} "
        f"WHERE {by_key('t.id', 'r.id')}"
    )


@lru_cache(maxsize=64)
def _delete_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"
    same = " AND ".join(by_key(f"t.{name}", f"r.{name}") for name in columns)
    return f"DELETE FROM {table.name} t USING {_recordset(table, columns)} WHERE {same}"


@lru_cache(maxsize=64)
def find_sql(dialect: str, table: Table, *, column: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE {_among(dialect, table, column)}"


@lru_cache(maxsize=64)
def _lock_sql(
    dialect: str,
    table: Table,
    *,
    columns: tuple[str, ...],
    keys: tuple[str, ...],
    within: tuple[str, ...],
    lock: bool,
) -> str:
    sqlite = dialect == "sqlite"
    mark = "?" if sqlite else "%s"
    # The `+ 0` keeps the bound out of the index: without statistics a planner takes "scope = 0" for
    # rare and reads the whole index by it. One SELECT per key, because an OR over three indexes is
    # as easily misjudged.
    bounds = "".join(f" AND {name} + 0 = {mark}" for name in within)
    found = " UNION ALL ".join(
        f"SELECT id FROM {table.name} WHERE {_among(dialect, table, key)}{bounds}" for key in keys
    )
    ids = f"IN ({found})" if sqlite else f"= ANY(ARRAY({found}))"
    ending = " FOR NO KEY UPDATE" if lock and not sqlite else ""
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE id {ids} ORDER BY id{ending}"


def _recordset(table: Table, columns: tuple[str, ...]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = ", ".join(f"{name} {table.c[name].type.compile(dialect)}" for name in columns)
    return f"json_to_recordset(%s::json) AS r({types})"


def count_by_key(tx: Tx, rows: str, keys: Collection[int], *, most: int) -> dict[int, int]:
    """How many rows each key has, `most` at most: no more are read. `rows` is a FROM and WHERE of our
    own, in which `:key` is the key; an index has to find them.
    """
    if tx.dialect.name == "sqlite":
        one = rows.replace(":key", "w.value")
        source = "json_each(?) AS w"
        key = "w.value"
    else:
        one = rows.replace(":key", "w.value::bigint")
        source = "json_array_elements_text(%s::json) AS w"
        key = "w.value::bigint"
    counted = f"SELECT count(*) FROM (SELECT 1 {one} LIMIT {most}) AS counted"
    sql = f"SELECT {key}, ({counted}) FROM {source}"
    found = tx.exec_driver_sql(sql, (as_json(sorted(keys)),))
    return {int(each): int(count) for each, count in found}
