"""What a worker does beside delivering, each in a thread: loading eligibility files, cleaning up,
and pruning what is old.
"""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Self

from frontdesk.audit import Requester
from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.eligibility import derive_due
from frontdesk.errors import Unavailable
from frontdesk.files.actions import delete_left_content
from frontdesk.files.claims import RunOptions
from frontdesk.files.drafts.steps import delete_left_drafts
from frontdesk.files.turns import FileTurns
from frontdesk.invitations import save_worker_status
from frontdesk.invitations.model import WorkerStatus
from frontdesk.liveness import LoopBeats
from frontdesk.log_output import LogOutput
from frontdesk.privacy.retention import LogEmptier, RetentionTurn, begin_turn, retention_days
from frontdesk.queues.lapses import DutyChange, end_lapsed_duties, take_back_lapses
from frontdesk.queues.upkeep import DEFAULT_AGE, prune
from frontdesk.usage import counter_of
from frontdesk.usage.counter import SAVE_SECONDS

# How often a worker asks for work that nobody told it of: a lost notification, a retry or a lease
# that is due.
IDLE_SECONDS = 2.0
UNAVAILABLE_SECONDS = 60.0  # until the next step after the database was unavailable, at most
SHORTEST_WAIT_SECONDS = 0.25  # between two steps that find nothing to do
SLICE_SECONDS = 3.0  # of a file while those of other accounts wait
PRUNE_PAUSE_SECONDS = 0.2  # between pages, so that others that write wait for a moment only


class Wakeup:
    """`wait(seconds)` ends early after `set()`, from any thread or a signal handler.

    Not an Event: a signal handler that sets it can interrupt the thread that is about to wait for
    it, and would then wait for the Event's lock for good. The put of a SimpleQueue takes no such
    lock.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        if self._calls.empty():  # a worker that is busy for hours must not gather them
            self._calls.put(None)

    def wait(self, seconds: float) -> bool:
        """Returns True after `set()`, False when the time is over."""
        try:
            self._calls.get(timeout=seconds)
        except Empty:
            return False
        with suppress(Empty):
            while True:
                self._calls.get_nowait()
        return True


class BackgroundTask(threading.Thread, ABC):
    """Runs `step` again and again until `stop()`, beside the same task of any number of other
    workers.

    `with task:` starts it, and at the end stops it and waits until its step has ended, whatever the
    block raised.
    """

    first_seconds: float  # until the first step
    poll_seconds: float  # until the next step after one that found nothing to do
    failure_event: (
        str  # the log's event when a step fails by an error of ours; later steps still run
    )

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock = system_clock,
        log: LogOutput | None = None,
        beats: LoopBeats | None = None,
    ) -> None:
        super().__init__(name=type(self).__name__, daemon=True)
        self._beats = beats
        self._db = db
        self._clock = clock
        self._log = log or LogOutput(sys.stdout)
        self._is_stopping = False
        self._wakeup = Wakeup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    def stop(self) -> None:
        """Stop after the chunks or the page in work. From any thread or a signal handler."""
        self._is_stopping = True
        self._wakeup.set()

    def wake(self) -> None:
        """There may be something to do: take the next step now."""
        self._wakeup.set()

    @abstractmethod
    def step(self) -> bool:
        """Returns False when there was nothing to do. Raises Unavailable."""

    def seconds_to_next(self) -> float:
        """Until the next step after one that found nothing to do."""
        return self.poll_seconds

    def advance(self) -> None:
        """The loop goes on. A step that takes long calls it between its pieces."""
        if self._beats is not None:
            self._beats.advance(self.name)

    def run(self) -> None:
        self._run_steps()
        if self._beats is not None:
            self._beats.leave(self.name)

    def _pause(self, seconds: float) -> None:
        """Wait until then, or until `wake` or `stop`; the loop beats meanwhile."""
        longest = seconds if self._beats is None else self._beats.beat_seconds
        until = time.monotonic() + seconds
        self.advance()
        while not self._wakeup.wait(max(0.0, min(longest, until - time.monotonic()))):
            self.advance()
            if time.monotonic() >= until:
                return

    def _run_steps(self) -> None:
        wait = self.first_seconds
        stepped_at = float("-inf")
        while True:
            self._pause(wait)
            if self._is_stopping:
                break
            # Many commits in a row wake it many times.
            if (wait := stepped_at + SHORTEST_WAIT_SECONDS - time.monotonic()) > 0:
                continue
            try:
                wait = 0.0 if self.step() else self.seconds_to_next()
            except Unavailable:
                wait = min(self.poll_seconds, UNAVAILABLE_SECONDS)
            except Exception as error:  # noqa: BLE001 - see failure_event
                self._log.write(self.failure_event, error=type(error).__name__)
                wait = self.poll_seconds
            if wait > 0:
                stepped_at = time.monotonic()


class FileLoader(BackgroundTask):
    """Loads the files that wait, account by account in turns; after `stop()` the next worker goes
    on from the same chunk.
    """

    first_seconds = 0.0
    poll_seconds = IDLE_SECONDS
    failure_event = "loader_failed"

    def __init__(self, db: Database, run: RunOptions, **options: Any) -> None:
        super().__init__(db, **options)
        run = replace(run, should_stop=self._check_stop, tell=self._log.write)
        self._turns = FileTurns(db, self._clock, run, slice_seconds=SLICE_SECONDS)

    def _check_stop(self) -> bool:
        """Between two pieces of a load, which may take hours."""
        self.advance()
        return self._is_stopping

    def run(self) -> None:
        super().run()
        self._turns.close()

    def step(self) -> bool:
        return self._turns.take()


class SignOfLife(BackgroundTask):
    """Stores that the worker lives and what it has seen; at the end, what is new."""

    first_seconds = 0.0
    poll_seconds = 10.0
    failure_event = "sign_of_life_failed"

    def __init__(self, db: Database, status: WorkerStatus, **options: Any) -> None:
        super().__init__(db, **options)
        self._status = status
        self._stored = WorkerStatus().counts

    def run(self) -> None:
        super().run()
        if self._status.counts != self._stored:
            with suppress(Unavailable):
                self.step()

    def step(self) -> bool:
        counts = self._status.counts.copy()
        new = Counter({name: count - self._stored[name] for name, count in counts.items()})
        status = replace(self._status, counts=new)
        write_alone(self._db, lambda tx: save_worker_status(tx, status, now=database_time(tx)))
        self._stored = counts
        return False


class UsageSaver(BackgroundTask):
    """Stores what the loaded files have added to their accounts' usage; at the end, the rest."""

    first_seconds = 0.0
    poll_seconds = SAVE_SECONDS
    failure_event = "usage_saving_failed"

    def run(self) -> None:
        super().run()
        self.step()

    def step(self) -> bool:
        counter_of(self._db.engine).save_rest(self._db, self._clock())
        return False


