"""Log lines leave by a thread of their own: nobody waits for a reader, and at the end nothing is lost to one that reads."""

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


def test_all_lines_come_out_in_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = output_to(writing)
    for start in range(0, len(LINES), 100):
        output.put(LINES[start : start + 100])
    wanted = "".join(LINES).encode()
    received = b""
    while len(received) < len(wanted):
        received += os.read(reading, 65_536)
    output.finish()
    assert received == wanted
    assert output.dropped == 0


def test_a_pipe_that_may_not_wait_is_written_to_all_the_same(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    output = output_to(writing)
    output.put(LINES)
    wanted = "".join(LINES).encode()
    received = b""
    while len(received) < len(wanted):
        received += os.read(reading, 65_536)
    assert received == wanted


def test_lines_that_nobody_reads_hold_nobody_up_and_are_counted(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = output_to(writing, waiting_lines=1_000)
    for start in range(0, len(LINES), 100):
        output.put(LINES[start : start + 100])
    assert len(LINES) > output.dropped > 0
    kept = len(LINES) - output.dropped
    received = b""
    while received.count(b"\n") < kept:
        received += os.read(reading, 65_536)
    output.finish()
    lines = received.decode().splitlines(keepends=True)
    assert lines == sorted(set(lines))  # whole lines, in order, none twice


def test_a_reader_that_went_away_is_no_fault(pipe: tuple[int, int]) -> None:
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
    os.read(pipe[0], 1)  # what was written is there
    drained = threading.Thread(target=_drain, args=(pipe[0], sum(map(len, LINES)) - 1))
    drained.start()
    output.finish(60)
    drained.join()


def _drain(reading: int, left: int) -> None:
    while left:
        left -= len(os.read(reading, 65_536))


def test_a_text_in_memory_is_written_at_once_and_a_closed_stream_not_at_all() -> None:
    text = io.StringIO()
    LogOutput(text).put(["one\n", "two\n"])
    assert text.getvalue() == "one\ntwo\n"
    LogOutput(None).put(["one\n"])
