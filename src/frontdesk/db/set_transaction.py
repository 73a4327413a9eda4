"""What set statements (`db.sets`) need from a transaction, and COPY for sets of thousands of rows.

An ordinary `Tx` is a `SetTransaction`, and so is a `PipelineTransaction`. PostgreSQL's server reads COPY's text several times
faster than one JSON parameter, and reads it while the rest is still being written out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

import orjson
import psycopg
from sqlalchemy import JSON, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from frontdesk.db.set_sql import by_key

# The key in `info` of the driver's connection, where the transaction can COPY rows into a table.
COPY_CONNECTION = "copy_connection"
# Smaller sets share a round trip with other statements, which is worth more to them.
FEWEST_ROWS = 300


class SetAnswer(Protocol):
    """The rows that a statement answers."""

    def one(self) -> Sequence[Any]: ...

    def all(self) -> Sequence[Sequence[Any]]: ...

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
    """Let other transactions that lock this name wait until this one ends; SQLite has a single writer anyway."""
    if tx.dialect.name != "sqlite":
        tx.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))


def values_of_rows(
    table: Table, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    """Each row's values in the order of the columns (two or more), as drivers take them: JSON as text."""
    values_of = itemgetter(*columns)  # a comprehension would cost a large file 5 % more processor time
    json_places = [place for place, name in enumerate(columns) if isinstance(table.c[name].type, JSON)]
    for row in rows:
        values = values_of(row)
        for place in json_places:
            if (value := values[place]) is not None:
                values = (*values[:place], orjson.dumps(value).decode(), *values[place + 1 :])
        yield values


def copy_rows(
    tx: SetTransaction, table: Table, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Insert the rows."""
    _copy(tx, f"COPY {table.name} ({', '.join(columns)}) FROM STDIN", table, rows, columns)


def copy_and_update(
    tx: SetTransaction, table: Table, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Update the other columns by `id`: the rows go into a temporary table, and from there in one statement."""
    staging = f"staging_{table.name}"
    names = ", ".join(columns)
    tx.exec_driver_sql(
        f"CREATE TEMP TABLE {staging} ON COMMIT DROP AS SELECT {names} FROM {table.name} WITH NO DATA"
    )
    _copy(tx, f"COPY {staging} ({names}) FROM STDIN", table, rows, columns)
    changes = ", ".join(f"{name} = s.{name}" for name in columns if name != "id")
    tx.exec_driver_sql(f"UPDATE {table.name} t SET {changes} FROM {staging} s WHERE {by_key('t.id', 's.id')}")
    tx.exec_driver_sql(f"DROP TABLE {staging}")


def _copy(
    tx: SetTransaction, sql: str, table: Table, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    driver: psycopg.Connection[Any] = tx.info[COPY_CONNECTION]
    try:
        with driver.cursor() as cursor, cursor.copy(sql) as copy:
            write = copy.write_row
            for values in values_of_rows(table, columns, rows):
                write(values)
    except psycopg.Error as error:
        # As SQLAlchemy would raise it: `db.races` decides by it, and it holds no value.
        raise DBAPIError.instance(
            "COPY", None, error, psycopg.Error, hide_parameters=True, dialect=tx.dialect
        ) from None
