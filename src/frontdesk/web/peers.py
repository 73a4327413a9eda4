"""How long the service waits for slow senders and readers, and how many of their requests it holds open.

No caller may take the places of the others: docs/decisions/0106 has the figures.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from frontdesk.deadlines import Deadlines
from frontdesk.errors import Fault, RateLimited

BODY_SECONDS = 10.0
CROWD = 128  # bodies of one account, or of requests without a token, that are waited for at once
CROWD_SECONDS = 1.0
OPERATORS = 0  # no account has this id
UPLOAD_BYTES, UPLOAD_BYTES_SECONDS, UPLOAD_SECONDS = 64 * 1024, 10.0, 3600.0
OPEN_UPLOADS, RETRY_UPLOAD_SECONDS = 10, 10  # of one account, in one process
READER_SECONDS = 30.0  # for the next piece of a response

Result = TypeVar("Result")


class ReaderTooSlow(Exception):
    """The reader of a response has taken nothing of it for READER_SECONDS."""


class TooManyUploads(RateLimited, kind="rate_limited"):
    """The account has as many uploads open as it may have."""

    def __init__(self) -> None:
        detail = f"The account has {OPEN_UPLOADS} open uploads; send this one when some of them have ended."
        super().__init__(detail, retry_after_seconds=RETRY_UPLOAD_SECONDS)
        self.faults = (Fault("body", "too_many_uploads", detail),)


class UploadPace:
    """What is left of the time of an upload's sender: 10 s for each 64 KiB, and an hour in all. The time that the service
    itself takes between two pieces does not count."""

    def __init__(self) -> None:
        self._left = UPLOAD_SECONDS
        self._left_of_bytes = UPLOAD_BYTES_SECONDS
        self._bytes = 0

    async def wait(self, reading: Awaitable[tuple[bytes, bool]]) -> tuple[bytes, bool]:
        """The piece that is read. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(min(self._left, self._left_of_bytes)):
            piece, is_last = await reading
        waited = loop.time() - began
        self._left -= waited
        self._left_of_bytes -= waited
        self._bytes += len(piece)
        if self._bytes >= UPLOAD_BYTES:
            self._bytes, self._left_of_bytes = 0, UPLOAD_BYTES_SECONDS
        return piece, is_last


class PeerDeadlines:
    """The deadlines of all requests of one process."""

    def __init__(self) -> None:
        self._bodies, self._hurried = Deadlines(BODY_SECONDS), Deadlines(CROWD_SECONDS)
        self._readers = Deadlines(READER_SECONDS)
        self._waiting: dict[int | None, int] = {}
        self._uploads: Counter[int] = Counter()

    async def body(self, reading: Awaitable[Result], account_id: int | None) -> Result:
        """The body that is read: 10 s, but 1 s while many others of the same account are waited for. OPERATORS stands for
        operators' tokens, None for requests without a token. Raises TimeoutError."""
        waiting = self._waiting
        others = waiting.get(account_id, 0)
        waiting[account_id] = others + 1
        try:
            return await (self._bodies if others < CROWD else self._hurried).within(reading)
        finally:
            if waiting[account_id] == 1:
                del waiting[account_id]
            else:
                waiting[account_id] -= 1

    @contextmanager
    def uploading(self, account_id: int) -> Iterator[None]:
        """Raises TooManyUploads."""
        if self._uploads[account_id] >= OPEN_UPLOADS:
            raise TooManyUploads
        self._uploads[account_id] += 1
        try:
            yield
        finally:
            self._uploads[account_id] -= 1
            if not self._uploads[account_id]:
                del self._uploads[account_id]

    async def sent(self, sending: Awaitable[None]) -> None:
        """Raises ReaderTooSlow."""
        try:
            await self._readers.within(sending)
        except TimeoutError:
            raise ReaderTooSlow from None
