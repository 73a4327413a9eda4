"""The statements that a database is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from frontdesk.db import Database


@contextmanager
def statements(db: Database, containing: str = "") -> Iterator[list[tuple[str, Any]]]:
    """Those with these words that are sent while the block runs, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if containing in statement:
            sent.append((statement, parameters))

    event.listen(db.engine, "before_cursor_execute", note)
    yield sent
    event.remove(db.engine, "before_cursor_execute", note)
