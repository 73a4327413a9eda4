"""Computations in the event loop are cut into slices: others go on between them, and each gets its
turn. The clock is set.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from frontdesk.time_slices import GIVE_WAY_SECONDS, SLICE_SECONDS, SliceScheduler

STEPS = 10


class Steps:
    """Computations whose steps last half a slice each, by a clock that only they move; `order` has
    the steps as they ran.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self.order: list[str] = []
        self.scheduler = SliceScheduler(lambda: self.time)

    async def compute(self, name: str) -> None:
        time_slice = self.scheduler.begin()
        for _ in range(STEPS):
            self.order.append(name)
            self.time += SLICE_SECONDS / 2
            await time_slice.pause_if_due()

    async def count_turns(self, name: str) -> None:
        """A program that needs one turn of the event loop after the other."""
        for _ in range(STEPS):
            self.order.append(name)
            await asyncio.sleep(0)


def run(scene: Callable[[Steps], Awaitable[object]]) -> list[str]:
    steps = Steps()

    async def started() -> None:
        await scene(steps)

    asyncio.run(started())
    return steps.order


def longest_run(order: list[str], name: str) -> int:
    """The most steps of this name without another between them."""
    longest = current = 0
    for each in order:
        current = current + 1 if each == name else 0
        longest = max(longest, current)
    return longest


def test_a_long_computation_lets_others_go_on_after_each_slice() -> None:
    order = run(lambda steps: asyncio.gather(steps.compute("long"), steps.count_turns("short")))
    assert order.count("long") == STEPS
    assert longest_run(order[: order.index("short") + STEPS], "long") == 2


def test_several_computations_run_one_slice_in_a_turn_each_after_the_other() -> None:
    order = run(lambda steps: asyncio.gather(*(steps.compute(name) for name in "abc")))
    later = order[6:]  # all begin with a slice
    assert [later[n] for n in range(0, len(later), 2)] == [*"abc"] * 4
    assert max(longest_run(order, name) for name in "abc") == 2


def test_a_computation_gives_way_to_short_requests_for_a_bounded_time() -> None:
    """A short request is under way all the time, so that the computation waits for GIVE_WAY_SECONDS
    before each slice.
    """

    async def scene(steps: Steps) -> None:
        steps.scheduler.short_requests = 1
        computation = asyncio.create_task(steps.compute("long"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert steps.order == ["long"] * 2
        while not computation.done():
            steps.time += GIVE_WAY_SECONDS
            await asyncio.sleep(0.001)

    assert len(run(scene)) == STEPS


def test_a_computation_goes_on_once_the_short_requests_are_answered() -> None:
    async def scene(steps: Steps) -> None:
        steps.scheduler.short_requests = 1
        computation = asyncio.create_task(steps.compute("long"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert steps.order == ["long"] * 2
        steps.scheduler.short_requests = 0
        await computation

    assert len(run(scene)) == STEPS


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_a_computation_whose_caller_goes_away_stops_no_other(gone: str) -> None:
    async def scene(steps: Steps) -> None:
        tasks = {name: asyncio.create_task(steps.compute(name)) for name in "abc"}
        await asyncio.sleep(0)
        tasks[gone].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    order = run(scene)
    assert {name: order.count(name) for name in "abc" if name != gone} == {
        name: STEPS for name in "abc" if name != gone
    }
