"""Group commit: items that wait at the same time share a transaction.

A new group starts as soon as the previous one is done, with all items that wait by then; there is
no timer. Each caller is answered after the commit of its own group, or at its deadline. While a
group is held up, another lane takes the waiting items.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic

from frontdesk.db.engine import Item, Result
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable
from frontdesk.metering import IN_WORK, RequestCost, timed

# A group that takes longer is held up, by a lock or a slow disk: another lane then takes the
# waiting items.
HELD_UP_SECONDS = 0.05

# When a caller is refused, callers that have waited so long are refused too: retrying the lock
# would cost the same time again.
LONG_SECONDS = 2


@dataclass(slots=True, eq=False)
class _Caller(Generic[Item, Result]):
    item: Item
    future: asyncio.Future[Result]
    arrived_at: float
    cost: RequestCost | None  # of the request that waits
    is_in_group: bool = False


class GroupCommit(ABC, Generic[Item, Result]):
    """`await submit(item)` returns the item's result once its transaction has committed, or raises
    the item's own error.

    A subclass commits the groups. A caller that has waited as long as `deadlines` allow gets
    Unavailable: an item that was in no group by then is never written; the outcome of an item in a
    group is unknown.
    """

    def __init__(self, *, deadlines: Deadlines, lanes: int = 1, limit: int = 128) -> None:
        self._deadlines = deadlines
        self._most_lanes = lanes
        self._lanes_running = 0
        self._limit = limit
        self._waiting: deque[_Caller[Item, Result]] = deque()
        self._lanes: set[asyncio.Task[Any]] = set()  # with the groups of `submit_together`
        self._look: asyncio.TimerHandle | None = None
        self._stopping = False
        self._turn = asyncio.Lock()

    @abstractmethod
    async def commit_group(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        """Commit 1 to `limit` items; one result or error per item, in order. An exception is the
        result of all of them.
        """

    def count_waiting(self) -> int:
        return len(self._waiting)

    async def submit(self, item: Item) -> Result:
        if self._stopping:
            raise Unavailable("The server is stopping.")
        loop = asyncio.get_running_loop()
        caller: _Caller[Item, Result] = _Caller(
            item, loop.create_future(), loop.time(), IN_WORK.cost
        )
        self._waiting.append(caller)
        if self._lanes_running:
            self._watch(loop)
        else:
            self._start_lane()
        try:
            with self._deadlines.timeout():
                return await caller.future
        except TimeoutError:
            raise overdue(outcome_unknown=caller.is_in_group) from None

    async def submit_together(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        """One result or error per item, in order, after the commit of a group that has only these
        items.

        Such groups take turns, so that there is one beside the lanes of `submit`. Raises
        Unavailable.
        """
        begun = False
        cost = IN_WORK.cost
        try:
            with self._deadlines.timeout():
                async with self._turn:
                    if self._stopping:
                        raise Unavailable("The server is stopping.")
                    began_at = perf_counter()
                    group = asyncio.create_task(self._results_of(items))
                    begun = True
                    self._lanes.add(group)
                    group.add_done_callback(self._lanes.discard)
                    try:
                        # a caller that goes does not undo the group
                        return await asyncio.shield(group)
                    finally:
                        if cost is not None:
                            cost.database_seconds += perf_counter() - began_at
        except TimeoutError:
            raise overdue(outcome_unknown=begun) from None

    async def close(self) -> None:
        """Commit the items that wait, then stop."""
        self._stopping = True
        while self._lanes:
            await asyncio.wait(set(self._lanes))

    def _start_lane(self) -> None:
        self._lanes_running += 1
        lane = asyncio.create_task(self._run_lane())
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look again when the oldest waiting item has waited for HELD_UP_SECONDS, while a lane is
        free.
        """
        if self._look is None and self._waiting and self._lanes_running < self._most_lanes:
            ends_at = self._waiting[0].arrived_at + HELD_UP_SECONDS
            self._look = loop.call_at(ends_at, self._help_held_up, loop)

    def _help_held_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start another lane if callers have waited for HELD_UP_SECONDS; started sooner it would
        make the groups smaller.
        """
        self._look = None
        if self._waiting and self._waiting[0].arrived_at + HELD_UP_SECONDS <= loop.time():
            self._start_lane()
        self._watch(loop)

    async def _run_lane(self) -> None:
        while group := self._next_group():
            began_at = perf_counter()
            results = await self._results_of([caller.item for caller in group])
            share = (perf_counter() - began_at) / len(group)
            for caller in group:
                if caller.cost is not None:
                    caller.cost.database_seconds += share
            for caller, result in zip(group, results, strict=True):
                _answer(caller.future, result)
            if self._lanes_running > 1:
                break  # the other lane takes the waiting items, unless it is held up
        self._lanes_running -= 1
        self._watch(asyncio.get_running_loop())

    async def _results_of(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return await self.commit_group(items)
        except Exception as error:  # noqa: BLE001  # whatever it is, every caller must be answered
            if isinstance(error, Unavailable):
                self._refuse_long_waits()
            return [error] * len(items)

    def _next_group(self) -> list[_Caller[Item, Result]]:
        """The callers that have waited longest. A caller that was answered already is left out: its
        answer must stay true.
        """
        group: list[_Caller[Item, Result]] = []
        while self._waiting and len(group) < self._limit:
            caller = self._waiting.popleft()
            if not caller.future.done():
                caller.is_in_group = True
                group.append(caller)
        return group

    def _refuse_long_waits(self) -> None:
        limit = asyncio.get_running_loop().time() - LONG_SECONDS
        while self._waiting and self._waiting[0].arrived_at <= limit:
            _answer(self._waiting.popleft().future, Unavailable("The database is busy."))


class Writers(ThreadPoolExecutor):
    """`await run(work)`: what `work()` returns or raises, for blocking work that may write.

    Raises Unavailable when it takes longer than `deadlines` allow. Work that has not begun by then
    is cancelled; the outcome of work that has begun is unknown.
    """

    def __init__(self, threads: int, deadlines: Deadlines) -> None:
        super().__init__(threads, thread_name_prefix="write")
        self._deadlines = deadlines
        self._refused_at = float("-inf")

    async def run(self, work: Callable[[], Result]) -> Result:
        future = self.submit(self._unless_refused, timed(work), time.monotonic())
        try:
            with self._deadlines.timeout():
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise overdue(outcome_unknown=not future.cancel()) from None

    def _unless_refused(self, work: Callable[[], Result], arrived_at: float) -> Result:
        if self._refused_at > arrived_at + LONG_SECONDS:
            raise Unavailable("The database is busy.")
        try:
            return work()
        except Unavailable:
            self._refused_at = time.monotonic()
            raise


def overdue(*, outcome_unknown: bool) -> Unavailable:
    """The error for a caller after its deadline."""
    if not outcome_unknown:
        return Unavailable("The database did not answer in time.")
    return Unavailable(
        "The database did not answer in time, so it is not known whether the change is stored. "
        "Send it again: nothing is stored twice.",
        outcome_unknown=True,
    )


def _answer(future: "asyncio.Future[Result]", result: Result | Exception) -> None:
    if future.done():  # its caller has gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
