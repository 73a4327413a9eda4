"""The part of a worker that loads eligibility files, one after the other, in a thread."""

import threading

from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.errors import Unavailable
from frontdesk.files import RunOptions, run_next
from frontdesk.worker.log import WorkerLog

POLL_SECONDS = 0.5


class FileLoader:
    """Works on the files that wait, beside any number of other workers, from `start()` to `stop()`."""

    def __init__(
        self, config: Config, db: Database, *, clock: Clock = system_clock, log: WorkerLog | None = None
    ) -> None:
        self._db = db
        self._clock = clock
        self._log = log or WorkerLog()
        self._stopping = threading.Event()
        self._options = RunOptions(config.uniqueness, should_stop=self._stopping.is_set)
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current chunks; the next worker goes on from there. Safe in any thread and signal handler."""
        self._stopping.set()

    def join(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._run_next():
                self._stopping.wait(POLL_SECONDS)

    def _run_next(self) -> bool:
        try:
            return run_next(self._db, self._clock, self._options)
        except Unavailable:
            return False
        except Exception as error:  # noqa: BLE001 - a file that fails by a fault of ours must not stop the others
            self._log.write("file_failed", error=type(error).__name__)
            return False
