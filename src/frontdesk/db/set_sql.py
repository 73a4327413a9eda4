"""The text of the statements over whole sets, built once from the Table objects, never from values."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NULLTYPE

UNLESS_THERE = " ON CONFLICT DO NOTHING"  # after an insert_sql


@lru_cache(maxsize=256)
def combined_sql(statements: tuple[str, ...], are_reads: tuple[bool, ...]) -> str:
    """One statement that executes them all and answers one row: for each read its rows as JSON, for each write null."""
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
    """A condition that joins rows to a stored table by an indexed column: PostgreSQL can only look each row up.

    A plain `=` can also be a hash or a merge join, for which the whole index is read, and misleading statistics are enough to
    prefer that (docs/decisions/0067).
    """
    return f"{column} = ANY(ARRAY[{value}])"


class SameKey(FunctionElement[Any]):
    """`SameKey(column, value)`: the condition of `by_key` for a query of SQLAlchemy, on both databases."""

    type = NULLTYPE  # of a boolean SQLAlchemy would ask SQLite whether it `= 1`, which uses no index
    inherit_cache = True


@compiles(SameKey)
def _compile(element: SameKey, compiler: Any, **options: Any) -> str:
    column, value = (compiler.process(clause, **options) for clause in element.clauses)
    # SQLite's `+` keeps it from looking `value` up by `column`.
    return f"{column} = +{value}" if compiler.dialect.name == "sqlite" else by_key(column, value)


@lru_cache(maxsize=64)
def insert_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    if dialect == "sqlite":
        return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_recordset(table, columns)}"


@lru_cache(maxsize=64)
def update_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        changes = ", ".join(f"{name} = ?" for name in columns[:-1])
        return f"UPDATE {table.name} SET {changes} WHERE id = ?"
    changes = ", ".join(f"{name} = r.{name}" for name in columns[:-1])
    return f"UPDATE {table.name} t SET {changes} FROM {_recordset(table, columns)} WHERE {by_key('t.id', 'r.id')}"


@lru_cache(maxsize=64)
def delete_sql(dialect: str, table: Table, *, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in columns)}"
    same = " AND ".join(by_key(f"t.{name}", f"r.{name}") for name in columns)
    return f"DELETE FROM {table.name} t USING {_recordset(table, columns)} WHERE {same}"


@lru_cache(maxsize=64)
def find_sql(dialect: str, table: Table, *, column: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE {_among(dialect, table, column)}"


@lru_cache(maxsize=64)
def lock_sql(
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
    # The `+ 0` keeps the bound out of the index: without statistics a planner takes "scope = 0" for rare and reads the
    # whole index by it. One SELECT per key, because an OR over three indexes is as easily misjudged.
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
