"""A scratch database: SQLite in a temporary folder, deleted at the end."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Table, event

from frontdesk.db.engine import Database, open_database


@contextmanager
def scratch_database(tables: Sequence[Table]) -> Iterator[Database]:
    """An empty database with these tables. Foreign keys are not enforced, and writes do not wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="frontdesk-") as folder:
        db = open_database(f"sqlite:///{Path(folder) / 'scratch.db'}", pool_size=1)
        db.make_missing_file()
        event.listen(db.engine, "connect", _make_light)
        try:
            with db.write() as tx:
                for table in tables:
                    table.create(tx)
            yield db
        finally:
            db.close()


def _make_light(connection: Any, _record: object) -> None:
    for pragma in ("foreign_keys=OFF", "synchronous=OFF", "journal_mode=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