class LeftoverCleaner(BackgroundTask):
    """Deletes what is left of ended and abandoned files' content, and empties SQLite's log after
    erasures.
    """

    first_seconds = 5.0
    poll_seconds = 15.0
    failure_event = "cleaning_failed"

    def __init__(self, db: Database, **options: Any) -> None:
        super().__init__(db, **options)
        self._log_emptier = LogEmptier(db)

    def step(self) -> bool:
        delete_left_content(self._db, self._clock())
        delete_left_drafts(self._db, self._clock())
        self._log_emptier.step()
        return False


class RetentionPruner(BackgroundTask):
    """Takes the nightly turn of retention, if no other worker has: it looks each hour, and not
    while its worker still starts.
    """

    first_seconds = 120.0
    poll_seconds = 3600.0
    failure_event = "retention_failed"

    def __init__(self, config: Config, db: Database, **options: Any) -> None:
        super().__init__(db, **options)
        self._retention_days = retention_days(config)

    def step(self) -> bool:
        now = self._clock()
        if write_alone(self._db, lambda tx: begin_turn(tx, now)):
            requester = Requester("retention", f"retention-{now:%Y-%m-%d}", now)
            turn = RetentionTurn(
                self._db, self._clock, self._retention_days, requester, self._pause_turn
            )
            self._log.write(
                "retention_pruned", **{str(kind): count for kind, count in turn.run().items()}
            )
        return False

    def _pause_turn(self) -> bool:
        self._pause(PRUNE_PAUSE_SECONDS)
        return self._is_stopping


class CoverageDeriver(BackgroundTask):
    """Derives the members with coverages that begin or end, soon after the day has begun where they
    live.
    """

    first_seconds = 5.0
    poll_seconds = 300.0
    failure_event = "derivation_failed"

    def step(self) -> bool:
        if derived := self.derive():
            self._log.write("members_derived", members=derived)
        return False

    def derive(self) -> int:
        """Derive all that are due, a page at a time, and return their number. Raises Unavailable."""
        derived = 0
        after = None
        while True:
            page = write_alone(self._db, partial(derive_due, now=self._clock(), after=after))
            derived += page.derived
            after = page.next_after
            if after is None or self._is_stopping:
                return derived
            self._pause(PRUNE_PAUSE_SECONDS)


class QueuePruner(BackgroundTask):
    """Deletes queue events and estimates that are old enough, each hour, but not while its worker
    still starts.
    """

    first_seconds = 60.0
    poll_seconds = 3600.0
    failure_event = "queue_prune_failed"

    def step(self) -> bool:
        if total := self.prune():
            self._log.write("queue_pruned", events=total["events"], estimates=total["estimates"])
        return False

    def prune(self) -> Counter[str]:
        """Delete all that is old enough, a page at a time, and return the numbers. Raises
        Unavailable.
        """
        total = Counter[str]()
        while page := write_alone(
            self._db, lambda tx: prune(tx, now=self._clock(), age=DEFAULT_AGE)
        ):
            total += page
            self._pause(PRUNE_PAUSE_SECONDS)
            if self._is_stopping:
                break
        return total


class LapsedDutyEnder(BackgroundTask):
    """Ends the duties of doctors that have had no event for as long as their provider group says,
    and takes that back of doctors whose events came late.
    """

    first_seconds = 30.0
    poll_seconds = 300.0
    failure_event = "lapsed_duties_failed"

    def step(self) -> bool:
        if taken_back := self._by_group(take_back_lapses):
            self._log.write("lapses_taken_back", by_provider_group=taken_back)
        if ended := self._by_group(end_lapsed_duties):
            self._log.write("duties_lapsed", by_provider_group=ended)
        return False

    def _by_group(self, change: Callable[[Tx, datetime], Sequence[DutyChange]]) -> dict[str, int]:
        """Change all, a page at a time, and return their numbers by provider group. Raises
        Unavailable.
        """
        numbers = Counter[int]()
        while page := write_alone(self._db, lambda tx: change(tx, self._clock())):
            numbers.update(one.provider_group_id for one in page)
            self._pause(PRUNE_PAUSE_SECONDS)
            if self._is_stopping:
                break
        return {str(group): number for group, number in sorted(numbers.items())}
