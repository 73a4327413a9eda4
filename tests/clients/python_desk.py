"""Both Python clients for tests: the asynchronous one is driven as if it blocked, so that one test
holds for both.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from frontdesk_client import AsyncFileHandle, AsyncFrontdesk, Frontdesk


class Driven:
    """An asynchronous client or file; what its methods return is waited for, and lists are read
    whole.
    """

    def __init__(self, driven: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._driven = driven
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driven, name)
        if not inspect.ismethod(found):
            return found
        return lambda *args, **kwargs: self._result(found(*args, **kwargs))

    def _result(self, returned: Any) -> Any:
        if inspect.isawaitable(returned):
            returned = self._loop.run_until_complete(returned)
        elif isinstance(returned, AsyncIterator):
            return self._listed(returned)
        return Driven(returned, self._loop) if isinstance(returned, AsyncFileHandle) else returned

    def _listed(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def listed() -> list[Any]:
            return [item async for item in items]

        return map(self._result, self._loop.run_until_complete(listed()))


def open_desk(kind: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
    """A client of the kind `sync` or `async`; it is closed at the end."""
    if kind == "sync":
        with Frontdesk(*args, **kwargs) as desk:
            yield desk
        return
    loop = asyncio.new_event_loop()
    asynchronous = AsyncFrontdesk(*args, **kwargs)
    yield Driven(asynchronous, loop)
    loop.run_until_complete(asynchronous.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
