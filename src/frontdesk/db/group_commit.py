"""Many callers, one transaction: items that wait together are run and committed together; it knows nothing of the items.

A new group starts as soon as a lane is free, with everything that came meanwhile; there is no timer. Each caller is
answered after ITS commit. With two lanes, one group is being written while the next is being prepared.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

# What one caller gets: its outcome, or the error that is its own.
Result = Outcome | Exception


class GroupCommit(Generic[Item, Outcome]):
    """`await submit(item)` returns the item's outcome once its transaction has committed.

    `run(items)` is called on a lane's thread with 1..`limit` items; it returns one result per item, in order, after
    committing. An exception it raises goes to every caller of the group.
    """

    def __init__(
        self, run: Callable[[Sequence[Item]], Sequence[Result[Outcome]]], *, lanes: int = 1, limit: int = 128
    ) -> None:
        self._run = run
        self._limit = limit
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._work = threading.Condition()
        self._stopping = False
        self._lanes = [
            threading.Thread(target=self._loop, name=f"group-commit-{lane}", daemon=True) for lane in range(lanes)
        ]
        for lane in self._lanes:
            lane.start()

    async def submit(self, item: Item) -> Outcome:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        with self._work:
            if self._stopping:
                raise Unavailable("The server is stopping.")
            self._waiting.append((item, future))
            self._work.notify()
        return await future

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._work:
            self._stopping = True
            self._work.notify_all()
        for lane in self._lanes:
            lane.join()

    def _loop(self) -> None:
        while group := self._next_group():
            try:
                results = self._run([item for item, _ in group])
            except Exception as error:
                results = [error] * len(group)
            futures = [future for _, future in group]
            futures[0].get_loop().call_soon_threadsafe(_settle, futures, results)

    def _next_group(self) -> list[tuple[Item, "asyncio.Future[Outcome]"]]:
        with self._work:
            while not self._waiting and not self._stopping:
                self._work.wait()
            return [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]


def _settle(futures: Sequence["asyncio.Future[Outcome]"], results: Sequence[Result[Outcome]]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():  # its caller has gone
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
