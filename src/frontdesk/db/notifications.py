"""Wakes workers after commits that may have made work, so that they need not poll often
(docs/decisions/0078).

PostgreSQL: NOTIFY, after the commit that made the work. Within that transaction it would take a
lock that all commits share. SQLite: a worker sees that another connection has committed. After a
lost notification the work waits for the worker's next poll.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Self

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from frontdesk.errors import Unavailable

CHANNEL = "frontdesk_work"  # of one database: each has channels of its own
SEND_PAUSE_SECONDS = 0.05
CLOSE_SECONDS = 1.0
LOOK_SECONDS = 0.1  # between two checks of SQLite's file, of some microseconds each
RETRY_SECONDS = 1.0

# It holds no data, so its commit need not wait for the disk.
_NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}; COMMIT"


class WorkNotifier:
    """Sends notifications on PostgreSQL from a thread: at once, then at most one in 50 ms."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()
        self._is_wanted = self._is_closing = False

    def notify(self) -> None:
        """Returns at once."""
        self._is_wanted = True
        if self._thread is None:  # not earlier: most commands notify nobody
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
                    self._thread.start()
        self._changed.set()

    def close(self) -> None:
        """Send pending notifications, for a second at most."""
        if self._thread is not None:
            self._is_closing = True
            self._changed.set()
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            self._changed.wait()
            self._changed.clear()
            is_closing = self._is_closing
            if self._is_wanted:
                self._is_wanted = False
                with suppress(SQLAlchemyError), self._engine.connect() as connection:
                    connection.exec_driver_sql(_NOTIFY)
                time.sleep(SEND_PAUSE_SECONDS)


class WorkListener:
    """Calls `wake`, from a thread, when another process may have made work. `with listener:` starts
    and stops it.
    """

    def __init__(self, engine: Engine, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._wake = wake
        self._stop_here, self._stop_there = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="listen", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_there.close()
        self._thread.join(CLOSE_SECONDS)  # a database that hangs must not hold up the end
        if not self._thread.is_alive():
            self._stop_here.close()

    def _run(self) -> None:
        listen = self._watch_file if self._engine.dialect.name == "sqlite" else self._listen
        is_stopping = False
        while not is_stopping:
            try:
                with closing(self._open()) as driver:
                    listen(driver)
                is_stopping = True
            except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error, Unavailable):
                is_stopping = self._stops_within(RETRY_SECONDS)

    def _open(self) -> Any:
        """A connection of the driver, that the pool neither gives to others nor resets: it would
        log that a lost one can't be.
        """
        connection = self._engine.raw_connection()
        connection.detach()
        driver = connection.dbapi_connection
        connection.invalidate()
        return driver

    def _listen(self, driver: Any) -> None:
        driver.autocommit = True
        driver.execute(f"LISTEN {CHANNEL}")
        self._wake()  # nobody listened until now
        while not self._stops_within(None, driver):
            for _ in driver.notifies(timeout=0):
                self._wake()

    def _watch_file(self, driver: Any) -> None:
        seen = None
        while True:
            [version] = driver.execute("PRAGMA data_version").fetchone()
            if version != seen:
                self._wake()
                seen = version
            if self._stops_within(LOOK_SECONDS):
                return

    def _stops_within(self, seconds: float | None, *others: Any) -> bool:
        """Wait so long, or until one of `others` is readable. True if `stop()` was called."""
        return self._stop_here in select.select([self._stop_here, *others], [], [], seconds)[0]
