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

    async def has_begun(self) -> None:
        """Return when one more read has begun."""
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
    gone, *others = [shelf.ask() for _ in range(6)]
    shelf.ask("another")
    await shelf.has_begun()  # which does not wait for the first
    gone.cancel()  # and takes nobody along
    shelf.let_go.set()
    assert await asyncio.gather(first, *others) == [0] + [1] * 5
    assert shelf.begun == 3
    await asyncio.sleep(0)
    assert (gone.cancelled(), shelf.reads._running, shelf.reads._next) == (True, {}, {})  # nothing is kept


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
