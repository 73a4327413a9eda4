"""A fair share of a serving process for each account: its bulk requests, which read or write much,
take turns.

An account has AT_ONCE places in each process. While other accounts send requests too, a place rests
after its use, in proportion to it. So the account's bulk requests take half a processor in each
process, however many connections send them. Other accounts keep their share of the threads for the
database, of the event loop, and of the database's own processors.

The share is the account's, not the client's: a customer with many clients is still one customer.
Callers with a wrong secret have no account; all of them share one.

A bulk request also computes in threads. A thread that comes back from the database, and the event
loop itself, waits for the interpreter's lock until its holder is asked for it, after 5 ms by
default. While a bulk request is under way it is asked sooner. At other times the many exchanges
would only cost: a POST on SQLite took 18 % more processor time.
"""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from frontdesk import codes
from frontdesk.errors import RateLimited, Unavailable

AT_ONCE = 2  # bulk requests of one account, in one process
MOST_WAITING = 16
WAIT_SECONDS = 10.0
RETRY_AFTER_SECONDS = 2
# A place rests for so many times its use. A program that sends one request after the other has half
# the rate then.
RESTS = 3.0
LEAST_REST_SECONDS = (
    0.02  # many short ones would add up, with what each costs beside its use of the place
)
LONGEST_REST_SECONDS = 3.0
NO_ACCOUNT = 0
LATELY_SECONDS = 1.0  # after a request of another account
SWITCH_SECONDS = 0.0005  # while a bulk request is under way

Owner = int | str  # an account's id, or a word for callers without an account


@dataclass(slots=True)
class _Queue:
    """The bulk requests of one account: the places that are taken or rest, and the requests that
    wait, the oldest first.
    """

    taken: int = 0
    waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)


class FairShare:
    """`async with admitted(account_id):` is entered when the account has a free place."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._queues: dict[Owner, _Queue] = {}
        self.latest_account: int | None = NO_ACCOUNT  # None is that of operators
        # when a request came from another account than the one before it
        self._changed_at = float("-inf")
        self._is_stopping = False
        self._under_way = 0
        self._usual_switch_seconds = sys.getswitchinterval()

    def note_request(self, account_id: int | None) -> None:
        """Note that the account has sent a request, of whatever kind; not needed if it is the
        `latest_account`.
        """
        if account_id != self.latest_account:
            if self.latest_account != NO_ACCOUNT:
                self._changed_at = self._now()
            self.latest_account = account_id

    @asynccontextmanager
    async def admitted(
        self, account_id: Owner, *, wait_seconds: float | None = WAIT_SECONDS
    ) -> AsyncIterator[None]:
        """Raises RateLimited `too_many_at_once` when MOST_WAITING wait already, or after
        `wait_seconds`; Unavailable when the server stops. With None it waits as long as it takes,
        and is never refused: for work that was begun.
        """
        queue = self._queues.setdefault(account_id, _Queue())
        if queue.taken < AT_ONCE and not queue.waiting:
            queue.taken += 1
        elif len(queue.waiting) < MOST_WAITING or wait_seconds is None:
            await self._wait(account_id, queue, wait_seconds)
        else:
            raise _too_many()
        began_at = self._now()
        self._count_under_way(1)
        try:
            yield
        finally:
            self._count_under_way(-1)
            self._leave(account_id, queue, self._now() - began_at)

    def stop(self) -> None:
        """The process is to stop: what waits is refused, and nothing waits from now on."""
        self._is_stopping = True
        for queue in self._queues.values():
            while queue.waiting:
                _refuse(queue.waiting.popleft())

    def _count_under_way(self, change: int) -> None:
        was_quiet = not self._under_way
        self._under_way += change
        is_quiet = not self._under_way
        if is_quiet != was_quiet:
            sys.setswitchinterval(self._usual_switch_seconds if is_quiet else SWITCH_SECONDS)

    async def _wait(self, account_id: Owner, queue: _Queue, wait_seconds: float | None) -> None:
        """Return when the request has a place."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.waiting.append(place)
        if self._is_stopping:
            _refuse(queue.waiting.pop())
        try:
            async with asyncio.timeout(wait_seconds):
                await place
        except BaseException as error:
            if place in queue.waiting:
                queue.waiting.remove(place)
            elif place.done() and not place.cancelled() and place.exception() is None:
                self._free(account_id, queue)  # it got its place at the same moment
            if isinstance(error, TimeoutError):
                raise _too_many() from None
            raise

    def _leave(self, account_id: Owner, queue: _Queue, used_seconds: float) -> None:
        if self._now() - self._changed_at < LATELY_SECONDS:
            rest = min(max(used_seconds * RESTS, LEAST_REST_SECONDS), LONGEST_REST_SECONDS)
            asyncio.get_running_loop().call_later(rest, self._free, account_id, queue)
        else:
            self._free(account_id, queue)

    def _free(self, account_id: Owner, queue: _Queue) -> None:
        """Give the place to the request that has waited longest."""
        while queue.waiting:
            place = queue.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        queue.taken -= 1
        if not queue.taken:
            self._queues.pop(account_id, None)


def _refuse(place: "asyncio.Future[None]") -> None:
    if not place.done():
        place.set_exception(Unavailable("The server is stopping."))


def _too_many() -> RateLimited:
    detail = (
        "Too many lists, batches, files or changes are under way. Send this request when some are "
        "answered."
    )
    fault = ("request", codes.faults.TOO_MANY_AT_ONCE)
    return RateLimited(detail, retry_after_seconds=RETRY_AFTER_SECONDS, fault=fault)
