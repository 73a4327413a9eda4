"""A thread that reads and parses ahead of its use, so that the thread that writes never waits long without looking up."""

import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

Item = TypeVar("Item")
# Called between two rows and while waiting: returns once the work may go on, raises if it is not wanted any more.
GoOn = Callable[[], None]

NICENESS = 10
LOOK_SECONDS = 1.0


class ProducerClosed(Exception):
    """The items are not wanted any more."""


class _Ended(NamedTuple):
    error: BaseException | None


class Producer(Generic[Item]):
    """Runs a generator in a thread, up to `ahead` items before they are taken.

    `make` gets a GoOn, which waits while `running` is cleared and raises ProducerClosed after the `with` block.
    """

    def __init__(
        self, make: Callable[[GoOn], Generator[Item]], running: threading.Event, *, ahead: int = 2
    ) -> None:
        self._make, self._running = make, running
        self._room = threading.Semaphore(ahead)
        self._made: queue.SimpleQueue[Item | _Ended] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Returns once the thread has ended, at its next row."""
        self._is_closed = True
        self._room.release()
        self._thread.join()

    def items(self, look_up: Callable[[], None]) -> Iterator[Item]:
        """The items in order. Calls `look_up` each LOOK_SECONDS without one. Raises what the generator raised."""
        while True:
            self._room.release()
            item = self._next(look_up)
            if isinstance(item, _Ended):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def _next(self, look_up: Callable[[], None]) -> Item | _Ended:
        while True:
            try:
                return self._made.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                look_up()

    def _go_on(self) -> None:
        if not self._running.is_set():
            self._running.wait()
        if self._is_closed:
            raise ProducerClosed

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            lower_priority()
            with closing(self._make(self._go_on)) as items:
                self._room.acquire()
                self._go_on()
                for item in items:
                    self._made.put(item)
                    self._room.acquire()
                    self._go_on()
        except BaseException as raised:  # noqa: BLE001 - raised again where the items are taken
            error = raised
        self._made.put(_Ended(error))


def lower_priority() -> None:
    """Let the threads that answer requests run before this thread; only Linux can."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
