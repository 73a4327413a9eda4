"""Claims of workers on files: a lease on the database's clock, one file at a time per account.

A claim counts the file's epoch up, and every later write of its holder is `WHERE epoch = mine`: a worker that slept past
its lease changes nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.eligibility.probes import ProbeLimit
from frontdesk.errors import Unavailable
from frontdesk.files import report_store, store
from frontdesk.files.model import EligibilityFile, FileState, FileStep, RowOutcome
from frontdesk.files.tally import Tally

LEASE_SECONDS = 15
RENEW_SECONDS = 5  # so that one renewal may fail
SUBPROCESS_FROM_ROWS = 60_000  # a process costs as much as parsing 30,000 rows, before its first one

# Between two chunks, other processes that wait for SQLite's one writer look at least twice.
SQLITE_PAUSE_SECONDS = 0.005


class LostClaim(Exception):
    """Another worker has the file now, or it was cancelled or is gone; what was being written is rolled back."""


class Stopped(Exception):
    """The worker was told to stop. Another one goes on after the last committed chunk."""


class TurnOver(Stopped):
    """The account's turn is over, and others wait. The file goes on at the account's next turn."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to work on files: the installation's rule of uniqueness, when to stop, and a listener to the progress.

    `on_progress(step, done, total)` counts rows; `total` is None until it is known. Without `chunk_rows` the chunk suits
    the database. A process of their own parses the rows that are left from where most of them are unknown, if at least
    `subprocess_from_rows` are left. Unless it is renewed, a claim lapses after `lease_seconds`. With `slice_seconds`, a file is
    given back after so long while files of other accounts wait (docs/decisions/0093).
    """

    uniqueness: Uniqueness
    should_stop: Callable[[], bool] = lambda: False
    on_progress: Callable[[FileStep, int, int | None], None] = lambda _step, _done, _total: None
    chunk_rows: int | None = None
    subprocess_from_rows: int = SUBPROCESS_FROM_ROWS
    lease_seconds: float = LEASE_SECONDS
    slice_seconds: float | None = None
    probe_limit: ProbeLimit | None = None

    def lease_until(self, tx: Tx) -> datetime:
        """The end of a lease that begins now, on the database's clock."""
        return database_time(tx) + timedelta(seconds=self.lease_seconds)


