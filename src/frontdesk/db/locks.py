"""Names the sessions and processes that hold a lock on the tables for long: `frontdesk check` tells
them, since a request knows only that it waited.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import NamedTuple

from frontdesk.db.engine import Database

LONG_SECONDS = 60
LOOK_AGAIN_SECONDS = 2.0  # at a session whose transaction's age the role may not see
LOCKS = Path("/proc/locks")
PROCESSES = Path("/proc")
_WRITER_BYTE = 120  # WAL_WRITE_LOCK, in the file of SQLite's shared memory
_LOCK_WORDS = 8  # "1: POSIX ADVISORY WRITE 1234 fd:00:5678 120 120" (proc(5))

# What a lock keeps waiting, the most first. Reads and vacuums keep no request waiting.
_STOPS = {
    "AccessExclusiveLock": "every read and write of",
    "ExclusiveLock": "every write of",
    "ShareRowExclusiveLock": "every write of",
    "ShareLock": "every write of",
    "RowExclusiveLock": "each write of a row that it has changed in",
    "RowShareLock": "each write of a row that it has locked in",
}
_HELD = """
    SELECT DISTINCT ON (l.pid) l.pid, coalesce(a.usename, '') AS role,
        coalesce(a.application_name, '') AS program, coalesce(a.state, '') AS state,
        floor(extract(epoch FROM clock_timestamp() - a.xact_start))::int AS seconds,
        c.relname AS name, l.mode
    FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND c.relkind = 'r' AND c.relnamespace = quote_ident(current_schema())::regnamespace
        AND l.mode = ANY(%s) AND a.usename IS NOT NULL
    ORDER BY l.pid, array_position(%s, l.mode), c.relname
"""


class HeldLock(NamedTuple):
    """`holder` has a lock that keeps `stopped` waiting; `seconds` is the age of its transaction,
    None if it can't be seen.
    """

    holder: str
    stopped: str
    seconds: int | None
    remedy: str


class _Session(NamedTuple):
    pid: int
    role: str
    program: str
    state: str
    seconds: int | None
    name: str
    mode: str


def long_locks(db: Database) -> Iterator[HeldLock]:
    """The locks of other sessions that are a minute old; of SQLite, whose locks have no age, those
    of other processes that write now: ask after a write has waited in vain. Raises Unavailable.
    """
    if db.is_sqlite:
        yield from _of_processes(f"{db.engine.url.database}-shm")
        return
    sessions = _sessions(db)
    if any(session.seconds is None for session in sessions):
        sleep(LOOK_AGAIN_SECONDS)
        stay = {session.pid for session in sessions}
        sessions = [session for session in _sessions(db) if session.pid in stay]
    for session in sessions:
        if session.seconds is None or session.seconds >= LONG_SECONDS:
            program = f", program {session.program}" if session.program else ""
            state = f", {session.state}" if session.state else ""
            yield HeldLock(
                f"Session {session.pid} of PostgreSQL (role {session.role}{program}{state})",
                f"{_STOPS[session.mode]} {session.name}",
                session.seconds,
                "End its transaction there, or as a superuser run: "
                f"SELECT pg_terminate_backend({session.pid}); it is rolled back.",
            )


def _sessions(db: Database) -> list[_Session]:
    """The sessions that have a lock which keeps others waiting, each with its strongest."""
    modes = [*_STOPS]
    found = db.ask(lambda tx: tx.exec_driver_sql(_HELD, (modes, modes)).all())
    return [_Session(*row) for row in found]


def _of_processes(shared_memory: str) -> Iterator[HeldLock]:
    try:
        inode = Path(shared_memory).stat().st_ino
        lines = LOCKS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    for words in map(str.split, lines):
        if len(words) != _LOCK_WORDS or words[3] != "WRITE" or not words[4].isdigit():
            continue
        is_here = words[5].rpartition(":")[2] == str(inode)
        pid = int(words[4])
        if is_here and words[6] == str(_WRITER_BYTE) and pid not in (0, os.getpid()):
            name = _name_of(pid)
            holder = f"Process {pid}{name} of this machine"
            remedy = "Wait until it ends, or end it: its transaction is rolled back."
            yield HeldLock(holder, "every write of the database", None, remedy)


def _name_of(pid: int) -> str:
    try:
        return f" ({(PROCESSES / str(pid) / 'comm').read_text().strip()})"
    except OSError:
        return ""
