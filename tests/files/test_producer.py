"""Items are made ahead of their use by a thread that pauses and ends when it is told to."""

import os
import sys
import threading
from collections.abc import Generator, Iterator

import pytest

from frontdesk.files.claims import NICENESS, GoOn, reading_ahead


class Broken(Exception):
    pass


@pytest.fixture
def running() -> threading.Event:
    running = threading.Event()
    running.set()
    return running


def never() -> None:
    raise AssertionError


@pytest.mark.parametrize("ahead", [0, 2])
def test_items_come_in_order_so_many_ahead_and_the_error_after_the_last(
    running: threading.Event, ahead: int
) -> None:
    made: list[int] = []

    def make(_go_on: GoOn) -> Generator[int]:
        for number in range(5):
            made.append(number)
            yield number
        raise Broken

    taken: list[int] = []

    def take(items: Iterator[int]) -> None:
        for item in items:
            assert len(made) <= item + 1 + ahead
            taken.append(item)

    with reading_ahead(make, running, look_up=never, ahead=ahead) as made_ahead, pytest.raises(Broken):
        take(made_ahead)
    assert taken == made == list(range(5))


def test_a_caller_looks_up_while_there_is_no_item_and_may_give_up(
    running: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.claims.LOOK_SECONDS", 0.01)
    looks: list[bool] = []
    ended: list[bool] = []

    def make(go_on: GoOn) -> Generator[int]:
        try:
            while not ended:
                go_on()
            yield 0
        finally:
            ended.append(True)

    def look_up() -> None:
        looks.append(True)
        if len(looks) == 3:
            raise Broken

    with pytest.raises(Broken), reading_ahead(make, running, look_up=look_up) as items:
        list(items)
    assert (len(looks), ended) == (3, [True])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("producer")]


def test_nothing_is_made_while_it_is_paused(running: threading.Event) -> None:
    made: list[int] = []
    paused = threading.Event()

    def make(go_on: GoOn) -> Generator[int]:
        for number in range(10):
            if number == 3:
                running.clear()
                paused.set()
            go_on()
            made.append(number)
        yield len(made)

    def resume() -> None:
        paused.wait()
        made.append(-1)
        running.set()

    threading.Thread(target=resume).start()
    with reading_ahead(make, running, look_up=lambda: None) as items:
        assert [*items] == [10 + 1]
    assert made == [0, 1, 2, -1, *range(3, 10)]


def test_the_thread_has_a_lower_priority_than_its_caller(running: threading.Event) -> None:
    before = os.nice(0)

    def make(_go_on: GoOn) -> Generator[int]:
        yield os.nice(0)

    with reading_ahead(make, running, look_up=never) as items:
        assert [*items] == [NICENESS if sys.platform == "linux" else before]
    assert os.nice(0) == before
