"""One query for many identical reads. A read joins a query that has not STARTED when it arrives, never a running one.

So every caller sees each write that was acknowledged before it asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Answer = TypeVar("Answer")


class SharedReads(Generic[Answer]):
    """`await get(key, read)`: the answer of `await read()`, shared by all callers that wait for the same key.

    Raises Unavailable when the answer takes longer than `deadlines` allow, counted from this caller. A query has as long from
    its own start: one that hangs costs the callers of the next one time, and never their answer.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}
        self._next: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[Answer]]) -> Answer:
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._read(key, read))
        return await self._in_time(asyncio.shield(task))

    async def _in_time(self, answer: Awaitable[Answer]) -> Answer:
        try:
            with self._deadlines.timeout():
                return await answer
        except TimeoutError:
            raise Unavailable("The database did not answer in time.") from None

    async def _read(self, key: Hashable, read: Callable[[], Awaitable[Answer]]) -> Answer:
        before = self._running.get(key)
        try:
            if before is not None:
                await asyncio.wait([before])
        finally:
            task = self._next.pop(key)
        self._running[key] = task
        try:
            return await self._in_time(read())
        finally:
            del self._running[key]
