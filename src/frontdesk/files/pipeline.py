"""Two chunks of a file written at the same time and committed in the file's order: this process decides about one while the
database writes the other. What a chunk is and how it is written is not known here.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import TypeVar

Item = TypeVar("Item")

NICENESS = 10
PATIENCE_SECONDS = 0.3  # less than a POST waits for a lock, so that it is not the POST that gives up


def give_way() -> None:
    """This thread (of a process with one, the process) goes behind those that somebody waits for; only Linux can."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class OutOfTurn(Exception):
    """The chunk before is not committed yet. It may be waiting for what this one has locked: roll back, `stand`, begin anew."""


class _Ahead(Exception):
    """The chunk before failed, so this one must not be committed."""


class CommitTurn:
    """A chunk's place in the order."""

    def __init__(self, before: "Future[None] | None" = None) -> None:
        self._before = before

    def come(self) -> None:
        """Return once the chunk before is committed. Raises OutOfTurn when that takes long."""
        if self._before is not None:
            if wait_for([self._before], PATIENCE_SECONDS).not_done:
                raise OutOfTurn
            if self._before.exception() is not None:
                raise _Ahead
            self._before = None

    def stand(self) -> None:
        """Wait, holding nothing, until the chunk before has ended; each of its statements ends in time."""
        if self._before is not None:
            wait_for([self._before])


def write_in_turn(
    items: Iterable[Item],
    write: Callable[[Item, CommitTurn], None],
    *,
    keys_of: Callable[[Item], set[str]],
    lanes: int,
) -> None:
    """`write(item, place)` for each item, `lanes` of them at a time, until one raises or `items` does; that is raised when
    all that have begun have ended. `write` calls `place.come()` before it commits.

    Items that share a key are written one after the other: the second one is to see what the first has done.
    """
    if lanes == 1:
        for item in items:
            write(item, CommitTurn())
        return

    def run(item: Item, place: CommitTurn, *, shares: bool) -> None:
        if shares:
            place.stand()
        write(item, place)

    with ThreadPoolExecutor(lanes, thread_name_prefix="lane", initializer=give_way) as pool:
        begun: deque[tuple[Future[None], set[str]]] = deque()
        try:
            for item in items:
                keys = keys_of(item)
                shares = any(not keys.isdisjoint(others) for _, others in begun)
                place = CommitTurn(begun[-1][0] if begun else None)
                begun.append((pool.submit(run, item, place, shares=shares), keys))
                if len(begun) > lanes:  # one more is read, and waits for a thread
                    begun[0][0].result()
                    begun.popleft()
        finally:
            for future, _ in begun:
                future.result()  # an error of what has begun goes before that of the items
