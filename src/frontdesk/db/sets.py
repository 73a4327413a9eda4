"""Statements over a whole set of rows in one round trip; two dialects inside, built from the Table objects.

PostgreSQL takes the set as ONE JSON parameter; SQLite takes it through the driver's `executemany`. Both were measured
(docs/decisions/0013): row by row through the toolkit costs 4 times as much.
A row is a dict of stored values: text, numbers, `YYYY-MM-DD`, `clock.stored_time` text; dicts for JSON columns.
"""

import json
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import JSON, Engine, Table
from sqlalchemy.dialects import postgresql

from frontdesk.db.engine import Tx

Row = Mapping[str, Any]

# PostgreSQL's ids are set aside in blocks; what a process does not use is a gap and nothing else.
ID_BLOCK = 1000
_reserved: WeakKeyDictionary[Engine, dict[str, deque[int]]] = WeakKeyDictionary()
_lock = Lock()

_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def next_ids(tx: Tx, table: Table, count: int) -> list[int]:
    """`count` fresh ids for `table`, ascending, so that rows that point at each other can be written as sets."""
    if tx.dialect.name == "sqlite":
        # A writing transaction is alone on SQLite, so nobody else can take these.
        last = tx.exec_driver_sql(f"SELECT coalesce(max(id), 0) FROM {table.name}").scalar_one()
        return list(range(last + 1, last + 1 + count))
    with _lock:
        reserved = _reserved.setdefault(tx.engine, {}).setdefault(table.name, deque())
        if len(reserved) < count:
            sql = f"SELECT nextval('{table.name}_id_seq') FROM generate_series(1, %s::int)"
            reserved.extend(row[0] for row in tx.exec_driver_sql(sql, (count + ID_BLOCK,)))
        return [reserved.popleft() for _ in range(count)]


def insert_set(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    """Insert the rows; each has the same keys, which are the columns that are written."""
    if rows:
        _write(tx, _insert_sql(tx.dialect.name, table, tuple(rows[0])), table, rows)


def update_set(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    """Update, by `id`, every other column that the rows carry (each row the same ones)."""
    if rows:
        columns = (*(name for name in rows[0] if name != "id"), "id")
        _write(tx, _update_sql(tx.dialect.name, table, columns), table, rows, columns)


def select_by_keys(
    tx: Tx,
    table: Table,
    keys: Mapping[str, Collection[str]],
    *,
    columns: Sequence[str],
    within: Mapping[str, int],
) -> list[Any]:
    """The rows where any column of `keys` holds one of its values and every column of `within` its one value, as tuples of
    `columns` in id order, locked until the transaction ends."""
    asked = {name: values for name, values in keys.items() if values}
    if not asked:
        return []
    sql = _select_sql(tx.dialect.name, table, tuple(columns), tuple(asked), tuple(within))
    parameters: list[Any] = []
    for values in asked.values():
        parameters += [_array(tx, values), *within.values()]
    return list(tx.exec_driver_sql(sql, tuple(parameters)))


def present_among(tx: Tx, table: Table, column: str, values: Collection[str]) -> set[str]:
    """Those of the values that some row of the table holds in the column."""
    sql = f"SELECT {column} FROM {table.name} WHERE {column} {_among(tx.dialect.name)}"
    return {row[0] for row in tx.exec_driver_sql(sql, (_array(tx, values),))}


def _array(tx: Tx, values: Collection[str]) -> Any:
    return _dump(list(values)) if tx.dialect.name == "sqlite" else list(values)


def _among(dialect: str) -> str:
    return "IN (SELECT value FROM json_each(?))" if dialect == "sqlite" else "= ANY(%s::text[])"


def _write(tx: Tx, sql: str, table: Table, rows: Sequence[Row], columns: tuple[str, ...] | None = None) -> None:
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql(sql, (_dump(rows),))
        return
    columns = columns or tuple(rows[0])
    as_json = {name for name in columns if isinstance(table.c[name].type, JSON)}
    tx.exec_driver_sql(
        sql,
        [
            tuple(
                _dump(row[name]) if name in as_json and row[name] is not None else row[name] for name in columns
            )
            for row in rows
        ],
    )


@lru_cache(maxsize=64)
def _insert_sql(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    if dialect == "sqlite":
        return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_recordset(table, columns)}"


@lru_cache(maxsize=64)
def _update_sql(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        changes = ", ".join(f"{name} = ?" for name in columns[:-1])
        return f"UPDATE {table.name} SET {changes} WHERE id = ?"
    changes = ", ".join(f"{name} = r.{name}" for name in columns[:-1])
    return f"UPDATE {table.name} t SET {changes} FROM {_recordset(table, columns)} WHERE t.id = r.id"


@lru_cache(maxsize=64)
def _select_sql(
    dialect: str, table: Table, columns: tuple[str, ...], keys: tuple[str, ...], within: tuple[str, ...]
) -> str:
    sqlite = dialect == "sqlite"
    mark = "?" if sqlite else "%s"
    # The `+ 0` keeps the bound out of the index: without statistics a planner takes "scope = 0" for rare and reads the
    # whole index by it. One SELECT per key, because an OR over three indexes is as easily misjudged.
    bounds = "".join(f" AND {name} + 0 = {mark}" for name in within)
    found = " UNION ALL ".join(f"SELECT id FROM {table.name} WHERE {key} {_among(dialect)}{bounds}" for key in keys)
    ids = f"IN ({found})" if sqlite else f"= ANY(ARRAY({found}))"
    lock = "" if sqlite else " FOR NO KEY UPDATE"
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE id {ids} ORDER BY id{lock}"


def _recordset(table: Table, columns: tuple[str, ...]) -> str:
    dialect = postgresql.dialect()
    types = ", ".join(f"{name} {table.c[name].type.compile(dialect)}" for name in columns)
    return f"json_to_recordset(%s::json) AS r({types})"
