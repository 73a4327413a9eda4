"""Claims of files by workers: a lease on the database's clock, with a thread that reads ahead of
the writing thread.

A claim increments the file's epoch, and every later write of its holder is `WHERE epoch = mine`: a
worker that was suspended past its lease can't write. An account has one claimed file at a time.
"""

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from frontdesk import codes, usage
from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.errors import Conflict, Unavailable
from frontdesk.files import row_store, store
from frontdesk.files.model import (
    BY_ABSENCE,
    GAINED,
    LOST,
    WARNED,
    EligibilityFile,
    FileStep,
    RowOutcome,
)

LEASE_SECONDS = 15
RENEW_SECONDS = 3  # so that some renewals may fail
LOOK_SECONDS = 1.0  # between two checks for a stop or the end of the turn
# Between two chunks, long enough for waiting processes to try SQLite's lock twice.
SQLITE_PAUSE_SECONDS = 0.005
NICENESS = 10

Item = TypeVar("Item")
# Called between two rows and while waiting: returns once the work may go on, raises if it is not
# wanted any more.
GoOn = Callable[[], None]


class LostClaim(Exception):
    """Another worker has claimed the file, or the file was cancelled or deleted; the current
    transaction is rolled back.
    """


class Stopped(Exception):
    """The worker is stopping. Another worker continues after the last committed chunk."""


class ProducerClosed(Exception):
    """The consumer needs no more items."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options for work on files: the installation's rule of uniqueness, the stop event, a listener
    to the progress.

    `on_progress(step, done, total)` counts rows; `total` is None until it is known. Without
    `chunk_rows` the chunk suits the database. Unless it is renewed, a claim lapses after
    `lease_seconds`. `before_rows(file)` is called before the first row of a file is applied; in a sandbox
    it raises what becomes of some files. `tell(event, **values)` writes a line of the log.
    Without `applies_tests`, as in production, a file that says that it is a test is a dry run.
    """

    uniqueness: Uniqueness
    should_stop: Callable[[], bool] = lambda: False
    on_progress: Callable[[FileStep, int, int | None], None] = lambda _step, _done, _total: None
    chunk_rows: int | None = None
    lease_seconds: float = LEASE_SECONDS
    before_rows: Callable[[EligibilityFile], None] = lambda _file: None
    tell: Callable[..., Any] = lambda *_, **__: None
    applies_tests: bool = True

    def lease_until(self, tx: Tx) -> datetime:
        """The end of a lease that begins now, on the database's clock."""
        return database_time(tx) + timedelta(seconds=self.lease_seconds)


@dataclass(slots=True, eq=False)
class FileClaim:
    """A file claimed by this worker. `file` is as it was last committed.

    A checkpoint calls `yield_turn`, which returns when the account has its turn again; meanwhile
    `running` is cleared, for the thread that reads.
    """

    db: Database
    clock: Clock
    options: RunOptions
    file: EligibilityFile
    turn_at: datetime  # the beginning of the account's turn, on the database's clock
    yield_turn: Callable[[], None] = lambda: None
    running: threading.Event = field(default_factory=threading.Event)
    is_lost: bool = False
    rows_checked: int | None = None  # in the step that is under way; stored with the next renewal
    _saved: EligibilityFile = field(init=False)

    def __post_init__(self) -> None:
        self._saved = self.file
        self.running.set()

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """One transaction, for `save` and what belongs to it. After the commit `file` has the
        changes. Raises LostClaim, and what `Database.write` raises; then nothing is written.
        """
        with self.db.write() as tx:
            yield tx
        self.refresh()

    def save(self, tx: Tx, **changes: Any) -> None:
        """Change the file and renew the lease. Raises LostClaim."""
        file = self.renew(tx, **changes)
        if file is None:
            raise LostClaim
        self._saved = file

    def save_chunk(self, tx: Tx, outcomes: Sequence[RowOutcome], *, rows_done: int) -> None:
        """Store a chunk's outcomes, count them, and move the file's position by `rows_done`. The
        first rows take the place of the lists for which the file was held. Raises LostClaim.
        """
        file = self.file
        if rows_done and not file.rows_done and file.shown and not file.dry_run:
            row_store.delete_outcomes(tx, file.id)
            file = replace(file, chunks_done=0, counts={}, codes={})
        size = row_store.insert_outcomes(tx, file.id, file.chunks_done, outcomes)
        usage.count(tx.engine, file.account_id, history=size)
        counts, by_code = _count_outcomes(outcomes)
        row_store.insert_lists(tx, file.id, file.chunks_done, map(str, {*counts, *by_code}))
        self.save(
            tx,
            chunks_done=file.chunks_done + 1,
            rows_done=file.rows_done + rows_done,
            counts=dict(Counter(file.counts) + counts),
            codes=dict(Counter(file.codes) + by_code),
        )

    def save_list(self, lines: Sequence[RowOutcome]) -> None:
        """Store lines of the report that are no rows of the file, in a transaction of their own.
        Raises as `write`.
        """
        with self.write() as tx:
            self.save_chunk(tx, lines, rows_done=0)

    def update(self, **changes: Any) -> None:
        """Change the file in a transaction of its own. Raises as `write`."""
        with self.write() as tx:
            self.save(tx, **changes)

    def refresh(self) -> None:
        """The transaction of `save` is committed: `file` has its changes."""
        self.file = self._saved

    def renew(self, tx: Tx, **changes: Any) -> EligibilityFile | None:
        """The file with a new lease and these changes; None if the claim was lost. From any thread."""
        lease_until = self.options.lease_until(tx)
        return store.save(tx, self.file.id, self.file.epoch, lease_until=lease_until, **changes)

    def checkpoint(self, step: FileStep, rows: int) -> None:
        """Between two pieces of work: report the progress, let other writers in, wait during the
        turns of other accounts. Raises Stopped, LostClaim.
        """
        if self.db.is_sqlite:
            time.sleep(SQLITE_PAUSE_SECONDS)
        self.options.on_progress(step, rows, self.file.rows_total)
        if step is FileStep.CHECK:
            self.rows_checked = rows
        self.yield_turn()
        if self.is_lost:
            raise LostClaim
        if self.options.should_stop():
            raise Stopped