@dataclass(slots=True)
class FileClaim:
    """A file that this worker alone works on. `file` is as it was last saved; `is_lost` once another one has it, or it was
    cancelled. `is_kept`: what the worker has in memory of the load is kept when the file is given back. `kept` are the epochs
    of other files that it keeps."""

    db: Database
    clock: Clock
    options: RunOptions
    file: EligibilityFile
    kept: Mapping[int, int] = field(default_factory=dict)
    is_lost: bool = False
    is_kept: bool = False
    _began: float = field(default_factory=time.monotonic)
    _advanced_at: float | None = None
    _saved_at: float = 0.0

    def save(self, tx: Tx, **changes: Any) -> None:
        """Change the file and renew the lease, in the caller's transaction. Raises LostClaim.

        After the commit, `refresh` brings the changes into `file`.
        """
        lease_until = self.options.lease_until(tx)
        if not store.save(tx, self.file.id, self.file.epoch, lease_until=lease_until, **changes):
            raise LostClaim
        self._saved_at = time.monotonic()

    def save_chunk(self, tx: Tx, outcomes: Sequence[RowOutcome], *, rows_done: int) -> None:
        """Store a chunk's outcomes and move the file's position by `rows_done`. Raises LostClaim."""
        file = self.file
        report_store.insert_outcomes(tx, file.id, file.chunks_done, outcomes)
        tally = Tally.of(file).plus(outcomes)
        if self._advanced_at is None:
            self._advanced_at = time.monotonic()
        self.save(
            tx, chunks_done=file.chunks_done + 1, rows_done=file.rows_done + rows_done, **tally._asdict()
        )

    def add_provisional(self, batches: Iterator[Sequence[RowOutcome]]) -> None:
        """Store outcomes that come true only if the file goes on: they lie behind its position. Raises LostClaim."""
        for number, outcomes in enumerate(batches, self.file.chunks_done):
            with self.db.write() as tx:
                report_store.insert_outcomes(tx, self.file.id, number, outcomes)
                self.save(tx, **Tally.of(self.file).plus(outcomes)._asdict())
            self.refresh()

    def drop_provisional(self) -> None:
        """Delete the outcomes behind the file's position, because the file goes on. Raises LostClaim."""
        file, tally = self.file, Tally.of(self.file)
        number = first = file.chunks_done
        with self.db.write() as tx:
            while (found := report_store.find_outcomes(tx, file.id, number)) is not None:
                tally, number = tally.minus(found[1]), found[0] + 1
            if number > first:
                report_store.delete_outcomes(tx, file.id, from_chunk=first)
                self.save(tx, **tally._asdict())
        self.refresh()

    def update(self, **changes: Any) -> None:
        """`save` and `refresh` in a transaction of their own."""
        with self.db.write() as tx:
            self.save(tx, **changes)
        self.refresh()

    def refresh(self) -> None:
        """Read the file again. Raises LostClaim when another worker has claimed it since."""
        file = self.db.ask(lambda tx: store.find_file(tx, self.file.id))
        if file is None or file.epoch != self.file.epoch or file.state is FileState.CANCELLED:
            raise LostClaim
        self.file = file

    def checkpoint(self, step: FileStep, rows: int, *, is_reading: bool = False) -> None:
        """Between two pieces of work: report the progress, and let other writers in. While rows to apply are only read, the turn
        may end too, if what was read is kept. Raises Stopped, LostClaim.
        """
        if self.is_lost:
            raise LostClaim
        if self.db.is_sqlite:
            time.sleep(SQLITE_PAUSE_SECONDS)
        self.options.on_progress(step, rows, self.file.rows_total)
        if self.options.should_stop():
            raise Stopped
        if self._is_turn_over(step, is_reading=step is FileStep.CHECK or (is_reading and self.is_kept)):
            raise TurnOver

    def _is_turn_over(self, step: FileStep, *, is_reading: bool) -> bool:
        """True after a slice of time in which the file advanced, if another account waits. Reading up to where the last turn
        ended is no advance, and a slice is at least as long as that took: so every file comes to its end. A slice of no length
        ends with the first advance."""
        seconds, start = self.options.slice_seconds, self._advanced_at
        if start is None and is_reading:
            start = self._began
        lasts = self.is_kept or (step is not FileStep.CHECK and not self.file.dry_run)
        if seconds is None or start is None or not lasts:
            return False
        now = time.monotonic()
        if now < start + (max(seconds, start - self._began) if seconds else 0.0):
            return False
        account_id, kept = self.file.account_id, self.kept
        if self.db.ask(lambda tx: store.others_wait(tx, account_id, database_time(tx), kept=kept)):
            return True
        self._began = self._advanced_at = now
        return False

    def give_back(self, *, is_kept: bool) -> None:
        """Let the file wait for its next turn, with this worker only if its load is kept. Raises LostClaim."""
        with self.db.write() as tx:
            self.save(
                tx, state=FileState.WAITING, kept_until=self.options.lease_until(tx) if is_kept else None
            )
        self.refresh()

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the lease while the block runs, since the block may write nothing for long."""
        ended = threading.Event()
        thread = threading.Thread(target=self._renew, args=(ended,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(RENEW_SECONDS):
            if time.monotonic() < self._saved_at + RENEW_SECONDS / 2:
                continue  # chunks renew it too, and on SQLite this would look like another writer
            with suppress(Unavailable):
                try:
                    with self.db.write() as tx:
                        self.save(tx)
                        store.keep(tx, self.kept, until=self.options.lease_until(tx))
                except LostClaim:
                    self.is_lost = True  # the next checkpoint or write of the block raises it
                    return


def claim_next(
    db: Database,
    clock: Clock,
    options: RunOptions,
    *,
    only: int | None = None,
    kept: Mapping[int, int] | None = None,
) -> FileClaim | None:
    """Claim the oldest file of the account with the oldest last turn (with `only`, that file); None if there is none.
    `kept` are the epochs of the files that this worker keeps; those that others keep are left to them."""
    kept = kept or {}
    while True:
        file = db.ask(lambda tx: store.find_claimable(tx, database_time(tx), only=only, kept=kept))
        if file is None:
            return None
        # Another worker may be quicker, with this file or with another one of the account.
        with suppress(store.AccountBusy), db.write() as tx:
            now, lease_until = database_time(tx), options.lease_until(tx)
            if store.claim(tx, file.id, file.epoch, now=now, lease_until=lease_until):
                store.take_turn(tx, file.account_id, now)
                claimed = replace(file, state=FileState.RUNNING, epoch=file.epoch + 1)
                return FileClaim(db, clock, options, claimed, kept)
