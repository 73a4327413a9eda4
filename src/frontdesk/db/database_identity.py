"""Distinguishes a restored or copied database from the original: by its identity, and by a counter beside SQLite's file.

The rows of a restored backup can't show that they were restored, so the evidence is outside of them. On PostgreSQL it is the
cluster, its timeline (new after a recovery or a failover), and the ids of the database and of one of its tables (new in a
restored dump). On SQLite it is the file's inode, and the number in a file beside it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from frontdesk.db.engine import Tx

COUNTER_ENDING = "-delivered"  # beside the database file, as -wal and -shm are

_POSTGRESQL = (
    "SELECT s.system_identifier::text || '/' || c.timeline_id || '/' || d.oid || '/' || %s::regclass::oid "
    "FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d WHERE d.datname = current_database()"
)


def database_identity(tx: Tx, table: str) -> str:
    """The identity of the transaction's database. Only a restore may ever make `table` anew."""
    if tx.dialect.name != "sqlite":
        return str(tx.exec_driver_sql(_POSTGRESQL, (table,)).scalar_one())
    return f"file/{_file(tx).stat().st_ino}"


def read_counter(tx: Tx) -> int | None:
    """SQLite: the number of deliveries by the file beside the database; None without the file. 0 on PostgreSQL."""
    path = counter_path(tx)
    if path is None:
        return 0
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def raise_counter(path: Path, count: int) -> None:
    """Raise the counter to `count` if it is lower. Call it after the commit that counted, before the delivery."""
    with _locked(path) as file:
        text = os.pread(file, 20, 0).strip()
        if not text.isdigit() or int(text) < count:
            _overwrite(file, count)


def set_counter(tx: Tx, count: int) -> None:
    """Set the counter, whatever it was (SQLite)."""
    path = counter_path(tx)
    if path is not None:
        with _locked(path) as file:
            _overwrite(file, count)


def counter_path(tx: Tx) -> Path | None:
    """The file of the counter; None on PostgreSQL."""
    if tx.dialect.name != "sqlite":
        return None
    file = _file(tx)
    return file.with_name(file.name + COUNTER_ENDING)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _overwrite(file: int, count: int) -> None:
    # The same number of bytes each time: a reader meanwhile sees the old or the new number.
    os.pwrite(file, f"{count:019d}\n".encode(), 0)


def _file(tx: Tx) -> Path:
    return Path(str(tx.engine.url.database))
