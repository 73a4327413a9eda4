"""Bulk requests of one account take turns, two at a time, and cost other accounts nothing. The
clock is set.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from frontdesk.errors import RateLimited, Unavailable
from frontdesk.fair_share import (
    AT_ONCE,
    LATELY_SECONDS,
    MOST_WAITING,
    SWITCH_SECONDS,
    WAIT_SECONDS,
    FairShare,
)
from tests.patience import PATIENCE_SECONDS

A = 1
B = 2


class Scene:
    """Bulk requests that stay inside until they are released; `entered` has their names in order."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.share = FairShare(lambda: self.time)
        self.entered: list[str] = []
        self.is_entered: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.release: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str, account: int = A, *, is_begun: bool = False) -> None:
        self.release[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._request(name, account, is_begun=is_begun))
        await turns()

    async def end(self, name: str) -> None:
        self.release[name].set()
        await turns()

    async def _request(self, name: str, account: int, *, is_begun: bool) -> None:
        wait_seconds = None if is_begun else WAIT_SECONDS
        async with self.share.admitted(account, wait_seconds=wait_seconds):
            self.entered.append(name)
            self.is_entered[name].set()
            await self.release[name].wait()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(play: Callable[[Scene], Awaitable[None]]) -> None:
    async def started() -> None:
        scene = Scene()
        await play(scene)
        for task in scene.tasks.values():
            task.cancel()
        await asyncio.gather(*scene.tasks.values(), return_exceptions=True)

    asyncio.run(started())


def test_two_bulk_requests_of_an_account_run_at_a_time_and_the_oldest_goes_next() -> None:
    async def play(scene: Scene) -> None:
        for name in "abcd":
            await scene.start(name)
        assert scene.entered == ["a", "b"]
        await scene.end("b")
        assert scene.entered == ["a", "b", "c"]
        await scene.end("c")
        assert scene.entered == ["a", "b", "c", "d"]

    run(play)


def test_work_that_was_begun_is_not_refused_however_many_wait() -> None:
    async def play(scene: Scene) -> None:
        names = [f"r{number}" for number in range(AT_ONCE + MOST_WAITING)]
        for name in names:
            await scene.start(name)
        await scene.start("part of an upload", is_begun=True)
        for name in names:
            await scene.end(name)
        assert scene.entered == [*names, "part of an upload"]

    run(play)


def test_threads_take_turns_sooner_while_a_bulk_request_is_under_way() -> None:
    usual = sys.getswitchinterval()

    async def play(scene: Scene) -> None:
        await scene.start("a")
        await scene.start("other", B)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
        await scene.end("a")
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
        await scene.end("other")
        assert sys.getswitchinterval() == pytest.approx(usual)

    run(play)


def test_another_account_waits_for_none_of_them() -> None:
    async def play(scene: Scene) -> None:
        for name in "abcd":
            await scene.start(name)
        await scene.start("other", B)
        assert scene.entered == ["a", "b", "other"]

    run(play)


def test_a_place_rests_after_its_use_while_another_account_sends_requests() -> None:
    """It was used for 5 ms, so it rests for 15 ms of the event loop."""

    async def play(scene: Scene) -> None:
        scene.share.note_request(A)
        scene.share.note_request(B)
        for name in "abc":
            await scene.start(name)
        scene.time += 0.005
        await scene.end("a")
        assert scene.entered == ["a", "b"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await scene.is_entered["c"].wait()
        assert scene.entered == ["a", "b", "c"]

    run(play)


@pytest.mark.parametrize("is_alone", [True, False])
def test_no_place_rests_for_an_account_that_is_alone(is_alone: bool) -> None:
    async def play(scene: Scene) -> None:
        if not is_alone:
            scene.share.note_request(B)
            scene.share.note_request(A)
            scene.time += LATELY_SECONDS
        for name in "abc":
            scene.share.note_request(A)
            await scene.start(name)
        scene.time += 5
        await scene.end("a")
        assert scene.entered == ["a", "b", "c"]

    run(play)


def test_one_more_than_may_wait_is_refused_at_once_and_the_others_stay() -> None:
    async def play(scene: Scene) -> None:
        names = [f"r{n}" for n in range(AT_ONCE + MOST_WAITING)]
        for name in names:
            await scene.start(name)
        with pytest.raises(RateLimited) as refused:
            async with scene.share.admitted(A):
                pass
        assert refused.value.faults[0].code == "too_many_at_once"
        for name in names:
            await scene.end(name)
        assert scene.entered == names

    run(play)


def test_a_request_that_waits_too_long_is_refused_and_leaves_its_place_in_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("frontdesk.fair_share.WAIT_SECONDS", 0.01)

    async def play(scene: Scene) -> None:
        for name in "abc":
            await scene.start(name)
        with pytest.raises(RateLimited):
            await scene.tasks["c"]
        await scene.end("a")
        await scene.start("d")
        assert scene.entered == ["a", "b", "d"]

    run(play)


@pytest.mark.parametrize("gone", ["a", "c"])
def test_a_caller_that_goes_away_keeps_no_place(gone: str) -> None:
    async def play(scene: Scene) -> None:
        for name in "abc":
            await scene.start(name)
        scene.tasks[gone].cancel()
        await turns()
        await scene.end("b")
        await scene.start("d")
        await scene.start("e")
        expected = ["a", "b", "c", "d"] if gone == "a" else ["a", "b", "d"]
        assert scene.entered == expected

    run(play)


def test_a_place_handed_to_a_caller_that_leaves_is_not_lost() -> None:
    async def play(scene: Scene) -> None:
        for name in "abcd":
            await scene.start(name)
        scene.release["a"].set()
        await asyncio.sleep(0)
        scene.tasks["c"].cancel()
        await turns()
        await scene.end("b")
        await scene.start("e")
        assert "d" in scene.entered
        assert "e" in scene.entered

    run(play)


def test_a_server_that_stops_keeps_nobody_waiting() -> None:
    async def play(scene: Scene) -> None:
        for name in "abc":
            await scene.start(name)
        scene.share.stop()
        with pytest.raises(Unavailable):
            await scene.tasks["c"]
        await scene.start("d")
        with pytest.raises(Unavailable):
            await scene.tasks["d"]
        await scene.end("a")
        await scene.start("e")
        assert scene.entered == ["a", "b", "e"]

    run(play)


def test_callers_that_went_away_while_they_waited_count_no_more() -> None:
    async def play(scene: Scene) -> None:
        names = [f"r{n}" for n in range(AT_ONCE + MOST_WAITING)]
        for name in names:
            await scene.start(name)
        for name in names[AT_ONCE:]:
            scene.tasks[name].cancel()
        await turns()
        await scene.start("late")
        assert not scene.tasks["late"].done()
        await scene.end("r0")
        assert scene.entered == ["r0", "r1", "late"]

    run(play)
