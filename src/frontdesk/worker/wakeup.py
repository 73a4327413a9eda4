"""A wait that can be ended early."""

from contextlib import suppress
from queue import Empty, SimpleQueue

# How often a worker asks for work that nobody told it of: a lost notification, a retry or a lease that is due.
IDLE_SECONDS = 2.0


class Wakeup:
    """`wait(seconds)` ends early after `set()`, from any thread or a signal handler.

    Not an Event: a signal handler that sets it can interrupt the thread that is about to wait for it, and would then wait
    for the Event's lock for good. The put of a SimpleQueue takes no such lock.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        if self._calls.empty():  # a worker that is busy for hours must not gather them
            self._calls.put(None)

    def wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._calls.get(timeout=seconds)
            while True:
                self._calls.get_nowait()
