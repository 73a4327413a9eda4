"""Waits that last too long end, by one timer for all of them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from frontdesk.deadlines import Deadlines
from tests.patience import in_event_loop


async def within(deadlines: Deadlines, awaitable: Awaitable[Any]) -> Any:
    with deadlines.timeout():
        return await awaitable


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def soon() -> str:
    await asyncio.sleep(0)
    return "done"


@in_event_loop
async def test_each_of_many_waits_ends_though_others_were_done_in_between() -> None:
    deadlines = Deadlines(0.05)
    waits = [within(deadlines, forever() if n % 2 else soon()) for n in range(20)]
    first = await asyncio.gather(*waits, return_exceptions=True)
    later = await asyncio.gather(within(deadlines, forever()), return_exceptions=True)
    assert first[::2] == ["done"] * 10
    assert all(isinstance(outcome, TimeoutError) for outcome in [*first[1::2], *later])


@in_event_loop
async def test_an_error_and_a_cancellation_by_others_stay_themselves() -> None:
    async def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await within(Deadlines(60), fails())
    task = asyncio.create_task(within(Deadlines(60), forever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
