"""Request limits per API client: exact over all processes, free of cost where none is set.

A process sets requests aside in blocks, in a row that all processes share, and spends them without asking again.
"""

import asyncio
from dataclasses import dataclass

from frontdesk.access import store
from frontdesk.access.tokens import Caller
from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.races import write_together
from frontdesk.errors import RateLimited

BLOCKS_PER_MINUTE = 20


@dataclass(slots=True)
class _Block:
    minute: int
    left: int
    spent: bool = False  # the shared row has nothing left for this minute


@dataclass(frozen=True, slots=True)
class Allowance:
    """`remaining` is what this process may still spend without asking; `reset_seconds` until the minute is over."""

    limit: int
    remaining: int
    reset_seconds: int


class RequestLimits:
    """`await admit(caller)`: the caller's allowance after this request, or None where no limit is set."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._blocks: dict[int, _Block] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def admit(self, caller: Caller) -> Allowance | None:
        """Raises RateLimited when the client has had its requests of this minute."""
        limit = caller.requests_per_minute
        if limit is None:
            return None
        minute, second = divmod(int(self._clock().timestamp()), 60)
        async with self._locks.setdefault(caller.client, asyncio.Lock()):
            block = self._blocks.get(caller.client)
            if block is None or block.minute != minute:
                block = self._blocks[caller.client] = _Block(minute, 0)
            if block.left == 0 and not block.spent:
                block.left = await asyncio.to_thread(self._take, caller.client, minute, limit)
                block.spent = block.left == 0
            if block.left == 0:
                raise RateLimited(
                    "The client has used its requests of this minute.", retry_after_seconds=60 - second
                )
            block.left -= 1
            return Allowance(limit, block.left, 60 - second)

    def _take(self, client: int, minute: int, limit: int) -> int:
        block = max(1, limit // BLOCKS_PER_MINUTE)
        [got] = write_together(
            self._db,
            [client],
            lambda tx, clients: [store.take_allowance(tx, clients[0], minute, block=block, limit=limit)],
        )
        if isinstance(got, Exception):
            raise got
        return got
