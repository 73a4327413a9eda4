"""Distinguishes a restored or copied database from the original: by its identity, and by a counter
beside SQLite's file.

The rows of a restored backup can't show that they were restored, so the evidence is outside of
them. On PostgreSQL it is the cluster, its timeline (new after a recovery or a failover), and the
ids of the database and of one of its tables (new in a restored dump). On SQLite it is the file's
inode, and the number in a file beside it.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from frontdesk.db.engine import Tx

COUNTER_ENDING = "-delivered"  # beside the database file, as -wal and -shm are

LOOK_SECONDS = 1.0

# The control file names the timeline of a promoted standby minutes later than the log's own names.
_POSTGRESQL = """
    SELECT s.system_identifier::text
        || '/' || coalesce(('x' || left(w.name, 8))::bit(32)::int, c.timeline_id)
        || '/' || d.oid || '/' || %s::regclass::oid
    FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d,
        (SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END AS name) w
    WHERE d.datname = current_database()
"""
# NULL unless commits wait for a standby.
_LOG_END = """
    SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local')
        THEN pg_current_wal_flush_lsn()::text END
"""
_HAS_REACHED = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"


def database_identity(tx: Tx, table: str) -> str:
    """The identity of the transaction's database. Only a restore may ever make `table` anew."""
    if tx.dialect.name != "sqlite":
        return str(tx.exec_driver_sql(_POSTGRESQL, (table,)).scalar_one())
    return f"file/{_file(tx).stat().st_ino}"


class FailoverWitness:
    """A worker's last two sightings of its database, by which it recognises a standby that took
    over and lacks no commit.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._seen: list[tuple[str, str | None]] = []  # the identity, and where the log ended
        self._next_at = 0.0

    def look(self, tx: Tx, home: Callable[[], str | None]) -> None:
        """Look at the database, once a second at most. What is not `home()` is not remembered."""
        if tx.dialect.name != "sqlite" and monotonic() >= self._next_at:
            self._next_at = monotonic() + LOOK_SECONDS
            seen = database_identity(tx, self._table), tx.exec_driver_sql(_LOG_END).scalar_one()
            if seen[0] == home():
                self._seen = [*self._seen[-1:], seen]

    def saw_failover(self, tx: Tx, home: str | None) -> bool:
        """Whether this is the `home` that was seen, on a later timeline, and its recovery got as
        far as the log at the older sighting, which all standbys had by then. A restored backup did
        not. Later commits have waited for a standby.
        """
        if (
            home is None
            or not self._seen
            or any(seen != home or not end for seen, end in self._seen)
        ):
            return False
        old = home.split("/")
        new = database_identity(tx, self._table).split("/")
        is_later = int(new.pop(1)) > int(old.pop(1)) and new == old
        return is_later and bool(tx.exec_driver_sql(_HAS_REACHED, (self._seen[0][1],)).scalar_one())


def read_counter(tx: Tx) -> int | None:
    """SQLite: the number of deliveries by the file beside the database; None without the file. 0 on
    PostgreSQL.
    """
    path = counter_path(tx)
    if path is None:
        return 0
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def raise_counter(path: Path, count: int) -> None:
    """Raise the counter to `count` if it is lower. Call it after the commit that counted, before
    the delivery.
    """
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
