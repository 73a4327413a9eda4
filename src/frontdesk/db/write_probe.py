"""Whether the database stores what is written. A full disk and a standby answer every read."""

from time import monotonic

from frontdesk.db.engine import Database
from frontdesk.db.failures import DatabaseState
from frontdesk.errors import Unavailable

FRESH_SECONDS, RETRY_SECONDS = 5.0, 1.0  # how long a success and a failure are good for
WAIT_SECONDS = 1.0  # for another writer

# More pages than a token takes: a log with room for one more page is as good as full. SQLite overwrites them each time.
_WRITE_SQLITE = "UPDATE installation SET written = randomblob(32768)"
_WRITE_POSTGRESQL = "UPDATE installation SET written = decode(md5(random()::text), 'hex')"
# The row above fits into pages and into a log file that exist. 300 kB of a temporary file, which is gone at once, need new ones.
_SPILL = (
    "SELECT set_config('work_mem', '64kB', true)",
    "SELECT count(*) FROM generate_series(1, 15000)",
)


def write_a_little(db: Database, *, wait_seconds: float | None = None) -> None:
    """Commit a small change that needs room on the disk. Raises Unavailable."""
    with db.write(wait_seconds=wait_seconds) as tx:
        for statement in (_WRITE_SQLITE,) if db.is_sqlite else (_WRITE_POSTGRESQL, *_SPILL):
            tx.exec_driver_sql(statement)


class WriteProbe:
    """`verify()` writes at most once in 5 s, or in 1 s after a failure, and otherwise repeats the last answer.

    A database that another writer has locked takes writes, so it passes. Call it from one thread.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._good_until = float("-inf")
        self._failure: Unavailable | None = None

    def verify(self) -> None:
        """Raises Unavailable while the database stores nothing."""
        if monotonic() >= self._good_until:
            self._failure = self._attempt()
            self._good_until = monotonic() + (RETRY_SECONDS if self._failure else FRESH_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _attempt(self) -> Unavailable | None:
        try:
            write_a_little(self._db, wait_seconds=WAIT_SECONDS)
        except Unavailable as error:
            return None if error.code == DatabaseState.BUSY else error
        return None
