"""Limits the requests of an API client per minute, over all processes. A client without a limit costs nothing.

A process takes blocks of requests from a row that all processes share, and spends a block without asking again. Blocks grow
while the process spends them and shrink with the rest of the limit, so that few requests are taken in vain.
"""

import asyncio
from dataclasses import dataclass

from frontdesk.access import limits_store
from frontdesk.access.model import Caller, RequestAllowance
from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.errors import RateLimited

# A block is at most this part of the limit, and of what is left of it.
BLOCK_SHARE = 20


@dataclass(slots=True)
class _Block:
    """Requests `left` to this process in one minute, and those `free` for any process when it last took a block."""

    minute: int
    size: int = 1
    left: int = 0
    free: int = 1


class RequestLimits:
    """`await admit(caller)` returns the caller's allowance after this request, or None where no limit is set."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._blocks: dict[int, _Block] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def admit(self, caller: Caller) -> RequestAllowance | None:
        """Raises RateLimited when the client has used its requests of this minute."""
        limit = caller.requests_per_minute
        if limit is None:
            return None
        async with self._locks.setdefault(caller.client, asyncio.Lock()):
            minute, second = divmod(int(self._clock().timestamp()), 60)
            block = self._blocks.get(caller.client)
            if block is None or block.minute != minute:
                block = self._blocks[caller.client] = _Block(minute)
            if block.left == 0 and block.free > 0:
                await asyncio.to_thread(self._refill, block, caller.client, limit)
            if block.left == 0:
                raise RateLimited(
                    "The client has used its requests of this minute.", retry_after_seconds=60 - second
                )
            block.left -= 1
            return RequestAllowance(limit, block.left + block.free, 60 - second)

    def _refill(self, block: _Block, client: int, limit: int) -> None:
        block.left, block.free = write_alone(
            self._db,
            lambda tx: limits_store.take_allowance(
                tx, client, block.minute, block=block.size, limit=limit, share=BLOCK_SHARE
            ),
        )
        block.size = min(2 * block.size, max(1, limit // BLOCK_SHARE))
