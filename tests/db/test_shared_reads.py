"""One query for many identical reads; no caller sees a state from before it asked."""

import asyncio

import pytest

from frontdesk.db.lookups import SharedReads
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable
from tests.patience import in_event_loop


class Shelf:
    """A value that reads take, each held until it is let go; `begun` counts the reads."""

    def __init__(self) -> None:
        self.value = 0
        self.begun = 0
        self.let_go = asyncio.Event()
        self.reads = SharedReads[int](Deadlines(60))
        self._begun = asyncio.Semaphore(0)

    async def has_begun(self, reads: int = 1) -> None:
        """Return when that many more reads have begun."""
        for _ in range(reads):
            await self._begun.acquire()

    def ask(self, key: object = "k") -> asyncio.Task[int]:
        return asyncio.create_task(self.reads.get(key, self._read))

    async def _read(self) -> int:
        seen = self.value
        self.begun += 1
        self._begun.release()
        await self.let_go.wait()
        return seen


@in_event_loop
async def test_those_who_wait_for_the_same_share_one_read_that_starts_after_they_came() -> None:
    shelf = Shelf()
    first = shelf.ask()
    await shelf.has_begun()
    shelf.value = 1  # written, and acknowledged, before the others ask
    others = [shelf.ask() for _ in range(5)]
    await asyncio.sleep(0)
    shelf.let_go.set()
    assert await asyncio.gather(first, *others) == [0] + [1] * 5
    assert shelf.begun == 2


@in_event_loop
async def test_reads_of_different_things_do_not_wait_for_each_other() -> None:
    shelf = Shelf()
    calls = [shelf.ask(key) for key in ("a", "b", ("c", 1))]
    await shelf.has_begun(3)
    shelf.let_go.set()
    assert await asyncio.gather(*calls) == [0] * 3


@in_event_loop
async def test_a_read_that_fails_tells_all_who_shared_it_and_the_next_one_works() -> None:
    async def fail() -> int:
        raise LookupError

    shelf = Shelf()
    answers = await asyncio.gather(*(shelf.reads.get("k", fail) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LookupError] * 3
    shelf.let_go.set()
    assert await shelf.ask() == 0


@in_event_loop
async def test_a_caller_that_goes_away_does_not_end_the_read_of_the_others() -> None:
    shelf = Shelf()
    gone, stays = shelf.ask(), shelf.ask()
    await shelf.has_begun()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    shelf.let_go.set()
    assert await stays == 0


@in_event_loop
async def test_each_caller_has_its_own_time_whatever_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, now = Shelf(), 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    first = shelf.ask()
    await shelf.has_begun()
    now += 1
    second = shelf.ask()
    await asyncio.sleep(0)
    now += 50
    third = shelf.ask()
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


@in_event_loop
async def test_nothing_is_kept_when_all_have_been_answered() -> None:
    shelf = Shelf()
    shelf.let_go.set()
    await asyncio.gather(*(shelf.ask(n % 3) for n in range(30)))
    await asyncio.sleep(0)
    assert (shelf.reads._running, shelf.reads._next) == ({}, {})
