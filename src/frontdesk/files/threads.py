"""Reading ahead, and writing side by side what is committed in order: what a load does in threads.

On PostgreSQL two chunks are written at once and committed in the file's order.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

Item = TypeVar("Item")
NICENESS = 10
PATIENCE_SECONDS = 0.3  # less than a POST waits for a lock, so that the POST is not the one that gives up
_END: Final = None


def lower_priority() -> None:
    """Let the threads that answer requests run before this thread; only Linux can."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def prefetch(items: Iterator[Item], *, depth: int = 2) -> Generator[Item, None, None]:
    """The items in order; a thread of lower priority takes up to `depth` of them ahead. Raises what `items` raises."""
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch", initializer=lower_priority) as pool:
        pending = deque(pool.submit(next, items, _END) for _ in range(depth))
        try:
            while (item := pending.popleft().result()) is not _END:
                pending.append(pool.submit(next, items, _END))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)


class OutOfTurn(Exception):
    """The chunk before is not committed yet, perhaps because it waits for a lock of this one: roll back, `wait`, begin anew."""


class _EarlierFailed(Exception):
    """An earlier chunk failed, so this one must not be committed."""


class CommitTurn:
    """The place of a chunk in the order of commits."""

    def __init__(self, before: "Future[None] | None" = None) -> None:
        self._before = before

    def take(self) -> None:
        """Return once the chunk before is committed. Raises OutOfTurn after PATIENCE_SECONDS."""
        if self._before is not None:
            if wait([self._before], PATIENCE_SECONDS).not_done:
                raise OutOfTurn
            if self._before.exception() is not None:
                raise _EarlierFailed
            self._before = None

    def wait(self) -> None:
        """Wait, holding no lock, until the chunk before has ended. Its statements have timeouts, so it does end."""
        if self._before is not None:
            wait([self._before])


def ordered_commit(
    items: Iterable[Item],
    write: Callable[[Item, CommitTurn], None],
    *,
    keys_of: Callable[[Item], set[str]],
    threads: int,
) -> None:
    """Call `write(item, turn)` for each item, in up to `threads` threads; `write` calls `turn.take()` before it commits.

    Items that share a key are written one after the other, so that the later one sees what the earlier one did. Raises the
    first error of a write, else that of `items`, once every write that has begun has ended.
    """
    if threads == 1:
        for item in items:
            write(item, CommitTurn())
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="commit", initializer=lower_priority) as pool:
        begun: deque[tuple[Future[None], set[str]]] = deque()
        try:
            for item in items:
                keys = keys_of(item)
                turn = CommitTurn(begun[-1][0] if begun else None)
                if any(not keys.isdisjoint(others) for _, others in begun):
                    turn.wait()
                begun.append((pool.submit(write, item, turn), keys))
                if len(begun) > threads:  # one more is read, and waits for a thread
                    begun[0][0].result()
                    begun.popleft()
        finally:
            for future, _ in begun:
                future.result()  # an error of a write goes before that of the items
