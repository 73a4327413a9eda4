"""What a driver's error means, by its SQLSTATE and constraint name. Its text is never passed on: it holds values."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import psycopg
from sqlalchemy import Table
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk.errors import Unavailable

_LOST_RACE_STATES = {"40001", "40P01"}  # serialization failure, deadlock


class DatabaseState(StrEnum):
    """The code of an `Unavailable` that has a remedy of its own (`db.checks`)."""

    BUSY = "database_busy"
    READ_ONLY = "database_read_only"
    FULL = "database_full"
    DAMAGED = "database_damaged"
    MISSING = "database_missing"
    SETTINGS = "database_settings"
    RIGHTS = "database_rights"


_DETAILS = {
    DatabaseState.BUSY: "The database is busy.",
    DatabaseState.READ_ONLY: "The database is read-only.",
    DatabaseState.FULL: "The database's disk is full.",
    DatabaseState.DAMAGED: "The database's file is damaged or not a database.",
    DatabaseState.MISSING: "There is no database here.",
    DatabaseState.RIGHTS: "The role of FRONTDESK_DATABASE_URL lacks a right to this. Only the owner of the tables migrates.",
}
_BY_SQLSTATE = {
    "55P03": DatabaseState.BUSY,  # lock_timeout
    "57014": DatabaseState.BUSY,  # statement_timeout
    "25006": DatabaseState.READ_ONLY,  # a standby, or set so by its operator; the driver calls it no OperationalError
    "53100": DatabaseState.FULL,
    "42501": DatabaseState.RIGHTS,
}
_BY_SQLITE_CODE = {
    5: DatabaseState.BUSY,
    6: DatabaseState.BUSY,
    8: DatabaseState.READ_ONLY,
    13: DatabaseState.FULL,
    11: DatabaseState.DAMAGED,
    26: DatabaseState.DAMAGED,
}
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (.+)")


class NoAnswer(psycopg.OperationalError):
    """The server has said nothing for longer than any statement may take, so the connection was closed."""


class StateChanged(Exception):
    """Another transaction has changed what this one was decided on; the writer found it by itself."""


def lost_race(error: Exception) -> bool:
    """Whether another transaction came first (unique violation, deadlock): running again may succeed."""
    return isinstance(error, StateChanged) or (
        isinstance(error, DBAPIError)
        and (unique_columns(error) is not None or _state(error) in _LOST_RACE_STATES)
    )


def is_deadlock(error: DBAPIError) -> bool:
    """Whether the whole transaction is gone (deadlock, serialization failure, lost connection), so that no savepoint helps."""
    return error.connection_invalidated or _state(error) in _LOST_RACE_STATES


def unique_columns(error: DBAPIError) -> str | None:
    """The violated unique constraint: its name on PostgreSQL, `table.column, table.column` on SQLite (which gives no
    name). None for any other error."""
    if not isinstance(error, IntegrityError):
        return None
    diagnosis = getattr(error.orig, "diag", None)
    if diagnosis is not None:
        return str(diagnosis.constraint_name) if _state(error) == "23505" else None
    found = _SQLITE_UNIQUE.fullmatch(str(error.orig))
    return found.group(1) if found else None


@contextmanager
def violation_as(error: Exception, table: Table, *columns: str) -> Iterator[None]:
    """Raise `error` when the block violates the table's unique constraint over these columns."""
    try:
        yield
    except IntegrityError as violation:
        wanted = {
            f"uq_{table.name}_{'_'.join(columns)}",
            ", ".join(f"{table.name}.{name}" for name in columns),
        }
        if unique_columns(violation) in wanted:
            raise error from None
        raise


def unavailable(state: DatabaseState, *, busy: bool = False) -> Unavailable:
    return Unavailable(_DETAILS[state], code=state, busy=busy)


def as_unavailable(error: DBAPIError | PoolTimeout) -> Unavailable | None:
    """`Unavailable` when the database's state is the cause: away, locked, full, read-only. None when the statement is.

    None for a lost race too, though the driver counts deadlocks as such a state: `db.races` runs it again.
    """
    if isinstance(error, PoolTimeout):
        return Unavailable("All database connections are in use.")
    if isinstance(error.orig, NoAnswer):  # the next connection would only be as silent
        return Unavailable("The database does not answer.")
    if error.connection_invalidated:
        return Unavailable("The connection to the database was lost.", stale_connection=True)
    state = _state(error)
    if state in _LOST_RACE_STATES:
        return None
    sqlite_code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind
    known = _BY_SQLSTATE.get(state or "") or _BY_SQLITE_CODE.get(sqlite_code)
    if known is None and type(error) is DatabaseError:
        known = DatabaseState.DAMAGED  # SQLite: the driver has no class of its own for it
    if known is not None:
        return unavailable(known, busy=state is not None and known is DatabaseState.BUSY)
    away = (state or "").startswith(("08", "53", "57", "58"))
    if away or isinstance(error, OperationalError):
        return Unavailable("The database can't be reached, or can't write now.")
    return None


def as_unknown_outcome(error: DBAPIError) -> Unavailable | None:
    """`Unavailable` for a COMMIT whose answer was lost: the change may or may not be stored."""
    if not error.connection_invalidated:
        return None
    return Unavailable(
        "The connection was lost while the change was being stored. Send it again: nothing is stored twice.",
        outcome_unknown=True,
    )


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)
