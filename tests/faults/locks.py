"""A database that another process has locked."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from frontdesk.db import Database

HOLD_SQLITE = """
import sys, pysqlite3
connection = pysqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(db: Database) -> Iterator[int]:
    """What a write needs is locked, for as long as the block lasts. Gives the id of the process or
    session.
    """
    if db.is_sqlite:
        command = [sys.executable, "-c", HOLD_SQLITE, str(db.engine.url.database)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            try:
                yield holder.pid
            finally:
                holder.communicate()
    else:
        plain_url = db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain_url) as connection:
            connection.execute("LOCK TABLE members IN EXCLUSIVE MODE")
            yield connection.info.backend_pid
