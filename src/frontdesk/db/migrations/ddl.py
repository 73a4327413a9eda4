"""Columns and indexes for migrations. Never change what they make: applied migrations depend on it.

Keys, indexes and constraints without a name get theirs from the naming convention (`db.schema`).
"""

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


def _references(to: str | None) -> list[ForeignKey]:
    return [] if to is None else [ForeignKey(to)]
