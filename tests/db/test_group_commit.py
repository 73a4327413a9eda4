"""Many callers, one transaction: who is grouped with whom, and that each gets its own answer, or is refused in time."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import pytest

from frontdesk.db import group_commit
from frontdesk.db.group_commit import GroupCommit, Writers
from frontdesk.deadlines import Deadlines
from frontdesk.errors import NotFound, Unavailable
from tests.patience import PATIENCE_SECONDS, in_event_loop


class Commits(GroupCommit[Any, Any]):
    """Commits groups when it is let; the outcome of an item is what `answer` makes of it, or raises for the whole group."""

    def __init__(
        self, answer: Callable[[Any], Any] = lambda item: item * 10, *, seconds: float = 60, **options: int
    ) -> None:
        super().__init__(deadlines=Deadlines(seconds), **options)
        self.groups: list[list[Any]] = []
        self.running = self.most_at_once = 0
        self.go = asyncio.Event()
        self._answer = answer
        self._begun = asyncio.Semaphore(0)

    async def commit_group(self, items: Sequence[Any]) -> Sequence[Any]:
        self.groups.append(list(items))
        self._begun.release()
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await self.go.wait()
        self.running -= 1
        return [self._answer(item) for item in items]

    async def begun(self, groups: int = 1) -> None:
        """Return when that many more groups have begun."""
        for _ in range(groups):
            await self._begun.acquire()

    def submitted(self, *items: Any) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self.submit(item)) for item in items]

    async def outcomes(self, *items: Any) -> list[Any]:
        """Each item's result or error, from groups that are let."""
        self.go.set()
        return await asyncio.gather(*self.submitted(*items), return_exceptions=True)


@in_event_loop
async def test_those_who_come_while_a_group_runs_form_the_next_one_in_order() -> None:
    commits = Commits()
    first = commits.submitted(1)
    await commits.begun()  # a caller alone is not kept waiting
    others = commits.submitted(2, 3, 4)
    await asyncio.sleep(0)
    commits.go.set()
    assert await asyncio.gather(*first, *others) == [10, 20, 30, 40]
    assert commits.groups == [[1], [2, 3, 4]]


@in_event_loop
async def test_a_group_is_no_larger_than_the_limit() -> None:
    commits = Commits(limit=3)
    assert await commits.outcomes(*range(8)) == [n * 10 for n in range(8)]
    assert max(map(len, commits.groups)) == 3
    assert sorted(chain.from_iterable(commits.groups)) == list(range(8))


@pytest.mark.parametrize("lanes", [1, 2, 3])
@in_event_loop
async def test_as_many_groups_run_at_once_as_there_are_lanes(lanes: int) -> None:
    commits = Commits(lanes=lanes, limit=1)
    calls = commits.submitted(*range(6))
    await commits.begun(lanes)
    commits.go.set()
    await asyncio.gather(*calls)
    assert commits.most_at_once == lanes


@in_event_loop
async def test_each_caller_gets_its_own_outcome_or_error() -> None:
    commits = Commits(lambda item: NotFound(item) if item == "bad" else item.upper())
    good, bad, last = await commits.outcomes("a", "bad", "b")
    assert (good, type(bad), last) == ("A", NotFound, "B")


def refuse_13(item: int) -> int:
    if item == 13:
        raise Unavailable("The database is away.")
    return item


@in_event_loop
async def test_a_group_that_fails_as_a_whole_tells_every_caller_and_the_next_one_works() -> None:
    commits = Commits(refuse_13)
    assert [type(answer) for answer in await commits.outcomes(13, 14)] == [Unavailable, Unavailable]
    assert await commits.submit(15) == 15


@in_event_loop
async def test_a_caller_that_goes_away_takes_nobody_along() -> None:
    commits = Commits()
    gone, stays = commits.submitted(1, 2)
    await commits.begun()
    gone.cancel()
    await asyncio.sleep(0)
    commits.go.set()
    assert await stays == 20
    assert gone.cancelled()


