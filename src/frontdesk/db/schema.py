"""The column types and constraint names that every table shares. Each feature defines its own
tables.
"""

from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    Date,
    Enum,
    ForeignKey,
    Integer,
    MetaData,
    String,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import JSON, TypeDecorator, TypeEngine

from frontdesk.text import stored_time

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def load_tables() -> MetaData:
    """`metadata` with the tables of all features, from their modules `tables`; `db` does not import
    features by name.
    """
    for module in sorted(Path(__file__).parents[1].glob("*/tables.py")):
        import_module(f"frontdesk.{module.parent.name}.tables")
    return metadata


# SQLite numbers rows by itself only for a column declared exactly INTEGER.
Id = BigInteger().with_variant(Integer(), "sqlite")

# For a table whose rows are deleted while something still has their id. SQLite would give the id of the
# last row to the next one: what was opened in an ended session would be open in a new one, a page in
# a browser would be of another file, an endpoint would wait for events behind the place of a new one.
NEVER_REUSED: dict[str, Any] = {"sqlite_autoincrement": True}

# JSON keeps the order of keys, which JSONB would not: metadata is echoed as it was sent.
Json = JSON(none_as_null=True).with_variant(postgresql.JSON(none_as_null=True), "postgresql")


class TransactionNumber(FunctionElement[int]):
    """The number of the present transaction, ascending in the order of their beginnings; 0 on
    SQLite, which has one writer.
    """

    type = Id
    inherit_cache = True


@compiles(TransactionNumber)
def _transaction_number(_element: TransactionNumber, compiler: Any, **_options: Any) -> str:
    return "0" if compiler.dialect.name == "sqlite" else "(pg_current_xact_id()::text::bigint)"


def words(kind: type[StrEnum], length: int) -> Enum:
    return Enum(
        kind,
        native_enum=False,
        length=length,
        values_callable=lambda kind: [member.value for member in kind],
    )


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC datetime: timestamptz on PostgreSQL; on SQLite the text of `text.stored_time`,
    which sorts.
    """

    impl = TIMESTAMP(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        text = dialect.name == "sqlite"
        return dialect.type_descriptor(String(27) if text else TIMESTAMP(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return stored_time(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC)


class IsoDate(TypeDecorator[str]):
    """A calendar date as its text `YYYY-MM-DD`: date on PostgreSQL, text on SQLite, never a date
    object.
    """

    impl = String(10)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(String(10) if dialect.name == "sqlite" else Date())

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else str(value)


def key(column_type: TypeEngine[Any], *names: str, to: str | None = None) -> list[Column[Any]]:
    """Columns of the primary key; `to` is the `table.column` that they refer to."""
    return optional(column_type, *names, to=to, nullable=False, primary_key=True)


def required(
    column_type: TypeEngine[Any], *names: str, to: str | None = None, **options: Any
) -> list[Column[Any]]:
    """Columns without NULL. `options`: of SQLAlchemy's Column."""
    return optional(column_type, *names, to=to, nullable=False, **options)


def optional(
    column_type: TypeEngine[Any], *names: str, to: str | None = None, **options: Any
) -> list[Column[Any]]:
    return [
        Column(name, column_type, *([ForeignKey(to)] if to else []), **options) for name in names
    ]
