"""Brings a database to a schema revision and back: one run at a time, in one transaction, with
short waits for locks.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from frontdesk import codes
from frontdesk.db.checks import HEAD, foreign_failure, other_schema, revision_of, schema_failure
from frontdesk.db.engine import Database
from frontdesk.db.migrations.append_only import damaged_guards, make_guards
from frontdesk.db.service_role import renew_rights
from frontdesk.errors import FrontdeskError

FOLDER = Path(__file__).parent / "migrations"


def upgrade(db: Database, *, uniqueness: str = "service") -> list[str]:
    """Bring the schema up to HEAD, and return the applied revisions. Makes a missing SQLite file.

    The first migration stores `uniqueness`; it can't be changed later. Raises Unavailable when a
    lock is held for long; FrontdeskError for a newer schema, and for tables of another program.
    """
    db.make_missing_file()
    before = revision_of(db)
    foreign = foreign_failure(db, before)
    if foreign is not None:
        raise FrontdeskError(
            f"{foreign.what} {foreign.remedy}", code=codes.operators.FOREIGN_TABLES
        )
    if before is not None and before > HEAD:
        failure = other_schema(before)
        raise FrontdeskError(
            f"{failure.what} {failure.remedy}", code=codes.operators.NEWER_REVISION
        )
    older = schema_failure(db, before) if before == HEAD else None
    if older is not None:
        raise FrontdeskError(f"{older.what} {older.remedy}", code=codes.operators.OTHER_REVISION)
    with db.write_schema() as connection:
        command.upgrade(_alembic(connection, uniqueness), "head")
        if MigrationContext.configure(connection).get_current_revision() != before:
            steps = ScriptDirectory(str(FOLDER)).walk_revisions()
            oldest = max(step.revision for step in steps if not step.module.BACKWARD_COMPATIBLE)
            connection.execute(
                text("UPDATE installation SET compatible_since = :oldest"), {"oldest": oldest}
            )
            if not db.is_sqlite:
                renew_rights(connection)
    applied = ScriptDirectory(str(FOLDER)).iterate_revisions(revision_of(db), before or "base")
    return [step.revision for step in reversed(list(applied))]


def restore_guards(db: Database) -> list[str]:
    """Make the triggers of the append-only tables anew if one is damaged; what was wrong, else an
    empty list.

    On PostgreSQL only the owner of the tables may. Raises Unavailable.
    """
    with db.write_schema() as connection:
        damaged = damaged_guards(connection)
        if damaged:
            make_guards(connection)
    return damaged


def downgrade(db: Database, revision: str) -> None:
    """Take the schema back to `revision` (`base`: no table is left). Data that the older schema
    can't hold is lost.
    """
    with db.write_schema() as connection:
        command.downgrade(_alembic(connection), revision)


def _alembic(connection: Connection, uniqueness: str = "service") -> AlembicConfig:
    config = AlembicConfig()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes.update(connection=connection, uniqueness=uniqueness)
    return config
