"""Chunks that are written at the same time do what they would have done one after the other."""

import os
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.threads import NICENESS, CommitTurn, OutOfTurn, ordered_commit, prefetch
from tests.files.loading import Desk, csv_of, row
from tests.patience import PATIENCE_SECONDS, wait_until

KEYS = 10


class Broken(Exception):
    pass


def test_items_are_written_together_and_committed_in_order() -> None:
    together, done = threading.Barrier(2, timeout=PATIENCE_SECONDS), []

    def write(item: int, turn: CommitTurn) -> None:
        together.wait()
        turn.take()
        done.append(item)

    ordered_commit(range(20), write, keys_of=_no_keys, threads=2)
    assert done == list(range(20))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nothing_is_committed_after_an_item_that_failed(threads: int) -> None:
    done = []

    def write(item: int, turn: CommitTurn) -> None:
        if item == 5:
            raise Broken
        turn.take()
        done.append(item)

    with pytest.raises(Broken):
        ordered_commit(range(20), write, keys_of=_no_keys, threads=threads)
    assert done == [0, 1, 2, 3, 4]


def test_writes_that_have_begun_end_before_the_error_of_the_items_is_raised() -> None:
    done = []

    def items() -> Iterator[int]:
        yield from range(4)
        raise Broken

    def write(item: int, turn: CommitTurn) -> None:
        turn.take()
        done.append(item)

    with pytest.raises(Broken):
        ordered_commit(items(), write, keys_of=_no_keys, threads=2)
    assert done == [0, 1, 2, 3]


def test_the_error_of_a_write_is_raised_before_that_of_the_items() -> None:
    def items() -> Iterator[int]:
        yield from range(2)
        raise LookupError

    def write(item: int, turn: CommitTurn) -> None:
        turn.take()
        if item == 1:
            raise Broken

    with pytest.raises(Broken):
        ordered_commit(items(), write, keys_of=_no_keys, threads=2)


def test_a_chunk_that_holds_what_the_one_before_waits_for_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.files.threads.PATIENCE_SECONDS", 0.01)
    free, done = threading.Event(), []

    def write(item: int, turn: CommitTurn) -> None:
        if item == 0:
            assert free.wait(PATIENCE_SECONDS)  # what the second one holds
        else:
            with pytest.raises(OutOfTurn):
                turn.take()
            free.set()
            turn.wait()
            turn.take()
        done.append(item)

    ordered_commit(range(2), write, keys_of=_no_keys, threads=2)
    assert done == [0, 1]


def test_the_threads_of_a_load_have_a_lower_priority_and_leave_the_caller_as_it_was() -> None:
    before, seen = os.nice(0), []

    def write(_item: int, turn: CommitTurn) -> None:
        turn.take()
        seen.append(os.nice(0))

    ordered_commit(range(4), write, keys_of=_no_keys, threads=2)
    seen += prefetch(os.nice(0) for _ in range(2))
    assert set(seen) == {NICENESS if sys.platform == "linux" else before}
    assert os.nice(0) == before


def test_items_that_share_a_key_are_not_written_together() -> None:
    writing: list[int] = []

    def write(item: int, turn: CommitTurn) -> None:
        writing.append(item)
        turn.take()
        assert writing == [item]
        writing.remove(item)

    ordered_commit(range(50), write, keys_of=lambda _item: {"shared"}, threads=2)
    assert writing == []


def test_items_are_read_ahead_in_order_and_the_error_comes_after_the_last_of_them() -> None:
    read, used = [], []

    def items() -> Iterator[int]:
        for number in range(5):
            read.append(number)
            yield number
        raise Broken

    prefetched = prefetch(items())
    used.append(next(prefetched))
    wait_until(lambda: len(read) == 3, "what is read ahead")
    with pytest.raises(Broken):
        used.extend(prefetched)
    assert used == read == list(range(5))
    assert list(prefetch(iter("abc"))) == ["a", "b", "c"]


def test_nothing_is_read_ahead_of_a_consumer_that_stopped() -> None:
    read = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    prefetched = prefetch(items())
    assert next(prefetched) == 0
    del prefetched
    assert read == list(range(len(read)))
    assert len(read) <= 3
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@pytest.mark.parametrize("seed", range(6))
def test_chunks_that_compete_for_keys_end_as_one_chunk_would(desk: Desk, seed: int) -> None:
    """Each row takes keys that another row of the file holds, gives up or wants."""
    apart, together = (
        _load_twice(desk, "a", seed, chunk_rows=2),
        _load_twice(desk, "b", seed, chunk_rows=1000),
    )
    assert apart == together
    assert {"created", "refused"} <= {line[1] for line in apart[0]}


def _no_keys(_item: int) -> set[str]:
    return set()


def _load_twice(desk: Desk, prefix: str, seed: int, *, chunk_rows: int) -> tuple[list[Any], list[Any]]:
    """The report of a second file over the members of a first one, and what is stored then."""
    draw = random.Random(seed)
    desk.options = replace(desk.options, chunk_rows=1000)
    desk.load(csv_of(_row(prefix, n, member=n, email=n) for n in range(KEYS)))
    desk.options = replace(desk.options, chunk_rows=chunk_rows)
    rows = [
        _row(prefix, n, member=draw.randrange(4 * KEYS), email=draw.randrange(4 * KEYS))
        for n in draw.sample(range(2 * KEYS), 2 * KEYS)
    ]
    file = desk.load(csv_of(rows))
    names = ("external_id", "member_id", "email")
    stored = [
        [str(found[name]).removeprefix(prefix) for name in names]
        for key, found in sorted(desk.members().items())
        if key.startswith(prefix)
    ]
    return desk.outcomes(file), stored


def _row(prefix: str, number: int, *, member: int, email: int) -> dict[str, Any]:
    keys = {"external_id": f"{prefix}{number:03d}", "member_id": f"{prefix}{member:03d}"}
    return row(0, **keys, email=f"{prefix}{email}@example.com")
