"""Deadlines for many waits of the same length, by one timer.

`asyncio.timeout` makes a timer for each wait, which took as long as parsing the JSON of a small body.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Wait:
    task: "asyncio.Task[object] | None"
    ends_at: float
    is_over: bool = False


class Deadlines:
    """`await within(awaitable)` raises TimeoutError after `seconds`. All waits are in one event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits: deque[_Wait] = deque()  # the oldest ends first
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, awaitable: Awaitable[Result]) -> Result:
        loop = asyncio.get_running_loop()
        wait = _Wait(asyncio.current_task(loop), loop.time() + self._seconds)
        self._waits.append(wait)
        if self._timer is None:
            self._timer = loop.call_at(wait.ends_at, self._end_overdue, loop)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if wait.is_over and wait.task is not None:
                wait.task.uncancel()
                raise TimeoutError from None
            raise
        finally:
            wait.task = None
            while self._waits and self._waits[0].task is None:
                self._waits.popleft()

    def shorten(self, seconds: float) -> None:
        """Every wait, under way or to come, ends within `seconds`."""
        loop = asyncio.get_running_loop()
        self._seconds = min(self._seconds, seconds)
        for wait in self._waits:
            wait.ends_at = min(wait.ends_at, loop.time() + self._seconds)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = loop.call_later(self._seconds, self._end_overdue, loop)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for wait in self._waits:
            if wait.ends_at > now:
                break
            if wait.task is not None and not wait.is_over:
                wait.is_over = True
                wait.task.cancel()
        coming = next((wait.ends_at for wait in self._waits if not wait.is_over), None)
        self._timer = None if coming is None else loop.call_at(coming, self._end_overdue, loop)
