"""The caller of a request: its bearer token, its requests of the minute, and what it may do one at
a time only.

A warm check of a token reads no database.

Limits are per minute: a client's own over all processes, else the installation's. A process takes
blocks of requests from a row that all processes share. Blocks shrink with the rest of the limit, so
that few requests are reserved and not used. Under the installation's limit each process first uses
a share of its own, without the database. So most clients never cause a write, and reads continue
while the database takes no writes. Each process beyond the first may let a twentieth more through.
"""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from frontdesk.access import store
from frontdesk.access.model import ApiClient, Caller, RequestAllowance, Scope, scope_text
from frontdesk.clock import Clock
from frontdesk.codes import Code
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import RateLimited, Unauthorized, Unavailable

LIFETIME_SECONDS = 7200
# Per client. A program may get a token for each run: the oldest token ends, while a refusal would
# stop the program for two hours. The number is large enough for all processes of a customer.
LIVE_TOKENS = 1000
CACHE_SECONDS = (
    5  # how long a revoked token may still pass in another process (docs/interface.md, Tokens)
)
CACHE_SIZE = 10_000
# Monitoring reads the metrics while the database is away. A token that was revoked in another
# process shortly before is accepted if this process verified it within this time
# (docs/operator.md).
LATELY_SECONDS = 300

# A block is at most this part of the limit, and of what is left of it.
BLOCK_SHARE = 20
WAIT_SECONDS = 1  # for the writer, under the installation's limit
RETRY_AFTER_SECONDS = 5


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def issue_token(tx: Tx, client: ApiClient, scopes: frozenset[Scope], *, now: datetime) -> str:
    """A new token of the client, valid for 7200 s. The client's oldest ends if it has LIVE_TOKENS
    already.
    """
    token = new_secret()
    expires_at = now + timedelta(seconds=LIFETIME_SECONDS)
    row = {"token_hash": digest(token), "scopes": scope_text(scopes), "expires_at": expires_at}
    store.replace_tokens(tx, client.id, keep_newest=LIVE_TOKENS - 1, now=now, **row)
    return token


def revoke_token(tx: Tx, client: ApiClient, token: str) -> bool:
    """End a token of this client; False if it was none. For another client's token, or an unknown
    one, there is no error (RFC 7009).
    """
    return store.revoke_token(tx, client.id, digest(token))


class TokenCheck:
    """`await check(token)` returns the caller behind a bearer token, for 5 s from memory.

    The 5 s count from the call of `look_up`, which must begin its read after that. They are
    measured by the monotonic clock, since the machine's may be set.
    """

    def __init__(self, look_up: Callable[[bytes], Awaitable[Caller | None]], clock: Clock) -> None:
        self._look_up = look_up
        self._clock = clock
        self._seen: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._revocations = 0
        self._answered_at = float("-inf")

    async def check(self, token: str) -> Caller:
        """Raises Unauthorized for a token that is unknown, expired or revoked."""
        token_hash = digest(token)
        seen = self._seen.get(token_hash)
        asked_at = monotonic()
        if seen is None or seen[1] <= asked_at:
            caller = await self._look_up_and_remember(token_hash, asked_at)
        else:
            caller = seen[0]
        if caller is None or caller.expires_at <= self._clock():
            raise Unauthorized("The access token is unknown, expired or revoked.")
        return caller

    def good_lately(self, token: str) -> Caller | None:
        """The caller of an unexpired token that was verified in the 5 min before the last
        successful look-up. For use while the database is away.
        """
        caller, good_until = self._seen.get(digest(token), (None, 0.0))
        if caller is None or caller.expires_at <= self._clock():
            return None
        return caller if good_until >= self._answered_at + CACHE_SECONDS - LATELY_SECONDS else None

    def forget(self, token: str) -> None:
        """Forget the token, so that its revocation is in force at once in this process."""
        self._revocations += 1
        self._seen.pop(digest(token), None)

    async def _look_up_and_remember(self, token_hash: bytes, asked_at: float) -> Caller | None:
        revocations = self._revocations
        caller = await self._look_up(token_hash)
        self._answered_at = max(self._answered_at, asked_at)
        if caller is None:
            self._seen.pop(token_hash, None)
        elif revocations == self._revocations:  # else the answer may be from before the revocation
            self._seen[token_hash] = (caller, asked_at + CACHE_SECONDS)
            self._seen.move_to_end(token_hash)
            if len(self._seen) > CACHE_SIZE:
                self._seen.popitem(last=False)
        return caller


@dataclass(slots=True)
class _Block:
    """Requests `left` to this process in one minute, and those `free` for any process when it last
    took a block.
    """

    minute: int
    size: int = 1
    left: int = 0
    free: int = 1


class RequestLimits:
    """`admit_now` counts a request in memory; where it returns None, `await admit` asks the
    database.

    `own_limit` is the client's own limit per minute, None where `default` counts.
    """

    def __init__(self, db: Database, clock: Clock, *, default: int) -> None:
        self._db = db
        self._clock = clock
        self._default = default
        self._blocks: dict[int, _Block] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    def admit_now(self, client: int, own_limit: int | None) -> RequestAllowance | None:
        """The allowance after this request, or None if this process has to take a block first.
        Raises RateLimited.
        """
        limit = own_limit or self._default
        minute, second = divmod(int(self._clock().timestamp()), 60)
        block = self._blocks.get(client)
        if block is None or block.minute != minute:
            share = self._default // BLOCK_SHARE
            whole = _Block(minute, max(1, share), share, self._default - share)
            block = self._blocks[client] = whole if own_limit is None else _Block(minute)
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

    def _refill(self, block: _Block, client: int, own_limit: int | None) -> None:
        share = self._default // BLOCK_SHARE
        limit = own_limit or self._default - share
        try:
            block.left, block.free = write_alone(
                self._db,
                lambda tx: store.take_allowance(
                    tx, client, block.minute, block=block.size, limit=limit, share=BLOCK_SHARE
                ),
                wait_seconds=None if own_limit else WAIT_SECONDS,
            )
        except Unavailable:
            if own_limit is not None:
                raise
            block.left = max(1, share)  # a full or locked disk must not stop readers
        block.size = min(2 * block.size, max(1, limit // BLOCK_SHARE))


class OneAtATime:
    """Allows one operation per id at a time. `field`, `code` and `detail` are those of the refusal."""

    def __init__(self, field: str, code: Code, detail: str) -> None:
        self._fault = (field, code)
        self._detail = detail
        self._busy: set[int] = set()

    def begin(self, id_: int) -> Callable[[], None]:
        """Begin the operation. Returns the function that ends it, from any thread. Raises
        RateLimited.
        """
        if id_ in self._busy:
            raise RateLimited(
                self._detail, retry_after_seconds=RETRY_AFTER_SECONDS, fault=self._fault
            )
        self._busy.add(id_)
        return lambda: self._busy.discard(id_)
