"""Many callers, one transaction: who is grouped with whom, and that each gets its own answer."""

import asyncio
from collections.abc import Coroutine, Sequence
from itertools import chain
from typing import Any

import pytest

from frontdesk.db import races
from frontdesk.db.races import GroupCommit
from frontdesk.deadlines import Deadlines
from frontdesk.errors import NotFound, Unavailable


class Work:
    """Runs a group when it is let; the outcome of an item is ten times the item."""

    def __init__(self, *, held: bool = False) -> None:
        self.groups: list[list[int]] = []
        self.most_at_once = 0
        self._running = 0
        self.go = asyncio.Event()
        self._begun = asyncio.Semaphore(0)
        if not held:
            self.go.set()

    async def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(items))
        self._begun.release()
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        await self.go.wait()
        self._running -= 1
        return [item * 10 for item in items]

    async def begun(self, groups: int = 1) -> None:
        """Return when that many more groups have begun."""
        for _ in range(groups):
            await self._begun.acquire()


class Committing(GroupCommit[Any, Any]):
    """Commits groups by a function of the test."""

    def __init__(self, work: Any, **options: Any) -> None:
        super().__init__(**({"deadlines": Deadlines(60)} | options))
        self._work = work

    async def commit_group(self, items: Sequence[Any]) -> Sequence[Any]:
        result: Sequence[Any] = await self._work(items)
        return result


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_a_caller_alone_is_not_kept_waiting() -> None:
    async def alone() -> None:
        work = Work()
        assert await Committing(work).submit(1) == 10
        assert work.groups == [[1]]

    run(alone())


def test_those_who_come_while_a_group_runs_form_the_next_one_in_order() -> None:
    async def several() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work)
        first = asyncio.create_task(commit.submit(1))
        await work.begun()
        others = [asyncio.create_task(commit.submit(n)) for n in (2, 3, 4)]
        await asyncio.sleep(0)
        work.go.set()
        assert await asyncio.gather(first, *others) == [10, 20, 30, 40]
        assert work.groups == [[1], [2, 3, 4]]

    run(several())


def test_a_group_is_no_larger_than_the_limit() -> None:
    async def many() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work, limit=3)
        calls = [asyncio.create_task(commit.submit(n)) for n in range(8)]
        await work.begun()
        work.go.set()
        assert await asyncio.gather(*calls) == [n * 10 for n in range(8)]
        assert max(map(len, work.groups)) == 3
        assert sorted(chain.from_iterable(work.groups)) == list(range(8))

    run(many())


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_as_many_groups_run_at_once_as_there_are_lanes(lanes: int) -> None:
    async def many() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work, lanes=lanes, limit=1)
        calls = [asyncio.create_task(commit.submit(n)) for n in range(6)]
        await work.begun(lanes)
        work.go.set()
        await asyncio.gather(*calls)
        assert work.most_at_once == lanes

    run(many())


def test_each_caller_gets_its_own_outcome_or_error() -> None:
    async def mixed() -> None:
        async def work(items: Sequence[str]) -> list[str | Exception]:
            return [NotFound(item) if item == "bad" else item.upper() for item in items]

        commit: GroupCommit[str, str] = Committing(work)
        names = ["a", "bad", "b"]
        good, bad, last = await asyncio.gather(*map(commit.submit, names), return_exceptions=True)
        assert (good, last) == ("A", "B")
        assert isinstance(bad, NotFound)

    run(mixed())


def test_a_group_that_fails_as_a_whole_tells_every_caller_and_the_next_one_works() -> None:
    async def failing() -> None:
        async def work(items: Sequence[int]) -> list[int | Exception]:
            if 13 in items:
                raise Unavailable("The database is away.")
            return list(items)

        commit: GroupCommit[int, int] = Committing(work)
        answers = await asyncio.gather(commit.submit(13), commit.submit(14), return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
        assert await commit.submit(15) == 15

    run(failing())


def test_a_caller_that_goes_away_takes_nobody_along() -> None:
    async def leaving() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work)
        gone, stays = asyncio.create_task(commit.submit(1)), asyncio.create_task(commit.submit(2))
        await work.begun()
        gone.cancel()
        await asyncio.sleep(0)
        work.go.set()
        assert await stays == 20
        assert gone.cancelled()

    run(leaving())


def test_closing_finishes_what_waits_and_takes_nothing_new() -> None:
    async def closing() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work, limit=1)
        calls = [asyncio.create_task(commit.submit(n)) for n in range(3)]
        await work.begun()
        end = asyncio.create_task(commit.close())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await commit.submit(4)
        assert not end.done()
        work.go.set()
        await end
        assert [call.result() for call in calls] == [0, 10, 20]

    run(closing())


def test_who_is_not_in_a_group_when_the_time_is_over_is_refused_and_never_written() -> None:
    async def late() -> None:
        work = Work(held=True)
        commit = Committing(work, deadlines=Deadlines(0.05), limit=1)
        calls = [asyncio.create_task(commit.submit(n)) for n in (1, 2)]
        taken, waiting = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(taken, Unavailable)
        assert isinstance(waiting, Unavailable)
        assert (taken.outcome_unknown, waiting.outcome_unknown) == (True, False)
        work.go.set()
        assert await commit.submit(3) == 30
        assert work.groups == [[1], [3]]

    run(late())


def test_who_has_waited_long_when_a_group_is_refused_is_refused_with_it_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused() -> None:
        groups: list[Sequence[int]] = []
        begun, go = asyncio.Event(), asyncio.Event()

        async def work(items: Sequence[int]) -> list[int | Exception]:
            groups.append(items)
            begun.set()
            await go.wait()
            if 1 in items:
                raise Unavailable("The database is busy.")
            return list(items)

        for long_seconds in (0.0, 60.0):
            monkeypatch.setattr(races, "LONG_SECONDS", long_seconds)
            groups.clear()
            begun.clear()
            go.clear()
            commit = Committing(work, limit=1)
            calls = [asyncio.create_task(commit.submit(n)) for n in (1, 2, 3)]
            await begun.wait()
            go.set()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            others = [2, 3] if long_seconds else [Unavailable, Unavailable]
            assert [n if isinstance(n, int) else type(n) for n in answers] == [Unavailable, *others]
            assert groups == ([[1], [2], [3]] if long_seconds else [[1]])

    run(refused())


def test_a_second_lane_begins_only_when_a_group_is_held_up() -> None:
    async def many() -> None:
        work = Work(held=True)
        commit: GroupCommit[int, int] = Committing(work, lanes=2)
        calls = [asyncio.create_task(commit.submit(n)) for n in range(3)]
        await work.begun()
        calls += [asyncio.create_task(commit.submit(n)) for n in range(3, 6)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert work.groups == [[0, 1, 2]]
        await work.begun()  # the first one goes on being held
        assert work.groups[1:] == [[3, 4, 5]]
        work.go.set()
        await asyncio.gather(*calls)

    run(many())
