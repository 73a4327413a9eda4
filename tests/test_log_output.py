"""Log lines leave by a thread of their own: nobody waits for a reader, and at the end nothing is
lost to one that reads.
"""

import io
import os
import threading
from collections.abc import Iterator

import pytest

from frontdesk.log_output import LogOutput

LINES = [f"line {number:06d} {'x' * 80}\n" for number in range(5_000)]  # more than a pipe holds


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def output_to(writing: int, *, waiting_lines: int = 100_000) -> LogOutput:
    return LogOutput(os.fdopen(writing, "w", closefd=False), waiting_lines=waiting_lines)


def put_all(output: LogOutput) -> None:
    for start in range(0, len(LINES), 100):
        output.put(LINES[start : start + 100])


def lines_from(reading: int, count: int) -> list[str]:
    received = b""
    while received.count(b"\n") < count:
        received += os.read(reading, 65_536)
    return received.decode().splitlines(keepends=True)


@pytest.mark.parametrize("may_wait", [True, False])
def test_all_lines_come_out_in_order(pipe: tuple[int, int], may_wait: bool) -> None:
    os.set_blocking(pipe[1], may_wait)
    output = output_to(pipe[1])
    put_all(output)
    assert lines_from(pipe[0], len(LINES)) == LINES
    output.finish()
    assert output.dropped == 0


def test_lines_that_nobody_reads_hold_nobody_up_and_are_counted(pipe: tuple[int, int]) -> None:
    output = output_to(pipe[1], waiting_lines=1_000)
    put_all(output)
    assert len(LINES) > output.dropped > 0
    lines = lines_from(pipe[0], len(LINES) - output.dropped)
    output.finish()
    assert lines == sorted(set(lines))  # whole lines, in order, none twice


def test_a_reader_that_went_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = output_to(writing)
    output.put(LINES[:3])
    output.finish()
    assert output.dropped == 3
    os.close(writing)


def test_the_end_does_not_wait_for_a_reader_that_never_comes(pipe: tuple[int, int]) -> None:
    output = output_to(pipe[1])
    output.put(LINES)
    output.finish(0.01)
    # what was written is there
    drained = threading.Thread(target=lines_from, args=(pipe[0], len(LINES)))
    drained.start()
    output.finish(60)
    drained.join()


def test_a_text_in_memory_is_written_at_once_and_a_closed_stream_not_at_all() -> None:
    text = io.StringIO()
    LogOutput(text).put(["one\n", "two\n"])
    assert text.getvalue() == "one\ntwo\n"
    LogOutput(None).put(["one\n"])
