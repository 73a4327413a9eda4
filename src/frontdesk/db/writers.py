"""Blocking work that may write, in threads of its own."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from frontdesk.db.group_commit import LONG_SECONDS, overdue
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable

Result = TypeVar("Result")


class Writers:
    """`await run(work)`: what `work()` returns or raises.

    Raises Unavailable when it takes longer than `deadlines` allow. Work that has not begun by then is never done; the
    outcome of work that has begun is unknown.
    """

    def __init__(self, threads: int, deadlines: Deadlines) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="write")
        self._deadlines = deadlines
        self._refused_at = float("-inf")

    async def run(self, work: Callable[[], Result]) -> Result:
        arrived_at = time.monotonic()
        future = self._executor.submit(lambda: self._unless_refused(work, arrived_at))
        try:
            return await self._deadlines.within(asyncio.wrap_future(future))
        except TimeoutError:
            raise overdue(outcome_unknown=not future.cancel()) from None

    def shutdown(self, *, wait: bool, cancel_futures: bool) -> None:
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _unless_refused(self, work: Callable[[], Result], arrived_at: float) -> Result:
        """A caller that waited 2 s and more while another was refused is refused too: it would wait for the same lock again."""
        if self._refused_at > arrived_at + LONG_SECONDS:
            raise Unavailable("The database is busy.")
        try:
            return work()
        except Unavailable:
            self._refused_at = time.monotonic()
            raise
