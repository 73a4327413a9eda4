"""One query for many identical reads; no caller sees a state from before it asked."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event, Semaphore

import pytest

from frontdesk.db.lookups import SharedReads
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable
from tests.patience import PATIENCE_SECONDS


class Shelf:
    """A value that reads take, each held until it is let go; `begun` counts the reads."""

    def __init__(self) -> None:
        self.value = 0
        self.begun = 0
        self.let_go = Event()
        self._begun = Semaphore(0)

    async def has_begun(self, reads: int = 1) -> None:
        """Return when that many more reads have begun."""
        for _ in range(reads):
            assert await asyncio.to_thread(self._begun.acquire, timeout=PATIENCE_SECONDS)

    async def read(self) -> int:
        return await asyncio.to_thread(self._read)

    def _read(self) -> int:
        seen = self.value
        self.begun += 1
        self._begun.release()
        assert self.let_go.wait(PATIENCE_SECONDS)
        return seen


def run(test: Callable[[SharedReads[int], Shelf], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(SharedReads(Deadlines(60)), shelf), PATIENCE_SECONDS)

    shelf = Shelf()
    try:
        asyncio.run(bounded())
    finally:
        shelf.let_go.set()


def test_those_who_wait_for_the_same_share_one_read_that_starts_after_they_came() -> None:
    async def sharing(reads: SharedReads[int], shelf: Shelf) -> None:
        first = asyncio.create_task(reads.get("k", shelf.read))
        await shelf.has_begun()
        shelf.value = 1  # written, and acknowledged, before the others ask
        others = [asyncio.create_task(reads.get("k", shelf.read)) for _ in range(5)]
        await asyncio.sleep(0)
        shelf.let_go.set()
        assert await first == 0
        assert await asyncio.gather(*others) == [1] * 5
        assert shelf.begun == 2

    run(sharing)


def test_reads_of_different_things_do_not_wait_for_each_other() -> None:
    async def different(reads: SharedReads[int], shelf: Shelf) -> None:
        calls = [asyncio.create_task(reads.get(key, shelf.read)) for key in ("a", "b", ("c", 1))]
        await shelf.has_begun(3)
        shelf.let_go.set()
        assert await asyncio.gather(*calls) == [0] * 3

    run(different)


def test_a_read_that_fails_tells_all_who_shared_it_and_the_next_one_works() -> None:
    async def failing(reads: SharedReads[int], shelf: Shelf) -> None:
        async def fail() -> int:
            raise LookupError

        answers = await asyncio.gather(*(reads.get("k", fail) for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [LookupError] * 3
        shelf.let_go.set()
        assert await reads.get("k", shelf.read) == 0

    run(failing)


def test_a_caller_that_goes_away_does_not_end_the_read_of_the_others() -> None:
    async def leaving(reads: SharedReads[int], shelf: Shelf) -> None:
        gone, stays = (asyncio.create_task(reads.get("k", shelf.read)) for _ in range(2))
        await shelf.has_begun()
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        shelf.let_go.set()
        assert await stays == 0

    run(leaving)


def test_each_caller_has_its_own_time_whatever_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hanging(reads: SharedReads[int], shelf: Shelf) -> None:
        now = 1000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
        first = asyncio.create_task(reads.get("k", shelf.read))
        await shelf.has_begun()
        now += 1
        second = asyncio.create_task(reads.get("k", shelf.read))
        await asyncio.sleep(0)
        now += 50
        third = asyncio.create_task(reads.get("k", shelf.read))
        await asyncio.sleep(0)
        now += 9  # 60 s since the first came
        with pytest.raises(Unavailable):
            await first
        await shelf.has_begun()  # the read that the others share
        now += 1
        with pytest.raises(Unavailable):
            await second
        shelf.let_go.set()
        assert await third == 0

    run(hanging)


def test_nothing_is_kept_when_all_have_been_answered() -> None:
    async def done(reads: SharedReads[int], shelf: Shelf) -> None:
        shelf.let_go.set()
        await asyncio.gather(*(reads.get(n % 3, shelf.read) for n in range(30)))
        await asyncio.sleep(0)
        assert reads._running == {}
        assert reads._next == {}

    run(done)
