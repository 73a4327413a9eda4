"""What set statements (`db.sets`) need from a transaction: an ordinary `Tx` has it, and so has a `PipelineTransaction`."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Dialect

# The key in `info` of the driver's connection, where the transaction can COPY rows into a table.
COPY_CONNECTION = "copy_connection"


class SetAnswer(Protocol):
    """The rows that a statement answers."""

    def one(self) -> Sequence[Any]: ...

    def __iter__(self) -> Iterator[Sequence[Any]]: ...


class SetTransaction(Protocol):
    """An open transaction that takes set statements. `info` lives as long as its connection."""

    @property
    def engine(self) -> Any: ...

    @property
    def dialect(self) -> Dialect: ...

    @property
    def info(self) -> dict[Any, Any]: ...

    def exec_driver_sql(self, statement: str, parameters: Any = None, /) -> SetAnswer:
        """Execute the statement, at the latest when its answer is read or the transaction commits."""
        ...
