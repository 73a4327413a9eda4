"""Brings a database to a schema revision and back: one run at a time, in one transaction, with short waits for locks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from frontdesk.db.checks import revision_of
from frontdesk.db.engine import Database

ADVISORY_LOCK = 0x66726F6E74  # "front": one migration run at a time on a PostgreSQL server

FOLDER = Path(__file__).parent / "migrations"


def upgrade(db: Database, *, uniqueness: str = "service", revision: str = "head") -> list[str]:
    """Bring the schema up to `revision`, and return the applied revisions. Makes a missing SQLite file.

    The first migration stores `uniqueness`; it can't be changed later. Raises Unavailable when a lock is held for long.
    """
    db.make_missing_file()
    before = revision_of(db)
    with _connection(db) as connection:
        command.upgrade(_alembic(connection, uniqueness), revision)
    applied = ScriptDirectory(str(FOLDER)).iterate_revisions(revision_of(db), before or "base")
    return [step.revision for step in reversed(list(applied))]


def downgrade(db: Database, revision: str) -> None:
    """Take the schema back to `revision` (`base`: no table is left). Data that the older schema can't hold is lost."""
    with _connection(db) as connection:
        command.downgrade(_alembic(connection, "service"), revision)


@contextmanager
def _connection(db: Database) -> Iterator[Connection]:
    # SQLite checks foreign keys while a table is rebuilt; the check can be turned off only outside a transaction.
    with db.write_schema() as connection:
        if not db.is_sqlite:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        yield connection


def _alembic(connection: Connection, uniqueness: str) -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes.update(connection=connection, uniqueness=uniqueness)
    return config
