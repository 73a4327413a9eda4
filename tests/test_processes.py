"""The supervisor: it replaces children, gives up on a program that never starts well, and stops all of them in time."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontdesk import processes
from frontdesk.errors import FrontdeskError
from frontdesk.log_output import LogOutput
from frontdesk.processes import STOP_SECONDS, Program, Supervisor
from tests.faults.server import wait_until

FAIL = (sys.executable, "-S", "-c", "raise SystemExit(3)")
WAIT = (sys.executable, "-S", "-c", "import time; time.sleep(60)")
IGNORE_SIGTERM = (
    *(sys.executable, "-S", "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
)


# It says on its standard input why it can't work.
REFUSE = (sys.executable, "-S", "-c", "import os; os.write(0, b'No table. Make one.'); raise SystemExit(1)")


def run(
    *programs: Program, stop_after_seconds: float | None = None, **options: Any
) -> tuple[bool, list[dict[str, object]]]:
    """What the supervisor returns, and the lines of its log."""
    log = io.StringIO()
    if stop_after_seconds is not None:
        threading.Timer(stop_after_seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
    is_stopped = Supervisor(programs, LogOutput(log), **options).run()
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


def test_what_the_first_child_reports_instead_of_being_ready_ends_the_supervisor_before_another_child_starts(
    tmp_path: Path,
) -> None:
    touch = (sys.executable, "-S", "-c", f"open({str(tmp_path / 'started')!r}, 'w')")
    with pytest.raises(FrontdeskError, match=r"No table\. Make one\."):
        run(Program("first", WAIT, 1.0), Program("other", touch, 1.0), first_command=REFUSE)
    assert list(tmp_path.iterdir()) == []


def test_the_others_start_once_the_first_child_is_ready_and_its_replacement_runs_the_ordinary_command(
    tmp_path: Path,
) -> None:
    kill_first = "import os, pathlib, signal; os.kill(int(pathlib.Path({0!r}).read_text()), signal.SIGKILL)"
    first = "import os, time; open({0!r}, 'w').write(str(os.getpid())); os.write(0, b'ready'); time.sleep(60)"
    stop = "import os, signal; os.kill(os.getppid(), signal.SIGTERM)"
    note = str(tmp_path / "pid")
    _, lines = run(
        Program("first", (sys.executable, "-S", "-c", stop), 1.0),
        Program(
            "other",
            (sys.executable, "-S", "-c", kill_first.format(note) + "; import time; time.sleep(60)"),
            1.0,
        ),
        first_command=(sys.executable, "-S", "-c", first.format(note)),
    )
    assert [line["event"] for line in lines] == ["first_process_ended", "first_process_started"]


def test_a_child_that_never_reported_has_ended_early_however_long_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "EARLY_SECONDS", 0.0)
    failing = Program("test", FAIL, longest_pause_seconds=0.1, most_early_ends=2, reports=True)
    assert run(failing)[0] is False
    ready = replace(failing, command=(*FAIL[:-1], "import os; os.write(0, b'ready')"))
    assert run(ready, stop_after_seconds=2)[0] is True


def test_a_child_learns_at_once_that_its_supervisor_was_killed(tmp_path: Path) -> None:
    child = (
        "import threading, pathlib; from frontdesk.processes import stop_with_parent; ended = threading.Event(); "
        f"stop_with_parent(ended.set); pathlib.Path({str(tmp_path / 'up')!r}).touch(); ended.wait(); "
        f"pathlib.Path({str(tmp_path / 'told')!r}).touch()"
    )
    program = (
        "import sys; from frontdesk.log_output import LogOutput; from frontdesk.processes import Program, Supervisor; "
        f"Supervisor([Program('test', (sys.executable, '-c', {child!r}), 1.0)], LogOutput(None)).run()"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as supervisor:
        wait_until((tmp_path / "up").exists, "the child")
        supervisor.kill()
    wait_until((tmp_path / "told").exists, "the child to be told")
