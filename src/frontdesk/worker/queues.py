"""The part of a worker that deletes old queue events and estimates (`queues.prune`)."""

import threading

from frontdesk.clock import Clock, system_clock
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.errors import Unavailable
from frontdesk.queues import prune
from frontdesk.queues.model import PruneReport
from frontdesk.queues.upkeep import DEFAULT_AGE
from frontdesk.worker.log import WorkerLog

FIRST_SECONDS = 60.0  # a worker that has just started has more urgent work
EVERY_SECONDS = 3600.0
PAUSE_SECONDS = 0.2  # between pages, so that new events wait for a moment only


class QueuePruner:
    """Deletes old rows every hour, from `start()` to `stop()`. Any number of workers may do so at once."""

    def __init__(self, db: Database, *, clock: Clock = system_clock, log: WorkerLog | None = None) -> None:
        self._db = db
        self._clock = clock
        self._log = log or WorkerLog()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queues", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the page in hand. From any thread or a signal handler."""
        self._stopping.set()

    def join(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def turn(self) -> PruneReport:
        """Delete all rows that are old enough, a page at a time. Raises Unavailable."""
        total = PruneReport()
        while page := write_alone(self._db, lambda tx: prune(tx, now=self._clock(), age=DEFAULT_AGE)):
            total += page
            if self._stopping.wait(PAUSE_SECONDS):
                break
        return total

    def _run(self) -> None:
        wait = FIRST_SECONDS
        while not self._stopping.wait(wait):
            wait = EVERY_SECONDS
            try:
                total = self.turn()
            except Unavailable:
                wait = FIRST_SECONDS
            except Exception as error:  # noqa: BLE001 - a fault of ours here must not end the worker's other parts
                self._log.write("queue_prune_failed", error=type(error).__name__)
            else:
                if total:
                    self._log.write("queue_pruned", events=total.events, estimates=total.estimates)
