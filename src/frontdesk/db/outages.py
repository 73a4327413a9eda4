"""Notices that the database is away from this process, and that it is back, each once."""

import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from frontdesk.db.failures import AWAY
from frontdesk.errors import Unavailable

AWAY_EVENT, BACK_EVENT = "database_away", "database_back"
QUIET_SECONDS = 10.0


class DatabaseOutage:
    """Gets every failure of this process's connections and, during an outage, the first success.

    `tell(event, **values)` writes a line of the log; a command has no log, so by default nothing is told. A connection that turns
    out to be dead is no outage: it is replaced, and only when that fails too is the database away. An outage that begins within
    10 s of the last one is not told: of a server that takes some connections and refuses others, each request would be.
    """

    def __init__(self) -> None:
        self.tell: Callable[..., Any] = lambda *_, **__: None
        self._began_at: float | None = None
        self._quiet_until = float("-inf")
        self._changing = threading.Lock()

    def failed(self, error: Unavailable) -> None:
        if error.code not in AWAY:
            return
        with self._changing:
            now = monotonic()
            if self._began_at is not None or now < self._quiet_until:
                return
            self._began_at, self._quiet_until = now, now + QUIET_SECONDS
        self.tell(AWAY_EVENT, pid=os.getpid(), cause=error.code, detail=error.detail)

    def answered(self) -> None:
        if self._began_at is None:
            return
        with self._changing:
            began_at, self._began_at = self._began_at, None
        if began_at is not None:
            self.tell(BACK_EVENT, pid=os.getpid(), seconds=round(monotonic() - began_at, 1))
