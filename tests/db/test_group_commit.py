"""Many callers, one transaction: who is grouped with whom, and that each gets its own answer, or is
refused in time.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from frontdesk.db import group_commit
from frontdesk.db.group_commit import GroupCommit, Writers
from frontdesk.deadlines import Deadlines
from frontdesk.errors import NotFound, Unavailable
from tests.patience import PATIENCE_SECONDS, in_event_loop


class Commits(GroupCommit[Any, Any]):
    """Commits groups when it is let; the outcome of an item is what `answer` makes of it, or raises
    for the whole group.
    """

    def __init__(
        self,
        answer: Callable[[Any], Any] = lambda item: item * 10,
        *,
        seconds: float = 60,
        **options: int,
    ) -> None:
        super().__init__(deadlines=Deadlines(seconds), **options)
        self.groups: list[list[Any]] = []
        self.go = asyncio.Event()
        self._answer = answer
        self._begun = asyncio.Semaphore(0)

    async def commit_group(self, items: Sequence[Any]) -> Sequence[Any]:
        self.groups.append(list(items))
        self._begun.release()
        await self.go.wait()
        return [self._answer(item) for item in items]

    async def begun(self) -> None:
        """Return when one more group has begun."""
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
    first, gone = commits.submitted(1, 0)
    await commits.begun()  # callers are not kept waiting
    others = commits.submitted(2, 3, 4)
    gone.cancel()  # one that goes away takes nobody along
    await asyncio.sleep(0)
    commits.go.set()
    assert await asyncio.gather(first, *others) == [10, 20, 30, 40]
    assert gone.cancelled()
    assert commits.groups == [[1, 0], [2, 3, 4]]


def refuse(item: Any) -> Any:
    if item == 13:
        raise Unavailable("The database is away.")
    return NotFound("part") if item == "bad" else item * 2


@in_event_loop
async def test_who_is_not_in_a_group_when_the_time_is_over_is_refused_and_never_written() -> None:
    commits = Commits(seconds=0.05, limit=1)
    answers = await asyncio.gather(*commits.submitted(1, 2), return_exceptions=True)
    assert [getattr(answer, "outcome_unknown", None) for answer in answers] == [True, False]
    assert await commits.outcomes(3) == [30]
    assert commits.groups == [[1], [3]]


@in_event_loop
async def test_late_work_is_unknown_if_it_has_begun_and_else_never_done() -> None:
    writers = Writers(1, Deadlines(0.05))
    go = threading.Event()
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
async def test_long_waits_end_with_a_refused_group(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "LONG_SECONDS", 0.0 if is_long else 60.0)
    commits = Commits(refuse, limit=1)
    refused, *others = await commits.outcomes(13, 2, 3)
    assert isinstance(refused, Unavailable)
    assert [type(answer) for answer in others] == [Unavailable if is_long else int] * 2
    assert commits.groups == ([[13]] if is_long else [[13], [2], [3]])
    # so with blocking work
    writers = Writers(1, Deadlines(60))
    go = threading.Event()
    works: list[Callable[[], Any]] = [lambda: go.wait() and refuse(13), lambda: refuse(2)]
    calls = [asyncio.create_task(writers.run(work)) for work in works]
    await asyncio.sleep(0)
    go.set()
    first, second = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(first), type(second)] == [Unavailable, Unavailable if is_long else int]
    assert await writers.run(lambda: "later") == "later"


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
