"""Blocking writes beside the event loop: in time, or refused."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from frontdesk.db import races
from frontdesk.db.races import Writers
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Unavailable
from tests.patience import PATIENCE_SECONDS


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE_SECONDS))


def test_what_has_begun_when_the_time_is_over_is_unknown_and_what_has_not_is_never_done() -> None:
    async def scene() -> None:
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

    run(scene())


def test_who_stood_in_line_for_long_while_another_was_refused_is_refused_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_line(long_seconds: float) -> Callable[[], Coroutine[Any, Any, None]]:
        async def scene() -> None:
            monkeypatch.setattr(races, "LONG_SECONDS", long_seconds)
            writers, go = Writers(1, Deadlines(60)), threading.Event()

            def refused() -> None:
                go.wait(PATIENCE_SECONDS)
                raise Unavailable("The database is busy.")

            calls = [asyncio.create_task(writers.run(work)) for work in (refused, lambda: "written")]
            await asyncio.sleep(0)
            go.set()
            first, second = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(first, Unavailable)
            assert (second == "written") if long_seconds else isinstance(second, Unavailable)
            assert await writers.run(lambda: "later") == "later"

        return scene

    run(in_line(0.0)())
    run(in_line(60.0)())
