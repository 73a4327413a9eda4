"""The part of a worker that loads eligibility files, one after the other in a thread; what a load does is not known here."""

import threading

from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.errors import Unavailable
from frontdesk.files import RunOptions, run_next
from frontdesk.worker.log import WorkerLog

POLL_SECONDS = 0.5


class FileLoader:
    """Works on whatever file waits, beside any number of other workers, from `start()` to `stop()`."""

    def __init__(
        self, config: Config, db: Database, *, clock: Clock = system_clock, log: WorkerLog | None = None
    ) -> None:
        self._db = db
        self._clock = clock
        self._log = log or WorkerLog()
        self._stopping = threading.Event()
        self._turn = RunOptions(config.uniqueness, stop=self._stopping.is_set)
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the chunks in hand; the next worker goes on from there. From any thread or a signal handler."""
        self._stopping.set()

    def join(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._step():
                self._stopping.wait(POLL_SECONDS)

    def _step(self) -> bool:
        try:
            return run_next(self._db, self._clock, self._turn)
        except Unavailable:
            return False
        except Exception as error:  # noqa: BLE001 - a file that fails by a fault of ours must not stop the others
            self._log.write("file_failed", error=type(error).__name__)
            return False
