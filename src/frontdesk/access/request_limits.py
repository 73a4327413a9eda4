"""Limits the requests of an API client per minute: by a limit of its own over all processes, else by the installation's.

A process takes blocks of requests from a row that all processes share, and spends a block without asking again. Blocks shrink
with the rest of the limit, so that few requests are taken in vain.

Under the installation's limit each process first spends a share of its own, without the database. So a usual client never costs a
write, and one that reads goes on reading while the database takes no writes. Each process beyond the first may let a twentieth
more through.
"""

import asyncio
from dataclasses import dataclass

from frontdesk.access import limits_store
from frontdesk.access.model import RequestAllowance
from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.races import write_alone
from frontdesk.errors import RateLimited, Unavailable

# A block is at most this part of the limit, and of what is left of it.
BLOCK_SHARE = 20
WAIT_SECONDS = 1  # for the writer, under the installation's limit


@dataclass(slots=True)
class _Block:
    """Requests `left` to this process in one minute, and those `free` for any process when it last took a block."""

    minute: int
    size: int = 1
    left: int = 0
    free: int = 1


class RequestLimits:
    """`admit_now` counts a request in memory; where it returns None, `await admit` asks the database.

    `own_limit` is the client's own limit per minute, None where `default` counts.
    """

    def __init__(self, db: Database, clock: Clock, *, default: int) -> None:
        self._db = db
        self._clock = clock
        self._default = default
        self._blocks: dict[int, _Block] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    def admit_now(self, client: int, own_limit: int | None) -> RequestAllowance | None:
        """The allowance after this request, or None if this process has to take a block first. Raises RateLimited."""
        limit = own_limit or self._default
        minute, second = divmod(int(self._clock().timestamp()), 60)
        block = self._blocks.get(client)
        if block is None or block.minute != minute:
            block = self._blocks[client] = self._new_block(minute, own_limit)
        if block.left > 0:
            block.left -= 1
            return RequestAllowance(limit, block.left + block.free, 60 - second)
        if block.free == 0:
            raise RateLimited(
                "The client has used its requests of this minute.", retry_after_seconds=60 - second
            )
        return None

    async def admit(self, client: int, own_limit: int | None) -> RequestAllowance:
        """As `admit_now`, with new blocks as they are needed. Raises RateLimited, Unavailable."""
        async with self._locks.setdefault(client, asyncio.Lock()):
            while (allowance := self.admit_now(client, own_limit)) is None:
                await asyncio.to_thread(self._refill, self._blocks[client], client, own_limit)
            return allowance

    def limit_of(self, own_limit: int | None) -> int:
        """Requests per minute."""
        return own_limit or self._default

    def _new_block(self, minute: int, own_limit: int | None) -> _Block:
        if own_limit is not None:
            return _Block(minute)
        share = self._default // BLOCK_SHARE
        return _Block(minute, max(1, share), share, self._default - share)

    def _refill(self, block: _Block, client: int, own_limit: int | None) -> None:
        share = self._default // BLOCK_SHARE
        limit = own_limit or self._default - share
        try:
            block.left, block.free = write_alone(
                self._db,
                lambda tx: limits_store.take_allowance(
                    tx, client, block.minute, block=block.size, limit=limit, share=BLOCK_SHARE
                ),
                wait_seconds=None if own_limit else WAIT_SECONDS,
            )
        except Unavailable:
            if own_limit is not None:
                raise
            block.left = max(1, share)  # a full or locked disk must not stop readers
        block.size = min(2 * block.size, max(1, limit // BLOCK_SHARE))
