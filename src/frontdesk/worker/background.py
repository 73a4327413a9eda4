"""What a worker does beside delivering, each in a thread: loading eligibility files, and pruning old queue events."""

import threading
from abc import ABC, abstractmethod
from typing import Self

from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.errors import Unavailable
from frontdesk.files import RunOptions, run_next
from frontdesk.queues.model import PruneReport
from frontdesk.queues.upkeep import DEFAULT_AGE, prune
from frontdesk.worker.log import WorkerLog

UNAVAILABLE_SECONDS = 60.0  # until the next step after the database was unavailable, at most
PRUNE_PAUSE_SECONDS = 0.2  # between pages, so that ingesting events waits for a moment only


class BackgroundTask(threading.Thread, ABC):
    """Runs `step` again and again until `stop()`, beside the same task of any number of other workers.

    `with task:` starts it, and at the end stops it and waits until its step has ended, whatever the block raised.
    """

    first_seconds: float  # until the first step
    poll_seconds: float  # until the next step after one that found nothing to do
    failure_event: str  # the log's event when a step fails by an error of ours; later steps still run

    def __init__(self, db: Database, *, clock: Clock = system_clock, log: WorkerLog | None = None) -> None:
        super().__init__(name=type(self).__name__, daemon=True)
        self._db = db
        self._clock = clock
        self._log = log or WorkerLog()
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.join()

    def stop(self) -> None:
        """Stop after the chunks or the page in work. From any thread or a signal handler."""
        if (
            not self._stopping.is_set()
        ):  # a signal between two lines of `set` would wait for its lock for good
            self._stopping.set()

    @abstractmethod
    def step(self) -> bool:
        """Returns False when there was nothing to do. Raises Unavailable."""

    def run(self) -> None:
        wait = self.first_seconds
        while not self._stopping.wait(wait):
            try:
                wait = 0.0 if self.step() else self.poll_seconds
            except Unavailable:
                wait = min(self.poll_seconds, UNAVAILABLE_SECONDS)
            except Exception as error:  # noqa: BLE001 - see failure_event
                self._log.write(self.failure_event, error=type(error).__name__)
                wait = self.poll_seconds


class FileLoader(BackgroundTask):
    """Loads the files that wait, one after the other; after `stop()` the next worker goes on from the same chunk."""

    first_seconds, poll_seconds = 0.0, 0.5
    failure_event = "file_failed"

    def __init__(
        self, config: Config, db: Database, *, clock: Clock = system_clock, log: WorkerLog | None = None
    ) -> None:
        super().__init__(db, clock=clock, log=log)
        self._options = RunOptions(config.uniqueness, should_stop=self._stopping.is_set)

    def step(self) -> bool:
        return run_next(self._db, self._clock, self._options)


class QueuePruner(BackgroundTask):
    """Deletes queue events and estimates that are old enough, each hour, but not while its worker still starts."""

    first_seconds, poll_seconds = 60.0, 3600.0
    failure_event = "queue_prune_failed"

    def step(self) -> bool:
        if total := self.prune():
            self._log.write("queue_pruned", events=total.events, estimates=total.estimates)
        return False

    def prune(self) -> PruneReport:
        """Delete all that is old enough, a page at a time. Raises Unavailable."""
        total = PruneReport()
        while page := write_alone(self._db, lambda tx: prune(tx, now=self._clock(), age=DEFAULT_AGE)):
            total += page
            if self._stopping.wait(PRUNE_PAUSE_SECONDS):
                break
        return total