@contextmanager
def renewing(claim: FileClaim) -> Iterator[None]:
    """Renew the lease while the block runs, in a thread: a load may write nothing for long. After a
    claim was lost, the next checkpoint raises LostClaim.
    """
    ended = threading.Event()

    def renew() -> None:
        while not (ended.wait(RENEW_SECONDS) or claim.is_lost):
            with suppress(Unavailable), claim.db.write() as tx:
                claim.is_lost = claim.renew(tx, rows_checked=claim.rows_checked) is None

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def claim_next(
    db: Database,
    clock: Clock,
    options: RunOptions,
    *,
    only: int | None = None,
    before: datetime | None = None,
) -> FileClaim | None:
    """Claim the oldest file of the account with the oldest last turn; None if there is none. `only`
    that file; with `before`, only of an account with an earlier last turn. Commits the claim.
    """
    while True:
        file = db.ask(partial(find_claimable, only=only, before=before))
        if file is None:
            return None
        # Another worker may claim this or another file of the account first: then look again.
        with suppress(Conflict), db.write() as tx:
            now = database_time(tx)
            lease_until = options.lease_until(tx)
            claimed = store.claim(tx, file.id, file.epoch, now=now, lease_until=lease_until)
            if claimed is not None:
                store.take_turn(tx, file.account_id, now)
                return FileClaim(db, clock, options, claimed, now)


def find_claimable(
    tx: Tx, *, only: int | None = None, before: datetime | None = None
) -> EligibilityFile | None:
    """The file that `claim_next` would claim now, by the database's clock."""
    now = database_time(tx)
    return store.find_claimable(tx, now, only=only, before=before)


def _count_outcomes(outcomes: Sequence[RowOutcome]) -> tuple[Counter[str], Counter[str]]:
    """How many of the outcomes have each outcome and each code; without zeros."""
    counts = Counter(outcome.outcome for outcome in outcomes)
    by_code = Counter[str]()
    for outcome in outcomes:
        if outcome.access:
            _, _, is_lost, is_gained = outcome.access
            counts[LOST] += is_lost
            counts[GAINED] += is_gained
        if not (outcome.faults or outcome.warnings or outcome.place is None):
            continue  # nearly all
        by_code.update(code for _, code, _ in outcome.faults)
        by_code.update(warning[1] for warning in outcome.warnings)
        counts[WARNED] += bool(outcome.warnings)
        if outcome.place is None and outcome.outcome in BY_ABSENCE:
            by_code[codes.rows.ENDED_BY_ABSENCE] += 1
    return +counts, by_code


@contextmanager
def reading_ahead(
    make: Callable[[GoOn], Generator[Item]],
    running: threading.Event,
    *,
    checkpoint: GoOn,
    ahead: int = 2,
) -> Iterator[Iterator[Item]]:
    """The items of a generator that a thread runs, up to `ahead` items before they are taken; the
    thread ends with the block.

    `make` gets a GoOn, which waits while `running` is cleared and raises ProducerClosed after the
    block. Taking an item raises what the generator raised, and calls `checkpoint` each LOOK_SECONDS
    while it waits.
    """
    closed = threading.Event()

    def go_on() -> None:
        if not running.is_set():
            running.wait()
        if closed.is_set():
            raise ProducerClosed

    with (
        closing(make(go_on)) as items,
        ThreadPoolExecutor(1, "producer", _let_others_run_first) as thread,
    ):
        try:
            yield _take(partial(thread.submit, next, items, None), checkpoint, ahead)
        finally:
            closed.set()
            running.set()
            thread.shutdown(cancel_futures=True)  # at its next row


def _take(
    make_next: Callable[[], Future[Item | None]], checkpoint: GoOn, ahead: int
) -> Iterator[Item]:
    coming = deque[Future[Item | None]]()
    while True:
        coming.extend(make_next() for _ in range(ahead + 1 - len(coming)))
        first = coming.popleft()
        while wait([first], LOOK_SECONDS).not_done:
            checkpoint()
        item = first.result()
        if item is None:
            return
        yield item


def _let_others_run_first() -> None:
    """Lower the reading thread's priority below that of the threads that answer requests."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
