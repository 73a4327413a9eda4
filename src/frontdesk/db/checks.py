"""What is wrong with a database for this version and these settings, and the remedy of each problem."""

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db.deployment import CheckFailure, deployment_failures
from frontdesk.db.engine import Database, Tx
from frontdesk.db.failures import DatabaseState
from frontdesk.db.service_role import role_failures
from frontdesk.db.write_probe import write_a_little
from frontdesk.errors import Unavailable

OLDEST_POSTGRESQL = 14
SKEW_SECONDS = 5

# The revision that this program needs: the newest migration's. Alembic would know it too, and takes 0.3 s to import.
HEAD = max(file.name[1:5] for file in Path(__file__).parent.glob("migrations/versions/v*.py"))

_REMEDIES: dict[str, str] = {
    DatabaseState.BUSY: "Another program holds a lock on it (a migration, a backup?). Wait until it ends, then try again.",
    DatabaseState.READ_ONLY: "Give this user the right to write to it and its folder, or name the database that is no standby.",
    DatabaseState.FULL: "Make room on its disk.",
    DatabaseState.DAMAGED: "Bring a backup back, or correct FRONTDESK_DATABASE_URL.",
    DatabaseState.SETTINGS: "Name PostgreSQL itself in FRONTDESK_DATABASE_URL (docs/operations.md, Connection poolers).",
    DatabaseState.RIGHTS: "As the owner run: frontdesk migrate --service-role NAME (docs/security.md, Two roles of PostgreSQL).",
    DatabaseState.MISSING: "Run: frontdesk migrate (or correct FRONTDESK_DATABASE_URL).",
    DatabaseState.LOGIN: "Correct user and password in FRONTDESK_DATABASE_URL, or give the role on the server this password.",
    DatabaseState.NOT_ADMITTED: "Add a line for this machine, user and database to the server's pg_hba.conf and reload it.",
    DatabaseState.NO_SUCH_DATABASE: "Correct the name in FRONTDESK_DATABASE_URL, or make the database with: createdb.",
    DatabaseState.HOST: "Correct the host in FRONTDESK_DATABASE_URL, or this machine's name service.",
    DatabaseState.NO_SERVER: "Start the server, or correct host and port in FRONTDESK_DATABASE_URL.",
    DatabaseState.TLS: "Correct sslmode and sslrootcert in FRONTDESK_DATABASE_URL, or the server's certificate.",
    DatabaseState.STARTING: "Wait until it has started; its own log says what it waits for.",
    DatabaseState.CROWDED: "Raise max_connections on the server, or run fewer processes (docs/scaling.md).",
    DatabaseState.SILENT: "Look at the server and at the network and firewalls on the way.",
}


def revision_of(db: Database) -> str | None:
    """The revision that the database's schema is at; None for an empty one."""

    def read(tx: Tx) -> str | None:
        if not inspect(tx).has_table("alembic_version"):
            return None
        return tx.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    return db.ask(read)


def problems(db: Database, config: Config) -> list[CheckFailure]:
    """Every problem with the database, its place and these settings; empty when all is well."""
    found = list(deployment_failures(config))
    try:
        return found + list(_problems(db, config))
    except (Unavailable, DBAPIError) as error:
        return [*found, _problem(error, "Start the database, or correct FRONTDESK_DATABASE_URL.")]


def _problems(db: Database, config: Config) -> Iterator[CheckFailure]:
    revision = revision_of(db)
    if not db.is_sqlite:
        yield from _server_problems(db)
    if revision == HEAD:
        yield from _setting_problems(db, config)
        yield from role_failures(db, config)
        yield from _write_problems(db)
        return
    yield other_schema(revision)


def other_schema(revision: str | None) -> CheckFailure:
    """What is wrong with a schema at another revision than HEAD."""
    if revision is None:
        return CheckFailure("The database has no tables yet.", "Run: frontdesk migrate")
    what = f"The database is at revision {revision}, this program needs {HEAD}."
    if revision < HEAD:
        return CheckFailure(what, "Run: frontdesk migrate")
    return CheckFailure(
        what, "A newer frontdesk has migrated the database: use that version, or a newer one."
    )


def _server_problems(db: Database) -> Iterator[CheckFailure]:
    sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), clock_timestamp()"
    version, encoding, now = db.ask(lambda tx: tx.exec_driver_sql(sql).one())
    if version // 10_000 < OLDEST_POSTGRESQL:
        what = f"PostgreSQL {version // 10_000} is too old."
        yield CheckFailure(what, f"Use PostgreSQL {OLDEST_POSTGRESQL} or newer.")
    if encoding != "UTF8":
        yield CheckFailure(f"The database's encoding is {encoding}.", "Create it with ENCODING 'UTF8'.")
    if abs((now - system_clock()).total_seconds()) > SKEW_SECONDS:
        what = f"The database server's clock and this machine's differ by more than {SKEW_SECONDS} s."
        yield CheckFailure(what, "Let both follow a time server.")


def _setting_problems(db: Database, config: Config) -> Iterator[CheckFailure]:
    installed = db.ask(lambda tx: tx.exec_driver_sql("SELECT uniqueness FROM installation").scalar())
    if installed != config.uniqueness:
        what = f"FRONTDESK_UNIQUENESS is {config.uniqueness}, but this database was set up for {installed}."
        yield CheckFailure(
            what, f"Set FRONTDESK_UNIQUENESS={installed}; it can't be changed once there are records."
        )


def _write_problems(db: Database) -> Iterator[CheckFailure]:
    try:
        write_a_little(db)
    except (Unavailable, DBAPIError) as error:
        yield _problem(error, "Look for a read-only or full disk, or missing rights.")


def _problem(error: Exception, remedy: str) -> CheckFailure:
    """What the database's own error says, and its remedy; `remedy` if the error has none of its own."""
    if isinstance(error, Unavailable):
        return CheckFailure(error.detail, _REMEDIES.get(error.code, remedy))
    return CheckFailure("The database can't be used.", remedy)
