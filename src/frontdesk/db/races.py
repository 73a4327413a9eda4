"""Concurrent writes of the same rows: lost races are repeated, and items that wait at the same time share a commit.

Group commit: a new group starts as soon as the previous one is done, with all items that wait by then; there is no timer. Each
caller is answered after the commit of its own group, or at its deadline. While a group is held up, another lane takes the waiting
items.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from sqlalchemy.exc import DBAPIError

from frontdesk.db.engine import Tx
from frontdesk.db.failures import StateChanged, is_deadlock, lost_race
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
OpenTx_co = TypeVar("OpenTx_co", covariant=True)
AnyTx = TypeVar("AnyTx")
# One result, or the item's own error, per item.
Work = Callable[[AnyTx, Sequence[Item]], Sequence[Result | Exception]]

ATTEMPTS_TOGETHER = 3
ATTEMPTS_ALONE = 8

# When other transactions lock rows of a set, its items share this time to wait for locks; after LAST_SECONDS no item is tried.
SHARED_SECONDS, LAST_SECONDS = 3.0, 5.0
SHORTEST_WAIT_SECONDS = 0.02

# A group that takes longer is held up, by a lock or a slow disk: another lane then takes the waiting items.
HELD_UP_SECONDS = 0.05

# When a caller is refused, callers that have waited so long are refused too: retrying the lock would cost the same time again.
LONG_SECONDS = 2

OTHERS_WRITE = "Other requests keep changing the same record."


class Writable(Protocol[OpenTx_co]):
    """A database that opens writing transactions: `Database` or `PipelineDatabase`."""

    def write(self, *, wait_seconds: float | None = None) -> AbstractContextManager[OpenTx_co]: ...


def write_together(
    db: Writable[AnyTx],
    items: Sequence[Item],
    work: Work[AnyTx, Item, Result],
    *,
    wait_seconds: float | None = None,
) -> list[Result | Exception]:
    """Write the items by `work(tx, items)` in one transaction: one result, or the item's own error, per item.

    After a lost race (unique violation, deadlock, dead connection, StateChanged) the set runs again on the new state. If that
    fails too, it runs item by item, so that a bad or locked item does not fail the others. Raises Unavailable when no item can
    be written.
    """
    is_alone = len(items) == 1
    try:
        return [*_attempt(db, lambda tx: work(tx, items), ATTEMPTS_TOGETHER, wait_seconds)]
    except Unavailable as error:
        if is_alone or not error.busy:
            raise
        is_busy = True
    except Exception as error:  # noqa: BLE001  # one item may be the cause, and each gets its own answer
        if is_alone and not lost_race(error):
            return [error]  # it would only fail again
        is_busy = False
    return _one_by_one(db, items, work, is_busy=is_busy)


def _one_by_one(
    db: Writable[AnyTx], items: Sequence[Item], work: Work[AnyTx, Item, Result], *, is_busy: bool
) -> list[Result | Exception]:
    """When other transactions lock rows, each item waits for its share of the time, so free items are written soon."""
    results: list[Result | Exception] = []
    started = time.monotonic()
    for position, item in enumerate(items):
        left = SHARED_SECONDS - (time.monotonic() - started)
        share = max(SHORTEST_WAIT_SECONDS, left / (len(items) - position)) if is_busy else None
        try:
            results += _attempt(db, partial(_write_one, work, item), ATTEMPTS_ALONE, share)
        except Exception as error:  # noqa: BLE001  # it is the item's answer
            results.append(Unavailable(OTHERS_WRITE) if lost_race(error) else error)
        is_away = isinstance(results[-1], Unavailable) and not results[-1].busy
        if is_busy and (is_away or time.monotonic() - started > LAST_SECONDS):
            break
    refused = Unavailable("The database is busy.", busy=True)
    return results + [refused] * (len(items) - len(results))


def _write_one(work: Work[AnyTx, Item, Result], item: Item, tx: AnyTx) -> Sequence[Result | Exception]:
    return work(tx, [item])


def write_alone(
    db: Writable[AnyTx], work: Callable[[AnyTx], Result], *, wait_seconds: float | None = None
) -> Result:
    """`work(tx)` in one transaction, repeated after a lost race. Raises what `work` raises, and Unavailable."""
    [result] = write_together(db, [work], lambda tx, works: [works[0](tx)], wait_seconds=wait_seconds)
    if isinstance(result, Exception):
        raise result
    return result


def write_in_one(
    db: Writable[Tx],
    items: Sequence[Item],
    work: Work[Tx, Item, Result],
    *,
    save: Callable[[Tx, Sequence[Result | Exception]], None],
    begin: Callable[[], None] | None = None,
) -> None:
    """Write the items and `save(tx, results)` in ONE transaction. `begin()` precedes each attempt.

    After lost races the items run one by one behind savepoints of one transaction. An item that can't be written has an error as
    its result: Unavailable if other requests keep changing the same rows, else the driver's.
    Raises Unavailable, and what `save` raises.
    """

    def attempt(tx: Tx, *, is_split: bool = False) -> None:
        if begin is not None:
            begin()
        if is_split:
            save(tx, [_behind_savepoint(tx, item, work) for item in items])
        else:
            save(tx, work(tx, items) if items else [])

    try:
        _attempt(db, attempt, ATTEMPTS_TOGETHER)
    except (DBAPIError, StateChanged):
        _attempt(db, lambda tx: attempt(tx, is_split=True), ATTEMPTS_ALONE)


def _attempt(
    db: Writable[AnyTx], work: Callable[[AnyTx], Result], limit: int, wait_seconds: float | None = None
) -> Result:
    """`work(tx)` in one transaction, repeated after lost races. Raises the error of the last attempt."""
    while True:
        limit -= 1
        try:
            with db.write(wait_seconds=wait_seconds) as tx:
                result = work(tx)
        except (DBAPIError, StateChanged, Unavailable) as error:
            is_stale = isinstance(error, Unavailable) and error.stale_connection
            if limit == 0 or not (is_stale or lost_race(error)):
                raise
        else:
            return result


def _behind_savepoint(tx: Tx, item: Item, work: Work[Tx, Item, Result]) -> Result | Exception:
    for _ in range(ATTEMPTS_ALONE):
        try:
            with tx.begin_nested():
                [result] = work(tx, [item])
        except (DBAPIError, StateChanged) as error:
            if isinstance(error, DBAPIError) and is_deadlock(error):
                raise  # the whole transaction is gone
            if not lost_race(error):
                return error
        else:
            return result
    return Unavailable(OTHERS_WRITE)


@dataclass(slots=True, eq=False)
class _Caller(Generic[Item, Result]):
    item: Item
    future: asyncio.Future[Result]
    arrived_at: float
    is_in_group: bool = False


class GroupCommit(ABC, Generic[Item, Result]):
    """`await submit(item)` returns the item's result once its transaction has committed, or raises the item's own error.

    A subclass commits the groups. A caller that has waited as long as `deadlines` allow gets Unavailable: an item that was in no
    group by then is never written; the outcome of an item in a group is unknown.
    """

    def __init__(self, *, deadlines: Deadlines, lanes: int = 1, limit: int = 128) -> None:
        self._deadlines = deadlines
        self._most_lanes, self._lanes_running = lanes, 0
        self._limit = limit
        self._waiting: deque[_Caller[Item, Result]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()
        self._look: asyncio.TimerHandle | None = None
        self._stopping = False

    @abstractmethod
    async def commit_group(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        """Commit 1 to `limit` items; one result or error per item, in order. An exception is the result of all of them."""

    async def submit(self, item: Item) -> Result:
        if self._stopping:
            raise Unavailable("The server is stopping.")
        loop = asyncio.get_running_loop()
        caller: _Caller[Item, Result] = _Caller(item, loop.create_future(), loop.time())
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
        """Look again when the oldest waiting item has waited for HELD_UP_SECONDS, while a lane is free."""
        if self._look is None and self._waiting and self._lanes_running < self._most_lanes:
            ends_at = self._waiting[0].arrived_at + HELD_UP_SECONDS
            self._look = loop.call_at(ends_at, self._help_held_up, loop)

    def _help_held_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start another lane if callers have waited for HELD_UP_SECONDS; started sooner it would make the groups smaller."""
        self._look = None
        if self._waiting and self._waiting[0].arrived_at + HELD_UP_SECONDS <= loop.time():
            self._start_lane()
        self._watch(loop)

    async def _run_lane(self) -> None:
        while group := self._next_group():
            results: Sequence[Result | Exception]
            try:
                results = await self.commit_group([caller.item for caller in group])
            except Exception as error:  # noqa: BLE001  # whatever it is, every caller must be answered
                results = [error] * len(group)
                if isinstance(error, Unavailable):
                    self._refuse_long_waits()
            for caller, result in zip(group, results, strict=True):
                _answer(caller.future, result)
            if self._lanes_running > 1:
                break  # the other lane takes the waiting items, unless it is held up
        self._lanes_running -= 1
        self._watch(asyncio.get_running_loop())

    def _next_group(self) -> list[_Caller[Item, Result]]:
        """The callers that have waited longest. A caller that was answered already is left out: its answer must stay true."""
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

    Raises Unavailable when it takes longer than `deadlines` allow. Work that has not begun by then is cancelled; the
    outcome of work that has begun is unknown.
    """

    def __init__(self, threads: int, deadlines: Deadlines) -> None:
        super().__init__(threads, thread_name_prefix="write")
        self._deadlines = deadlines
        self._refused_at = float("-inf")

    async def run(self, work: Callable[[], Result]) -> Result:
        future = self.submit(self._unless_refused, work, time.monotonic())
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
        "The database did not answer in time, so it is not known whether the change is stored. Send it again: nothing is "
        "stored twice.",
        outcome_unknown=True,
    )


def _answer(future: "asyncio.Future[Result]", result: Result | Exception) -> None:
    if future.done():  # its caller has gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
