"""Many callers, one transaction: items that wait together are run and committed together; it knows nothing of the items.

A new group starts as soon as a lane is free, with everything that came meanwhile; there is no timer. Each caller is
answered after ITS commit. With two lanes, one group is prepared while the database writes the other.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class GroupCommit(Generic[Item, Outcome]):
    """`await submit(item)` returns the item's outcome once its transaction has committed, or raises the item's own error.

    `run(items)` gets 1..`limit` items and returns one outcome or exception per item, in order, after committing. An
    exception it raises goes to every caller of the group.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        lanes: int = 1,
        limit: int = 128,
    ) -> None:
        self._run = run
        self._lanes_free = lanes
        self._limit = limit
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def submit(self, item: Item) -> Outcome:
        if self._stopping:
            raise Unavailable("The server is stopping.")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._lanes_free:
            self._lanes_free -= 1
            lane = asyncio.create_task(self._lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await future

    async def close(self) -> None:
        """Finish what waits, then stop."""
        self._stopping = True
        while self._lanes:
            await asyncio.wait(set(self._lanes))

    async def _lane(self) -> None:
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
            results: Sequence[Outcome | Exception]
            try:
                results = await self._run([item for item, _ in group])
            except Exception as error:  # noqa: BLE001  # whatever it is, every caller must be answered
                results = [error] * len(group)
            for (_, future), result in zip(group, results, strict=True):
                _settle(future, result)
        self._lanes_free += 1


def _settle(future: "asyncio.Future[Outcome]", result: Outcome | Exception) -> None:
    if future.done():  # its caller has gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
