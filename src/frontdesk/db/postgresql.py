"""PostgreSQL: its engine, the options of every connection, and the end of a connection whose server
hangs.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg.abc import PQGen
from psycopg.types.string import TextLoader
from sqlalchemy import URL, Engine, ExceptionContext, create_engine, event

from frontdesk.db.failures import READ_ONLY_STATE, DatabaseState, NoAnswer
from frontdesk.errors import Unavailable

# The key in `info` of the driver's connection, where the transaction can COPY rows into a table.
COPY_CONNECTION = "copy_connection"

Result = TypeVar("Result")

WAIT_SECONDS = 5  # for a lock, a connection, a free place in the pool
STATEMENT_SECONDS = 8  # the server ends a statement that takes longer
HOST_SECONDS = 2  # for a connection to one of several hosts: libpq's shortest
SILENT_SECONDS = 9  # a server that is silent for longer hangs, or is gone

WAIT_FOR_LOCKS = "SELECT set_config('lock_timeout', %s, true)"  # in this transaction

Settings = dict[str, str]

# The settings of every connection; they override those of server, database and role.
_SETTINGS: Settings = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "TimeZone": "UTC",
    # A transaction that waited for a row must then see the new row.
    "default_transaction_isolation": "read committed",
    # Compiling takes longer than any statement of ours, and the costs that `enable_seqscan=off`
    # adds always ask for it.
    "jit": "off",
}
# The statements that serve and load reach their rows by an index, one by one. A plan that was
# prepared while a table was small, or that believes old statistics, would otherwise read the whole
# table when a million members have come.
_INDEX_SCANS: Settings = {"plan_cache_mode": "force_generic_plan"}
_INDEX_SCANS |= dict.fromkeys(
    (*("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "enable_incremental_sort"), "off"
)
# The other way, for the rest of a transaction.
ANY_SCAN = "SELECT " + ", ".join(
    f"set_config('{name}', '{'auto' if name == 'plan_cache_mode' else 'on'}', true)"
    for name in _INDEX_SCANS
)


def create_postgresql_engine(url: URL, *, pool_size: int, index_scans: bool) -> Engine:
    """A new connection raises Unavailable when its settings do not hold."""
    settings = session_settings(index_scans=index_scans)
    engine = create_engine(
        url,
        pool_use_lifo=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=WAIT_SECONDS,
        hide_parameters=True,  # they hold health information
        json_deserializer=orjson.loads,
        connect_args=connection_arguments(settings, url),
    )
    event.listen(engine, "do_connect", partial(_connect, settings))
    event.listen(engine, "connect", _configure)
    event.listen(engine, "handle_error", _drop_read_only)
    return engine


def session_settings(*, lock_seconds: int = WAIT_SECONDS, index_scans: bool = True) -> Settings:
    """The settings of a connection by name, as PostgreSQL shows them."""
    # a pooler could drop all, and the role have the others
    mark = {"frontdesk.connection": token_hex(4)}
    return (
        {"lock_timeout": f"{lock_seconds}s"}
        | _SETTINGS
        | (_INDEX_SCANS if index_scans else {})
        | mark
    )


def connection_arguments(settings: Settings, url: URL) -> dict[str, Any]:
    """What a connection to the PostgreSQL of this address is opened with, beside what the address
    says.

    The system finds a peer that vanished (its machine, the network) after some 25 s, and after 10 s
    when the peer leaves sent data unacknowledged.
    """
    escaped = ((name, value.replace(" ", r"\ ")) for name, value in settings.items())
    return {
        "connect_timeout": HOST_SECONDS if "," in str(url.query.get("host", "")) else WAIT_SECONDS,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "application_name": "frontdesk",
        "options": " ".join(f"-c {name}={value}" for name, value in escaped),
    }


def settings_query(settings: Settings) -> str:
    """One query for the values of the settings, in their order."""
    return "SELECT " + ", ".join(f"current_setting('{name}', true)" for name in settings)


def verify_settings(settings: Settings, found: Sequence[Any] | None) -> None:
    """Raises Unavailable unless the settings of a new connection are in force
    (docs/decisions/0104).
    """
    for (name, expected), value in zip(settings.items(), found or (), strict=True):
        if value != expected:
            raise _unusable(f"{name} is {value}, not {expected}")


@contextmanager
def refusal_named() -> Iterator[None]:
    """Opens a connection. Raises Unavailable for a pooler that refuses `options`, recognised by its
    text, since it sends no code.
    """
    try:
        yield
    except psycopg.OperationalError as error:
        if "startup parameter" in str(error):
            raise _unusable("it refuses the startup parameter options") from None
        raise


def _unusable(reason: str) -> Unavailable:
    return Unavailable(
        f"The connection to the database does not keep the service's settings ({reason}). "
        "A connection pooler such as PgBouncer drops them: connect to PostgreSQL itself.",
        code=DatabaseState.SETTINGS,
    )


def milliseconds(seconds: float) -> str:
    """A time for PostgreSQL's settings, at least 1 ms: 0 would mean for ever."""
    return f"{max(1, round(seconds * 1000))}ms"


class _Connection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for 9 s: no statement takes so long."""

    def wait(
        self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None
    ) -> Result:
        started = time.monotonic()
        try:
            return super().wait(gen, interval, SILENT_SECONDS if timeout is None else timeout)
        except psycopg.OperationalError:
            if timeout is not None or time.monotonic() - started < SILENT_SECONDS:
                raise
            self.pgconn.finish()
            raise NoAnswer from None


def _connect(
    settings: Settings, _dialect: object, _record: object, arguments: Any, options: Any
) -> Any:
    with refusal_named():
        connection = _Connection.connect(*arguments, **options, autocommit=True)
    try:
        verify_settings(settings, connection.execute(settings_query(settings)).fetchone())
    except BaseException:
        connection.close()
        raise
    connection.autocommit = False
    return connection


def _drop_read_only(context: ExceptionContext) -> None:
    """A server that has become read-only was demoted: drop its connections, so that the next go
    where the address leads now.
    """
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY_STATE:
        context.is_disconnect = True


def _configure(connection: psycopg.Connection[Any], record: Any) -> None:
    connection.prepare_threshold = 2  # statements are prepared from their third execution on
    # dates are text everywhere, as on SQLite
    connection.adapters.register_loader("date", TextLoader)
    record.info[COPY_CONNECTION] = connection
