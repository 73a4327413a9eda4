"""The plan of every statement that runs on a connection, as the connection itself would execute it,
with the rows that it reads.

Statements are recorded where they are sent, so that one that is written tomorrow is looked at too.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from sqlalchemy import event

from frontdesk.db import Database
from frontdesk.db.pipeline import PipelineAnswer, _PipelineConnection
from frontdesk.db.schema import metadata
from frontdesk.db.sqlite import DriverTransaction

# What one of ours begins with; others (SAVEPOINT, COPY, SET, DROP) have no plan.
_PLANNED = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_PLACEHOLDER = re.compile(r"%\((\w+)\)s|%s|%%")

_TABLE = re.compile(rf"\b({'|'.join(metadata.tables)})\b(?: AS (\w+))?")


@dataclass(frozen=True, slots=True)
class Scan:
    """A part of a plan that reads a table. `rows` counts those that it looked at, also the ones
    that a filter then dropped.

    `key`: the condition by which it looks for rows in the index; empty if it reads the table, or
    all of an index. `filter`: what it drops rows by that it has read.
    """

    table: str
    rows: int
    key: str
    filter: str
    text: str


@dataclass(slots=True)
class Explained:
    """A statement's plan: its scans, the kinds of its other parts, and whether it would be
    compiled.
    """

    statement: str
    scans: list[Scan] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    is_compiled: bool = False


class Recorder:
    """Explains what is sent while `recording` lasts: on SQLAlchemy's connections just before it
    runs, what goes through the pipeline afterwards, because its connections are in the hands of the
    event loop.

    What is sent again and again is explained at its first, second, fourth, eighth, … time.
    """

    def __init__(self, db: Database) -> None:
        self.explained: list[Explained] = []
        self._db = db
        self._sent: list[tuple[str, Sequence[Any]]] = []
        self._times: Counter[str] = Counter()

    @contextmanager
    def recording(self, patch: pytest.MonkeyPatch, *databases: Database) -> Iterator[None]:
        for db in databases:
            event.listen(db.engine, "before_cursor_execute", self._before)
        execute = _PipelineConnection.execute
        run = DriverTransaction.exec_driver_sql

        async def recorded(
            connection: _PipelineConnection, statements: Sequence[PipelineAnswer]
        ) -> None:
            self._sent += [
                (one.sql, one.parameters) for one in statements if self._is_wanted(one.sql)
            ]
            await execute(connection, statements)

        def recorded_set(tx: DriverTransaction, statement: str, parameters: Any = (), /) -> Any:
            self._before(
                tx, tx._driver.cursor(), statement, parameters, None, type(parameters) is list
            )
            return run(tx, statement, parameters)

        with patch.context() as patched:
            patched.setattr(_PipelineConnection, "execute", recorded)
            patched.setattr(DriverTransaction, "exec_driver_sql", recorded_set)
            yield
        for db in databases:
            event.remove(db.engine, "before_cursor_execute", self._before)
        with self._db.engine.connect() as connection:
            driver = connection.connection.driver_connection
            self.explained += [_explain_postgresql(driver, *sent) for sent in self._sent]
            self._sent.clear()
            connection.rollback()

    def _before(
        self,
        _connection: Any,
        cursor: Any,
        statement: str,
        parameters: Any,
        _context: Any,
        many: bool,
    ) -> None:
        if not self._is_wanted(statement):
            return
        first = parameters[0] if many else parameters
        if isinstance(cursor, psycopg.Cursor):
            self.explained.append(_explain_postgresql(cursor.connection, statement, first))
        else:
            self.explained.append(_explain_sqlite(cursor, statement, first))

    def _is_wanted(self, statement: str) -> bool:
        if not _PLANNED.match(statement):
            return False
        self._times[statement] += 1
        return self._times[statement].bit_count() == 1


def _explain_postgresql(connection: Any, statement: str, parameters: Any) -> Explained:
    """By a prepared statement, whose plan is the generic one. What it does is undone."""
    cursor = psycopg.ClientCursor(connection)
    text, values = _numbered(statement, parameters)
    cursor.execute("SAVEPOINT explained")
    found = Explained(statement)
    try:
        cursor.execute(f"PREPARE explained AS {text}".replace("%", "%%"), ())
        marks = f"({', '.join(['%s'] * len(values))})" if values else ""
        cursor.execute(
            f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE explained{marks}", values
        )
        [[[plan]]] = cursor.fetchall()
        found.is_compiled = "JIT" in plan
        _walk(plan["Plan"], found)
    except psycopg.errors.IntegrityError:  # one of the races that the caller handles
        pass
    finally:
        # Behind the driver's back: after its own ROLLBACK it would forget what it has prepared.
        connection.pgconn.exec_(b"ROLLBACK TO SAVEPOINT explained; DEALLOCATE explained")
    return found


def _numbered(statement: str, parameters: Any) -> tuple[str, list[Any]]:
    """The statement with `$1`, `$2`, … and its values in that order."""
    values: list[Any] = []
    given = iter(parameters if not isinstance(parameters, dict) else ())

    def number(match: re.Match[str]) -> str:
        if match.group() == "%%":
            return "%"
        values.append(parameters[match.group(1)] if match.group(1) else next(given))
        return f"${len(values)}"

    return _PLACEHOLDER.sub(number, statement), values


def _walk(node: dict[str, Any], found: Explained) -> None:
    kind = node["Node Type"]
    children = node.get("Plans", ())
    found.kinds.add(kind)
    if "Relation Name" in node and kind != "ModifyTable":
        reading = next(
            (child for child in children if child["Node Type"] == "Bitmap Index Scan"), node
        )
        dropped = node.get("Rows Removed by Filter", 0) + node.get(
            "Rows Removed by Index Recheck", 0
        )
        rows = round((node["Actual Rows"] + dropped) * node["Actual Loops"])
        table = node["Relation Name"]
        key = reading.get("Index Cond", "")
        dropping = node.get("Filter", "")
        text = (
            f"{kind} {reading.get('Index Name')} of {table}: {key}, filter {dropping}, {rows} rows"
        )
        found.scans.append(Scan(table, rows, key, dropping, text))
    for child in children:
        _walk(child, found)


def _explain_sqlite(cursor: Any, statement: str, parameters: Any) -> Explained:
    """Without rows: SQLite tells only how it looks for them. A plan names a table by its alias."""
    found = Explained(statement)
    tables = {alias: name for name, alias in _TABLE.findall(statement)} | {
        name: name for name in metadata.tables
    }
    for *_, detail in cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters):
        what, _, rest = detail.partition(" ")
        table = tables.get(rest.partition(" ")[0])
        if what in ("SCAN", "SEARCH") and table is not None:
            found.scans.append(Scan(table, 0, detail if what == "SEARCH" else "", "", detail))
    return found
