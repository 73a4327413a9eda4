"""The meaning of a driver's error, by its SQLSTATE and constraint name, and whether this process
can't reach the database.

The text of an error is never passed on: it holds values.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
from sqlalchemy import Table
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frontdesk.errors import Unavailable
from frontdesk.text import DescribedEnum

AWAY_EVENT = "database_away"
BACK_EVENT = "database_back"
QUIET_SECONDS = 10.0
# A standby, a demoted primary, or set so by its operator. The driver raises no OperationalError.
READ_ONLY_STATE = "25006"
_SQLITE_ERROR = 1  # the statement's fault, such as a column that is missing
_LOST_RACE_STATES = {"40001", "40P01"}  # serialization failure, deadlock


class DatabaseState(DescribedEnum):
    """The code of an `Unavailable` that has a remedy of its own (`db.checks`), and its detail."""

    # fmt: off
    BUSY = "database_busy", "The database is busy."
    READ_ONLY = "database_read_only", "The database is read-only."
    FULL = "database_full", "The database's disk is full."
    DAMAGED = "database_damaged", "The database's file is damaged or not a database."
    MISSING = "database_missing", "There is no database here."
    SETTINGS = "database_settings"  # its detail names them (`db.postgresql`)
    RIGHTS = "database_rights", (
        "The role of FRONTDESK_DATABASE_URL lacks a right to this. Only the owner of the tables "
        "migrates."
    )
    # Those of AWAY: a connection can't be opened, or its server says nothing.
    LOGIN = "database_login", "The database refuses the user or the password of FRONTDESK_DATABASE_URL."
    NOT_ADMITTED = "database_not_admitted", (
        "The database server's pg_hba.conf admits no such connection from this machine."
    )
    NO_SUCH_DATABASE = "database_unknown", "The server has no database of the name in FRONTDESK_DATABASE_URL."
    HOST = "database_host", "The host of FRONTDESK_DATABASE_URL is unknown."
    NO_SERVER = "database_no_server", "No database server listens at the address of FRONTDESK_DATABASE_URL."
    TLS = "database_tls", (
        "No TLS connection to the database server, as FRONTDESK_DATABASE_URL asks for, "
        "can be made."
    )
    NO_PRIMARY = "database_no_primary", (
        "No database server of FRONTDESK_DATABASE_URL takes writes: each is a standby or away."
    )
    STARTING = "database_starting", "The database server is starting or stopping."
    CROWDED = "database_crowded", "The database server takes no more connections."
    SILENT = "database_silent", "The database does not answer."
    UNREACHABLE = "database_unreachable", "The database can't be reached, or can't write now."
    # fmt: on


_BY_SQLSTATE = {
    "55P03": DatabaseState.BUSY,  # lock_timeout
    "57014": DatabaseState.BUSY,  # statement_timeout
    READ_ONLY_STATE: DatabaseState.READ_ONLY,
    "53100": DatabaseState.FULL,
    "42501": DatabaseState.RIGHTS,
    "28000": DatabaseState.LOGIN,
    "28P01": DatabaseState.LOGIN,
    "3D000": DatabaseState.NO_SUCH_DATABASE,
    "53300": DatabaseState.CROWDED,
    "57P03": DatabaseState.STARTING,
}
# The driver gives no SQLSTATE for a connection that was refused, only libpq's text (psycopg 3.3).
# In another language it stays UNREACHABLE. What a server says comes before what is said of
# addresses without one: a name may have several.
_REFUSALS = (
    (DatabaseState.FULL, ("No space left on device",)),
    (
        DatabaseState.TLS,
        ("does not support SSL", "SSL error", "certificate", "requires encryption", "SSL SYSCALL"),
    ),
    (DatabaseState.NOT_ADMITTED, ("no pg_hba.conf entry", "pg_hba.conf rejects")),
    (
        DatabaseState.LOGIN,
        ("authentication failed", "no password supplied", "is not permitted to log in"),
    ),
    (DatabaseState.NO_SUCH_DATABASE, ("FATAL:  database ",)),
    (DatabaseState.LOGIN, ("FATAL:  role ",)),
    (DatabaseState.STARTING, ("the database system is ",)),
    (
        DatabaseState.CROWDED,
        ("too many clients", "remaining connection slots", "too many connections"),
    ),
    (DatabaseState.NO_PRIMARY, ("session is read-only", "server is in hot standby mode")),
    (
        DatabaseState.SILENT,
        ("timeout expired", "timed out", "No route to host", "Network is unreachable"),
    ),
    (DatabaseState.NO_SERVER, ("Connection refused", "No such file or directory")),
    (DatabaseState.HOST, ("failed to resolve host", "could not translate host name")),
)
AWAY = {DatabaseState.MISSING, DatabaseState.UNREACHABLE, *(state for state, _ in _REFUSALS)}
AWAY -= {DatabaseState.FULL}  # it answers, at least some reads
# What a person need not correct.
PASSING = {
    each
    for each in AWAY
    if not each.endswith(("missing", "tls", "login", "unknown", "not_admitted"))
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
    """The server was silent for longer than any statement may take, so the connection was closed."""


class StateChanged(Exception):
    """Another transaction has changed the state on which this transaction was decided; found by the
    writer, not the driver.
    """


def lost_race(error: Exception) -> bool:
    """True if another transaction was first (unique violation, deadlock): a retry may succeed."""
    if isinstance(error, DBAPIError):
        return unique_columns(error) is not None or _state(error) in _LOST_RACE_STATES
    return isinstance(error, StateChanged)


def is_deadlock(error: DBAPIError) -> bool:
    """True if the whole transaction is lost (deadlock, serialization failure, lost connection), so
    that no savepoint helps.
    """
    return error.connection_invalidated or _state(error) in _LOST_RACE_STATES


def unique_columns(error: DBAPIError) -> str | None:
    """The violated unique constraint: its name on PostgreSQL, `table.column, table.column` on
    SQLite (which gives no name). None for any other error.
    """
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
        constraints = {
            f"uq_{table.name}_{'_'.join(columns)}",
            ", ".join(f"{table.name}.{name}" for name in columns),
        }
        if unique_columns(violation) in constraints:
            raise error from None
        raise


def unavailable(state: DatabaseState, **options: bool) -> Unavailable:
    return Unavailable(state.description, code=state, **options)


def as_unavailable(error: DBAPIError | PoolTimeout) -> Unavailable | None:
    """`Unavailable` when the database's state is the cause: away, locked, full, read-only. None
    when the statement is.

    None for a lost race too, though the driver counts deadlocks as such a state: `db.engine` runs
    it again.
    """
    if isinstance(error, PoolTimeout):
        return Unavailable("All database connections are in use.")
    if isinstance(error.orig, NoAnswer):  # the next connection would only be as silent
        return unavailable(DatabaseState.SILENT)
    state = _state(error)
    # Its connection was dropped, and the next may lead to the new primary.
    if state == READ_ONLY_STATE:
        return unavailable(DatabaseState.READ_ONLY, stale_connection=True)
    if error.connection_invalidated:
        return Unavailable("The connection to the database was lost.", stale_connection=True)
    if state in _LOST_RACE_STATES:
        return None
    sqlite_code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind
    known = _BY_SQLSTATE.get(state or "") or _BY_SQLITE_CODE.get(sqlite_code)
    if known is None and type(error) is DatabaseError:
        known = DatabaseState.DAMAGED  # SQLite: the driver has no class of its own for it
    if known is not None:
        return unavailable(known, busy=state is not None and known is DatabaseState.BUSY)
    away = (state or "").startswith(("08", "53", "57", "58"))
    if away or (isinstance(error, OperationalError) and sqlite_code != _SQLITE_ERROR):
        return unavailable(_refusal(error))
    return None


def _refusal(error: DBAPIError) -> DatabaseState:
    text = str(error.orig)
    is_said = (state for state, phrases in _REFUSALS if any(phrase in text for phrase in phrases))
    return next(is_said, DatabaseState.UNREACHABLE)


def as_unknown_outcome(error: DBAPIError) -> Unavailable | None:
    """`Unavailable` for a COMMIT whose answer was lost: the change may or may not be stored."""
    if not error.connection_invalidated or _state(error) == READ_ONLY_STATE:
        return None
    return Unavailable(
        "The connection was lost while the change was being stored. Send it again: nothing is stored twice.",
        outcome_unknown=True,
    )


def _state(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


class DatabaseOutage:
    """Gets every failure of this process's connections and, during an outage, the first success
    (`ended`).

    `tell(event, **values)` writes a line of the log; a command has no log, so by default nothing is
    written. A dead connection is no outage: it is replaced, and only if that fails too is the
    database away. An outage within 10 s of the last one is not logged: with a server that accepts
    some connections and refuses others, each request would write a line.
    """

    def __init__(self) -> None:
        self.tell: Callable[..., Any] = lambda *_, **__: None
        self.began_at: float | None = None  # None while the database answers
        self._quiet_until = float("-inf")
        self._changing = threading.Lock()

    def failed(self, error: Unavailable) -> None:
        if error.code not in AWAY:
            return
        with self._changing:
            now = monotonic()
            if self.began_at is not None or now < self._quiet_until:
                return
            self.began_at = now
            self._quiet_until = now + QUIET_SECONDS
        self.tell(AWAY_EVENT, pid=os.getpid(), cause=error.code, detail=error.detail)

    def ended(self) -> None:
        with self._changing:
            began_at = self.began_at
            self.began_at = None
        if began_at is not None:
            self.tell(BACK_EVENT, pid=os.getpid(), seconds=round(monotonic() - began_at, 1))
