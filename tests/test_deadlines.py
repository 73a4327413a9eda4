"""Waits that last too long end, by one timer for all of them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from frontdesk.deadlines import Deadlines


async def within(deadlines: Deadlines, awaitable: Awaitable[Any]) -> Any:
    with deadlines.timeout():
        return await awaitable


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def soon() -> str:
    await asyncio.sleep(0)
    return "done"


def test_a_wait_that_ends_in_time_gives_its_result() -> None:
    async def scene() -> str:
        result: str = await within(Deadlines(60), soon())
        return result

    assert asyncio.run(scene()) == "done"


def test_a_wait_that_lasts_too_long_ends_with_a_timeout() -> None:
    async def scene() -> None:
        await within(Deadlines(0.01), forever())

    with pytest.raises(TimeoutError):
        asyncio.run(scene())


def test_each_of_many_waits_ends_though_others_were_done_in_between() -> None:
    async def scene() -> list[str | BaseException | None]:
        deadlines = Deadlines(0.05)
        waits = [within(deadlines, forever() if n % 2 else soon()) for n in range(20)]
        first = await asyncio.gather(*waits, return_exceptions=True)
        later = await asyncio.gather(within(deadlines, forever()), return_exceptions=True)
        return [*first, *later]

    outcomes = asyncio.run(scene())
    assert outcomes[::2][:10] == ["done"] * 10
    assert all(isinstance(outcome, TimeoutError) for outcome in [*outcomes[1:20:2], outcomes[20]])


def test_an_error_of_what_is_waited_for_stays_itself() -> None:
    async def fails() -> None:
        raise KeyError

    async def scene() -> None:
        await within(Deadlines(60), fails())

    with pytest.raises(KeyError):
        asyncio.run(scene())


def test_a_task_that_is_cancelled_by_others_is_cancelled_and_not_timed_out() -> None:
    async def scene() -> None:
        task = asyncio.create_task(within(Deadlines(60), forever()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scene())
