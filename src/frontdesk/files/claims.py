"""Who works on a file: claims with a lease on the database's clock, one file at a time per account; nothing of the work.

A claim counts the file's epoch up, and every later write of its holder is `WHERE epoch = mine`: a worker that slept past
its lease changes nothing.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.errors import Unavailable
from frontdesk.files import store
from frontdesk.files.model import EligibilityFile, FileState

LEASE_SECONDS = 15
RENEW_SECONDS = 5  # so that one renewal may fail


class LostClaim(Exception):
    """Another worker has the file now, or it is gone; what was being written is rolled back."""


class FileClaim:
    """A file that this worker, and nobody else, works on. `file` is as it was last saved."""

    def __init__(self, db: Database, clock: Clock, file: EligibilityFile, lease_seconds: float) -> None:
        self.db = db
        self.clock = clock
        self.file = file
        self._lease = timedelta(seconds=lease_seconds)

    def save(self, tx: Tx, **changes: Any) -> None:
        """Write the changes of the file and renew the lease, in the caller's transaction. Raises LostClaim.

        `file` shows them after `refresh`, once the transaction has committed.
        """
        lease_until = database_time(tx) + self._lease
        if not store.save(tx, self.file.id, self.file.epoch, changes | {"lease_until": lease_until}):
            raise LostClaim

    def update(self, **changes: Any) -> None:
        """The same in a transaction of its own."""
        with self.db.write() as tx:
            self.save(tx, **changes)
        self.refresh()

    def refresh(self) -> None:
        """Raises LostClaim: what another worker has made of the file is not ours to go on from."""
        file = self.db.ask(lambda tx: store.find_file(tx, self.file.id))
        if file is None or file.epoch != self.file.epoch:
            raise LostClaim
        self.file = file

    @contextmanager
    def kept(self) -> Iterator[None]:
        """The lease is renewed while the block runs, however long nothing is written: rows are skipped, members compared."""
        ended = threading.Event()
        thread = threading.Thread(target=self._keep, args=(ended,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(RENEW_SECONDS):
            with suppress(Unavailable):
                try:
                    with self.db.write() as tx:
                        self.save(tx)
                except LostClaim:
                    return  # whoever writes next is told


def claim_next(
    db: Database, clock: Clock, *, only: int | None = None, lease_seconds: float = LEASE_SECONDS
) -> FileClaim | None:
    """The oldest file that can be worked on (or just that one), now ours; None when there is none."""
    while True:
        file = db.ask(lambda tx: store.find_claimable(tx, database_time(tx), only=only))
        if file is None:
            return None
        if _taken(db, file, timedelta(seconds=lease_seconds)):
            return FileClaim(
                db, clock, replace(file, state=FileState.RUNNING, epoch=file.epoch + 1), lease_seconds
            )


def _taken(db: Database, file: EligibilityFile, lease: timedelta) -> bool:
    """Whether the file is ours; another worker may have been quicker, with this one or another of its account."""
    try:
        with db.write() as tx:
            now = database_time(tx)
            return store.claim(tx, file.id, file.epoch, now=now, lease_until=now + lease)
    except store.AccountBusy:
        return False
