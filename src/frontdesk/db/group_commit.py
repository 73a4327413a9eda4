"""Many callers, one transaction: items that wait together are run and committed together; it knows nothing of the items.

A new group starts as soon as a lane is free, with everything that came meanwhile; no timer holds it back. Each caller is
answered after ITS commit, or when its time is over. With two lanes, one group is prepared while the database writes the
other.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


# Who has waited so long when a group is refused is refused with it: to wait for the same lock again, one group after the
# other, would take each of them the same time again.
LONG_SECONDS = 2


class _Caller(Generic[Item, Outcome]):
    __slots__ = ("arrived_at", "future", "is_taken", "item")

    def __init__(self, item: Item, loop: asyncio.AbstractEventLoop) -> None:
        self.item = item
        self.future: asyncio.Future[Outcome] = loop.create_future()
        self.arrived_at = loop.time()
        self.is_taken = False


class GroupCommit(Generic[Item, Outcome]):
    """`await submit(item)` returns the item's outcome once its transaction has committed, or raises the item's own error.

    `run(items)` gets 1..`limit` items and returns one outcome or exception per item, in order, after committing. An
    exception it raises goes to every caller of the group. Whoever has waited as long as `deadlines` allow gets Unavailable:
    what was not in a group by then is never written; of what was, the outcome is not known.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        deadlines: Deadlines,
        lanes: int = 1,
        limit: int = 128,
        long_seconds: float = LONG_SECONDS,
    ) -> None:
        self._long_seconds = long_seconds
        self._deadlines = deadlines
        self._run = run
        self._lanes_free = lanes
        self._limit = limit
        self._waiting: deque[_Caller[Item, Outcome]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def submit(self, item: Item) -> Outcome:
        if self._stopping:
            raise Unavailable("The server is stopping.")
        caller: _Caller[Item, Outcome] = _Caller(item, asyncio.get_running_loop())
        self._waiting.append(caller)
        if self._lanes_free:
            self._lanes_free -= 1
            lane = asyncio.create_task(self._lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        try:
            return await self._deadlines.within(caller.future)
        except TimeoutError:
            raise overdue(outcome_unknown=caller.is_taken) from None

    async def close(self) -> None:
        """Finish what waits, then stop."""
        self._stopping = True
        while self._lanes:
            await asyncio.wait(set(self._lanes))

    async def _lane(self) -> None:
        while group := self._next_group():
            results: Sequence[Outcome | Exception]
            try:
                results = await self._run([caller.item for caller in group])
            except Exception as error:  # noqa: BLE001  # whatever it is, every caller must be answered
                results = [error] * len(group)
                if isinstance(error, Unavailable):
                    self._refuse_who_waited_long()
            for caller, result in zip(group, results, strict=True):
                _settle(caller.future, result)
        self._lanes_free += 1

    def _next_group(self) -> list[_Caller[Item, Outcome]]:
        """Those who have waited longest, without those who have gone: what they were told still has to be true."""
        group: list[_Caller[Item, Outcome]] = []
        while self._waiting and len(group) < self._limit:
            caller = self._waiting.popleft()
            if not caller.future.done():
                caller.is_taken = True
                group.append(caller)
        return group

    def _refuse_who_waited_long(self) -> None:
        limit = asyncio.get_running_loop().time() - self._long_seconds
        while self._waiting and self._waiting[0].arrived_at <= limit:
            _settle(self._waiting.popleft().future, Unavailable("The database is busy."))


def overdue(*, outcome_unknown: bool) -> Unavailable:
    """What a caller is told whose time is over."""
    if not outcome_unknown:
        return Unavailable("The database did not answer in time.")
    return Unavailable(
        "The database did not answer in time, so it is not known whether the change is stored. Send it again: nothing is "
        "stored twice.",
        outcome_unknown=True,
    )


def _settle(future: "asyncio.Future[Outcome]", result: Outcome | Exception) -> None:
    if future.done():  # its caller has gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
