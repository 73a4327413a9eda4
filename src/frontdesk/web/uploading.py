"""Stores a body as it arrives, by the MiB, in turn with the work of other accounts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from frontdesk.app import App
from frontdesk.files.content import ContentUpload

Result = TypeVar("Result")


async def store_content(
    app: App, upload: ContentUpload, pieces: AsyncIterator[bytes], finish: Callable[[], Result]
) -> Result:
    """Store the pieces, then `finish`, in a thread. Raises as `pieces`, `upload.flush` and `finish` do;
    then nothing stays stored.
    """
    try:
        async for data in pieces:
            if upload.write(data):
                async with app.fair_share.admitted(upload.account_id, wait_seconds=None):
                    await app.in_thread(upload.flush)
        async with app.fair_share.admitted(upload.account_id, wait_seconds=None):
            return await app.in_thread(finish)
    except BaseException:
        # Also when the caller goes away or the server stops: half a file must never be loaded.
        await asyncio.shield(app.in_thread(upload.discard))
        raise