@in_event_loop
async def test_closing_finishes_what_waits_and_takes_nothing_new() -> None:
    commits = Commits(limit=1)
    calls = commits.submitted(0, 1, 2)
    await commits.begun()
    end = asyncio.create_task(commits.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await commits.submit(4)
    assert not end.done()
    commits.go.set()
    await end
    assert [call.result() for call in calls] == [0, 10, 20]


@in_event_loop
async def test_who_is_not_in_a_group_when_the_time_is_over_is_refused_and_never_written() -> None:
    commits = Commits(seconds=0.05, limit=1)
    answers = await asyncio.gather(*commits.submitted(1, 2), return_exceptions=True)
    assert [getattr(answer, "outcome_unknown", None) for answer in answers] == [True, False]
    assert await commits.outcomes(3) == [30]
    assert commits.groups == [[1], [3]]


@pytest.mark.parametrize("is_long", [True, False])
@in_event_loop
async def test_who_has_waited_long_when_a_group_is_refused_is_refused_with_it(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LONG_SECONDS", 0.0 if is_long else 60.0)
    commits = Commits(refuse_13, limit=1)
    refused, *others = await commits.outcomes(13, 2, 3)
    assert isinstance(refused, Unavailable)
    assert [type(answer) for answer in others] == [Unavailable if is_long else int] * 2
    assert commits.groups == ([[13]] if is_long else [[13], [2], [3]])


@in_event_loop
async def test_blocking_work_that_has_begun_in_time_is_unknown_and_what_has_not_is_never_done() -> None:
    writers, go = Writers(1, Deadlines(0.05)), threading.Event()
    done: list[str] = []

    def begun() -> None:
        go.wait(PATIENCE_SECONDS)
        done.append("begun")

    calls = [writers.run(begun), writers.run(lambda: done.append("in line"))]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(answer, "outcome_unknown", None) for answer in answers] == [True, False]
    go.set()
    writers.shutdown(wait=True, cancel_futures=False)
    assert done == ["begun"]


@pytest.mark.parametrize("is_long", [True, False])
@in_event_loop
async def test_blocking_work_that_stood_in_line_for_long_is_refused_with_what_was_before_it(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LONG_SECONDS", 0.0 if is_long else 60.0)
    writers, go = Writers(1, Deadlines(60)), threading.Event()

    def refused() -> None:
        go.wait(PATIENCE_SECONDS)
        raise Unavailable("The database is busy.")

    calls = [asyncio.create_task(writers.run(work)) for work in (refused, lambda: "written")]
    await asyncio.sleep(0)
    go.set()
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(first), type(second)] == [Unavailable, Unavailable if is_long else str]
    assert await writers.run(lambda: "later") == "later"


@in_event_loop
async def test_a_second_lane_begins_only_when_a_group_is_held_up() -> None:
    commits = Commits(lanes=2)
    calls = commits.submitted(0, 1, 2)
    await commits.begun()
    calls += commits.submitted(3, 4, 5)
    for _ in range(10):
        await asyncio.sleep(0)
    assert commits.groups == [[0, 1, 2]]
    await commits.begun()  # the first one goes on being held
    assert commits.groups[1:] == [[3, 4, 5]]
    commits.go.set()
    await asyncio.gather(*calls)


@in_event_loop
async def test_the_free_lane_takes_what_came_while_both_were_busy() -> None:
    """The first lane goes on being held, and no further caller comes."""
    commits = Commits(lanes=2)
    held = commits.go
    calls = commits.submitted(0)
    await commits.begun()
    commits.go = second = asyncio.Event()
    calls += commits.submitted(1)
    await commits.begun()
    calls += commits.submitted(2)
    await asyncio.sleep(2 * group_commit.HELD_UP_SECONDS)
    commits.go = asyncio.Event()
    second.set()
    await commits.begun()
    assert commits.groups == [[0], [1], [2]]
    held.set()
    commits.go.set()
    await asyncio.gather(*calls)
