"""Columns and indexes for migrations. Never change what they make: applied migrations depend on it.

Keys, indexes and constraints without a name get theirs from the naming convention (`db.schema`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import op
from sqlalchemy import Column, ForeignKey, text
from sqlalchemy.types import TypeEngine


def key(column_type: TypeEngine[Any], *names: str, to: str | None = None) -> list[Column[Any]]:
    """Columns of the primary key; `to` is the `table.column` that they refer to."""
    return [Column(name, column_type, *_references(to), primary_key=True) for name in names]


def required(column_type: TypeEngine[Any], *names: str, to: str | None = None) -> list[Column[Any]]:
    return [Column(name, column_type, *_references(to), nullable=False) for name in names]


def optional(column_type: TypeEngine[Any], *names: str, to: str | None = None) -> list[Column[Any]]:
    return [Column(name, column_type, *_references(to), nullable=True) for name in names]


def create_partial_index(name: str, table: str, *columns: str, where: str, unique: bool = False) -> None:
    condition = text(where)
    op.create_index(
        name, table, list(columns), unique=unique, sqlite_where=condition, postgresql_where=condition
    )


def refuse_changes(table: str) -> None:
    """Rows of the table can be added and never changed or deleted, whatever the program does."""
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )


@contextmanager
def changing_append_only(table: str) -> Iterator[None]:
    """Let the migration change rows of a table that only takes new ones. The migration is one transaction, so nobody else can."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_append_only")
        yield
        op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_append_only")
        return
    trigger = f"{table}_no_update"
    rule = text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name")
    sql = op.get_bind().execute(rule, {"name": trigger}).scalar_one()
    op.execute(f"DROP TRIGGER {trigger}")
    yield
    op.get_bind().exec_driver_sql(sql)


def _references(to: str | None) -> list[ForeignKey]:
    return [] if to is None else [ForeignKey(to)]
