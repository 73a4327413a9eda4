"""The supervisor: it replaces children, gives up on a program that never starts well, and stops all of them in time."""

import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from frontdesk.log_output import LogOutput
from frontdesk.processes import STOP_SECONDS, Program, Supervisor

FAIL = (sys.executable, "-S", "-c", "raise SystemExit(3)")
WAIT = (sys.executable, "-S", "-c", "import time; time.sleep(60)")
IGNORE_SIGTERM = (
    *(sys.executable, "-S", "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
)


@pytest.fixture(autouse=True)
def same_signal_handlers() -> Iterator[None]:
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(one) for one in signals]
    yield
    for one, handler in zip(signals, before, strict=True):
        signal.signal(one, handler)


def run(*programs: Program, stop_after_seconds: float | None = None) -> tuple[bool, list[dict[str, object]]]:
    """What the supervisor returns, and the lines of its log."""
    log = io.StringIO()
    if stop_after_seconds is not None:
        threading.Timer(stop_after_seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
    is_stopped = Supervisor(programs, LogOutput(log)).run()
    return is_stopped, [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_program_that_ends_early_too_often_is_given_up() -> None:
    is_stopped, lines = run(Program("test", FAIL, longest_pause_seconds=0.1, most_early_ends=3))
    assert not is_stopped
    assert [line["event"] for line in lines] == [
        *("test_process_ended", "test_process_started", "test_process_ended", "test_process_started"),
        *("test_process_ended", "test_gave_up"),
    ]
    assert (lines[0]["status"], lines[0]["signal"], lines[-1]["ended_early"]) == (3, None, 3)


def test_a_program_without_a_bound_is_started_again_and_again_after_growing_pauses() -> None:
    is_stopped, lines = run(Program("test", FAIL, longest_pause_seconds=30), stop_after_seconds=3)
    assert is_stopped
    starts = sum(line["event"] == "test_process_started" for line in lines)
    assert 1 <= starts <= 4  # at once, then after 0.5 s, 1 s, 2 s


def test_children_that_can_be_stopped_are_stopped_at_once() -> None:
    started = time.monotonic()
    assert run(*[Program("test", WAIT, 1.0)] * 3, stop_after_seconds=0.5) == (True, [])
    assert time.monotonic() - started < STOP_SECONDS


def test_a_child_that_ignores_the_stop_is_killed() -> None:
    started = time.monotonic()
    assert run(Program("test", IGNORE_SIGTERM, 1.0), stop_after_seconds=1) == (True, [])
    assert STOP_SECONDS <= time.monotonic() - started < STOP_SECONDS + 5
