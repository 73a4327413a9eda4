"""One query for many identical reads: a read may join a query that has not STARTED when it arrives, never one under way.

So every caller sees each write that was acknowledged before it asked.
"""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class SharedReads(Generic[Answer]):
    """`await get(key, read)`: the answer of `read()`, run on `executor`, shared by those who wait for the same key."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}
        self._next: dict[Hashable, asyncio.Task[Answer]] = {}

    async def get(self, key: Hashable, read: Callable[[], Answer]) -> Answer:
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._read(key, read))
        return await asyncio.shield(task)

    async def _read(self, key: Hashable, read: Callable[[], Answer]) -> Answer:
        before = self._running.get(key)
        if before is not None:
            await asyncio.wait([before])
        self._running[key] = self._next.pop(key)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, read)
        finally:
            del self._running[key]
