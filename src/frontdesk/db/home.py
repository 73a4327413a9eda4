"""Where a database lives: an identity that a restored or copied one does not share, and a mark kept beside SQLite's file.

A restored backup can't tell by itself that it is one: whatever it knows is what it knew then. So something outside is asked.
PostgreSQL: the cluster, its timeline (a recovery or a failover begins a new one), the database and a table of it (a dump
that is restored makes new ones). SQLite: the file itself, and a counter in a file beside it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from frontdesk.db.engine import Tx

MARK_ENDING = "-delivered"  # beside the database file, as -wal and -shm are

_POSTGRESQL = (
    "SELECT s.system_identifier::text || '/' || c.timeline_id || '/' || d.oid || '/' || %s::regclass::oid "
    "FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d WHERE d.datname = current_database()"
)


def identity(tx: Tx, table: str) -> str:
    """The identity of the database that the transaction is on; `table` is one that is never made anew but by a restore."""
    if tx.dialect.name != "sqlite":
        return str(tx.exec_driver_sql(_POSTGRESQL, (table,)).scalar_one())
    return f"file/{_file(tx).stat().st_ino}"


def read_mark(tx: Tx) -> int | None:
    """SQLite: how many times, by the file beside it, this database has delivered; None without one. 0 on PostgreSQL."""
    if tx.dialect.name != "sqlite":
        return 0
    with contextlib.suppress(OSError, ValueError):
        return int(_mark(tx).read_text())
    return None


def raise_mark(path: Path, count: int) -> None:
    """Let the mark be at least `count`; called after the commit that counted and before what it allows is done."""
    with _locked(path) as file:
        text = os.pread(file, 20, 0).strip()
        if not text.isdigit() or int(text) < count:
            _overwrite(file, count)


def set_mark(tx: Tx, count: int) -> None:
    """Let the mark be `count`, whatever it was (SQLite)."""
    if tx.dialect.name == "sqlite":
        with _locked(_mark(tx)) as file:
            _overwrite(file, count)


def mark_path(tx: Tx) -> Path | None:
    """The file to raise the mark in; None on PostgreSQL."""
    return _mark(tx) if tx.dialect.name == "sqlite" else None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _overwrite(file: int, count: int) -> None:
    # The same number of bytes each time: whoever reads meanwhile sees the old or the new number.
    os.pwrite(file, f"{count:019d}\n".encode(), 0)


def _file(tx: Tx) -> Path:
    return Path(str(tx.engine.url.database))


def _mark(tx: Tx) -> Path:
    file = _file(tx)
    return file.with_name(file.name + MARK_ENDING)
