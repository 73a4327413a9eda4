"""When reading rows has taken so long that a worker should look up, however few they are: each may be long."""

import time

OVERTIME_SECONDS = 1.0
LOOK_CALLS = 10  # asking for the time costs as much as a tenth of a row


class Overtime:
    """`has_begun()` is True once the thread has worked for OVERTIME_SECONDS since it last was; one of `look_calls` calls looks.
    Waiting does not count, so that a machine that stands still changes nothing."""

    def __init__(self, *, look_calls: int = LOOK_CALLS) -> None:
        self._at, self._calls, self._look_calls = time.thread_time() + OVERTIME_SECONDS, 0, look_calls

    def has_begun(self) -> bool:
        self._calls += 1
        if self._calls % self._look_calls or (now := time.thread_time()) < self._at:
            return False
        self._at = now + OVERTIME_SECONDS
        return True
