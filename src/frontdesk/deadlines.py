"""Deadlines for many waits of the same length by one timer, and the time limits for slow senders
and readers.

`asyncio.timeout` makes a timer for each wait, which took as long as parsing the JSON of a small
body. Slow callers must not use up the connections: docs/decisions/0106.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from frontdesk import codes
from frontdesk.errors import RateLimited

BODY_SECONDS = 10.0
CROWD = 128  # bodies of one account, or of requests without a token, that arrive at once
CROWD_SECONDS = 1.0
OPERATORS = 0  # no account has this id
UPLOAD_BYTES = 64 * 1024
UPLOAD_BYTES_SECONDS = 10.0
UPLOAD_SECONDS = 3600.0
# of one account, in one process
OPEN_UPLOADS = 10
RETRY_UPLOAD_SECONDS = 10
READER_SECONDS = 30.0  # for the next piece of a response

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Wait:
    """One wait of a task, as a `with` block. Raises TimeoutError where it was still open at its
    deadline.
    """

    waits: "deque[_Wait]"
    task: "asyncio.Task[object] | None"
    ends_at: float
    at_end: Callable[[], None] | None
    is_over: bool = False

    def __enter__(self) -> None:
        self.waits.append(self)

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        if self.at_end is not None:
            self.at_end()
        task = self.task
        self.task = None
        waits = self.waits
        while waits and waits[0].task is None:
            waits.popleft()
        if self.is_over and kind is asyncio.CancelledError and task is not None:
            task.uncancel()
            raise TimeoutError from None


class Deadlines:
    """`with timeout():` raises TimeoutError when its block takes longer than `seconds`. All blocks
    are in one event loop.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits: deque[_Wait] = deque()  # the oldest ends first
        self._timer: asyncio.TimerHandle | None = None

    def timeout(self, at_end: Callable[[], None] | None = None) -> _Wait:
        """The block; `at_end` is called when it is left."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(ends_at, self._end_overdue, loop)
        return _Wait(self._waits, asyncio.current_task(loop), ends_at, at_end)

    def shorten(self, seconds: float) -> None:
        """Every wait, under way or to come, ends within `seconds`."""
        loop = asyncio.get_running_loop()
        self._seconds = min(self._seconds, seconds)
        for wait in self._waits:
            wait.ends_at = min(wait.ends_at, loop.time() + self._seconds)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = loop.call_later(self._seconds, self._end_overdue, loop)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for wait in self._waits:
            if wait.ends_at > now:
                break
            if wait.task is not None and not wait.is_over:
                wait.is_over = True
                wait.task.cancel()
        coming = next((wait.ends_at for wait in self._waits if not wait.is_over), None)
        self._timer = None if coming is None else loop.call_at(coming, self._end_overdue, loop)


class ReaderTooSlow(Exception):
    """The reader of a response has taken nothing of it for READER_SECONDS."""


class UploadPace:
    """What is left of the time of an upload's sender: 10 s for each 64 KiB, and an hour in all. The
    time that the service itself takes between two pieces does not count.
    """

    def __init__(self) -> None:
        self._left = UPLOAD_SECONDS
        self._left_of_bytes = UPLOAD_BYTES_SECONDS
        self._bytes = 0

    async def wait(self, receiving: Awaitable[Result]) -> Result:
        """What is received. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(min(self._left, self._left_of_bytes)):
            received = await receiving
        waited = loop.time() - began
        self._left -= waited
        self._left_of_bytes -= waited
        return received

    def count(self, size: int) -> None:
        """Note that so many bytes have come."""
        self._bytes += size
        if self._bytes >= UPLOAD_BYTES:
            self._bytes = 0
            self._left_of_bytes = UPLOAD_BYTES_SECONDS


class PeerDeadlines:
    """The deadlines of all requests of one process."""

    def __init__(self) -> None:
        self._bodies = Deadlines(BODY_SECONDS)
        self._hurried = Deadlines(CROWD_SECONDS)
        self._readers = Deadlines(READER_SECONDS)
        self._waiting = defaultdict[int | None, int](int)
        self._uploads = defaultdict[int, int](int)

    def body(self, account_id: int | None) -> _Wait:
        """The time for one body, as a `with` block: 10 s, but 1 s while many bodies of the same
        account are arriving. OPERATORS is the account of operators' tokens, None that of requests
        without a token. Raises TimeoutError.
        """
        others = self._waiting[account_id]
        self._waiting[account_id] = others + 1
        deadlines = self._bodies if others < CROWD else self._hurried
        return deadlines.timeout(partial(_uncount, self._waiting, account_id))

    @contextmanager
    def uploading(self, account_id: int) -> Iterator[None]:
        """Counts one of the account's open uploads. Raises RateLimited `too_many_uploads`."""
        if self._uploads[account_id] >= OPEN_UPLOADS:
            detail = (
                f"The account has {OPEN_UPLOADS} open uploads; send this one when some of them "
                "have ended."
            )
            fault = ("body", codes.faults.TOO_MANY_UPLOADS)
            raise RateLimited(detail, retry_after_seconds=RETRY_UPLOAD_SECONDS, fault=fault)
        self._uploads[account_id] += 1
        try:
            yield
        finally:
            _uncount(self._uploads, account_id)

    async def sent(self, sending: Awaitable[None]) -> None:
        """Raises ReaderTooSlow."""
        try:
            with self._readers.timeout():
                await sending
        except TimeoutError:
            raise ReaderTooSlow from None


def _uncount(counts: dict[Any, int], key: object) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
