"""Sessions of pages that refresh themselves, kept in memory for 5 s.

A viewer asks every 5 s, so an answer of its own would nearly always be too old when it is asked for
again. Therefore one that is too old has the sessions of all present viewers read anew, by one statement.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.access.callers import digest
from frontdesk.clock import Clock
from frontdesk.db import Tx
from frontdesk.users.model import Session
from frontdesk.users.sessions import live_session
from frontdesk.users.store import StoredSession, find_sessions

# How long a session that was ended in another process may get refreshes.
CACHE_TIME = timedelta(seconds=5)
VIEWING_TIME = timedelta(seconds=12)  # a session without a refresh for so long has no viewer

StoredSessions = dict[bytes, StoredSession]
AskSessions = Callable[[Callable[[Tx], StoredSessions]], Awaitable[StoredSessions]]


@dataclass(slots=True)
class _CachedSession:
    found: StoredSession
    read_at: datetime
    refreshed_at: datetime


class LiveSessions:
    """For one event loop: a refresh asks `in_memory`, then `find`. `ask` runs a question in a reading
    transaction beside it.
    """

    def __init__(self, ask: AskSessions, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._cached: dict[bytes, _CachedSession] = {}
        self._renewing = asyncio.Lock()
        self._endings = 0

    def in_memory(self, secret: str) -> Session | None:
        """The session behind a cookie if it was read in the last 5 s. Never waits."""
        cached = self._cached.get(digest(secret))
        now = self._clock()
        if cached is None or not _is_recent(cached, now):
            return None
        cached.refreshed_at = now
        return live_session(cached.found, now=now)

    async def find(self, secret: str) -> Session | None:
        """The session behind a cookie, as it was at most 5 s ago; None once it has ended. This is no
        use of it. Raises Unavailable.
        """
        hashed = digest(secret)
        now = self._clock()
        cached = self._cached.get(hashed)
        # A use by another page may have moved its end since.
        if cached is None or live_session(cached.found, now=now) is None:
            await self._renew({hashed}, now)
        else:
            async with self._renewing:  # viewers that come meanwhile need no statement
                if not _is_recent(self._cached.get(hashed), now):
                    await self._renew({hashed, *self._viewers(now)}, now)
        cached = self._cached.get(hashed)
        if cached is None:
            return None
        cached.refreshed_at = now
        return live_session(cached.found, now=now)

    def forget(self, secret: str) -> None:
        """The session has ended: in this process at once."""
        self._endings += 1
        self._cached.pop(digest(secret), None)

    def _viewers(self, now: datetime) -> list[bytes]:
        """The sessions with a viewer. Others are dropped."""
        since = now - VIEWING_TIME
        self._cached = {
            hashed: cached
            for hashed, cached in self._cached.items()
            if cached.refreshed_at >= since
        }
        return list(self._cached)

    async def _renew(self, hashes: Collection[bytes], now: datetime) -> None:
        """Read these sessions; again if one was ended meanwhile, since it may have been read before."""
        while True:
            endings = self._endings
            stored = await self._ask(lambda tx: find_sessions(tx, hashes))
            if endings == self._endings:
                break
        for hashed in hashes:
            before = self._cached.pop(hashed, None)
            if hashed in stored:
                refreshed_at = now if before is None else before.refreshed_at
                self._cached[hashed] = _CachedSession(stored[hashed], now, refreshed_at)


def _is_recent(cached: _CachedSession | None, now: datetime) -> bool:
    """False too when a clock that was set back makes it a session of the future."""
    return cached is not None and timedelta(0) <= now - cached.read_at < CACHE_TIME
