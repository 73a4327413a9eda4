"""What SQLite keeps of erased values in its write-ahead log, until the log is emptied (docs/erasure.md).

A reader can hold the log. So whatever takes values out counts that in its transaction, and a worker that finds a new count tries
until it has emptied the log.
"""

from frontdesk.db import Database, Tx
from frontdesk.privacy.retention_store import get_position, move_position

_COUNT = "emptied"  # among the positions: how often values were taken out


def note_emptied(tx: Tx) -> None:
    """Values were taken out: the log is to be emptied after this transaction."""
    if tx.dialect.name == "sqlite":
        move_position(tx, _COUNT, get_position(tx, _COUNT) + 1)


class LogEmptier:
    """Empties the log after values were taken out by any process; once at first, if there ever were some."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._done = 0

    def step(self) -> None:
        """Raises Unavailable."""
        if not self._db.is_sqlite:
            return
        count = self._db.ask(lambda tx: get_position(tx, _COUNT))
        if count != self._done and self._db.empty_log():
            self._done = count
