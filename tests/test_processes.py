"""The supervisor: it replaces children, gives up on a program that never starts well, and stops all
of them in time.
"""

import io
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from frontdesk import processes
from frontdesk.errors import FrontdeskError
from frontdesk.log_output import LogOutput
from frontdesk.processes import STOP_SECONDS, Program, Supervisor
from tests.patience import PATIENCE_SECONDS, wait_until


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-S", "-c", f"import os, pathlib, signal, time; {code}"


FAIL = python("raise SystemExit(3)")
WAIT = python("time.sleep(60)")
# It says on its standard input why it can't work.
REFUSE = python("os.write(0, b'refusal \"No table. Make one.\"\\n'); raise SystemExit(1)")


def noted(path: Path, *, before: str = "") -> tuple[str, ...]:
    """A program that makes a file when it is up, and sleeps for longer than a test may last."""
    return python(f"{before}open({str(path)!r}, 'w'); time.sleep(3600)")


def run(
    *programs: Program, stop_when: Callable[[str], bool] | None = None, **options: Any
) -> tuple[bool, list[dict[str, object]]]:
    """What the supervisor returns, and the lines of its log. `stop_when` looks at the log and says
    when SIGTERM is due.
    """
    log = io.StringIO()

    def stop(is_due: Callable[[str], bool]) -> None:
        wait_until(lambda: is_due(log.getvalue()), "the moment to stop")
        os.kill(os.getpid(), signal.SIGTERM)

    if stop_when is not None:
        threading.Thread(target=stop, args=[stop_when], daemon=True).start()
    is_stopped = Supervisor(programs, LogOutput(log), **options).run()
    return is_stopped, [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_program_that_ends_early_too_often_is_given_up() -> None:
    is_stopped, lines = run(Program("test", FAIL, longest_pause_seconds=0.1, most_early_ends=3))
    assert not is_stopped
    pair = ["test_process_ended", "test_process_started"]
    assert [line["event"] for line in lines] == [*pair, *pair, "test_process_ended", "test_gave_up"]
    assert (lines[0]["status"], lines[0]["signal"], lines[-1]["ended_early"]) == (3, None, 3)


def test_a_program_without_a_bound_is_started_again_and_again_after_growing_pauses() -> None:
    began = time.monotonic()
    program = Program("test", FAIL, longest_pause_seconds=30)
    is_stopped, _ = run(program, stop_when=lambda log: log.count("test_process_started") == 3)
    assert is_stopped
    assert time.monotonic() - began >= 0 + 0.5 + 1


def test_children_that_end_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", PATIENCE_SECONDS)
    began = time.monotonic()
    programs = [Program(name, noted(tmp_path / name), 1.0) for name in "abc"]
    assert run(*programs, stop_when=lambda _: len(list(tmp_path.iterdir())) == 3) == (True, [])
    assert time.monotonic() - began < PATIENCE_SECONDS


def test_a_child_that_ignores_the_stop_is_killed_when_it_has_had_its_seconds(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    program = Program("test", noted(tmp_path / "up", before=ignores), 1.0)
    assert run(program, stop_when=lambda _: (tmp_path / "up").exists()) == (True, [])
    assert time.monotonic() - began >= STOP_SECONDS


def test_a_fault_that_the_first_child_reports_ends_all_before_another_starts(
    tmp_path: Path,
) -> None:
    touch = python(f"open({str(tmp_path / 'started')!r}, 'w')")
    with pytest.raises(FrontdeskError, match=r"No table\. Make one\."):
        run(Program("first", WAIT, 1.0), Program("other", touch, 1.0), first_command=REFUSE)
    assert list(tmp_path.iterdir()) == []


def test_others_start_once_the_first_is_ready_whose_replacement_is_an_ordinary_one(
    tmp_path: Path,
) -> None:
    note = str(tmp_path / "pid")
    first = f"open({note!r}, 'w').write(str(os.getpid())); os.write(0, b'ready\\n'); time.sleep(60)"
    kill_first = f"os.kill(int(pathlib.Path({note!r}).read_text()), signal.SIGKILL); time.sleep(60)"
    _, lines = run(
        Program("first", python("os.kill(os.getppid(), signal.SIGTERM)"), 1.0),
        Program("other", python(kill_first), 1.0),
        first_command=python(first),
    )
    assert [line["event"] for line in lines] == ["first_process_ended", "first_process_started"]


def test_a_child_that_never_reported_has_ended_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "EARLY_SECONDS", 0.0)
    failing = Program("test", FAIL, longest_pause_seconds=0.1, most_early_ends=2, reports=True)
    assert run(failing)[0] is False
    ready = replace(failing, command=python("os.write(0, b'ready\\n')"))
    assert run(ready, stop_when=lambda log: log.count("test_process_started") == 3)[0] is True


def test_words_are_understood_in_pieces_and_together(tmp_path: Path) -> None:
    pieces = (
        "os.write(0, b'ali'); time.sleep(0.1); os.write(0, b've\\nali'); time.sleep(0.1); "
        "os.write(0, b've\\nrefusal \"One '); time.sleep(0.1); os.write(0, b'reason.\"\\nready\\n'); "
    )
    with pytest.raises(FrontdeskError, match=r"^One reason\.$"):
        run(Program("first", WAIT, 1.0), first_command=noted(tmp_path / "up", before=pieces))


SILENT = python("os.write(0, b'alive\\n'); time.sleep(3600)")


def test_a_child_that_falls_silent_is_killed_and_replaced() -> None:
    program = Program("test", SILENT, longest_pause_seconds=0.1, silent_seconds=1.0)
    _, lines = run(program, stop_when=lambda log: "test_process_started" in log)
    assert [line["event"] for line in lines[:3]] == [
        "test_process_silent",
        "test_process_ended",
        "test_process_started",
    ]
    assert (lines[0]["requests"], lines[1]["signal"]) == ([], "SIGKILL")


def test_a_child_that_starts_slowly_is_left_alone_until_it_is_ready(tmp_path: Path) -> None:
    starts_slowly = "os.write(0, b'alive\\n'); time.sleep(3); os.write(0, b'ready\\n'); "
    program = Program(
        "test", noted(tmp_path / "up", before=starts_slowly), 1.0, reports=True, silent_seconds=1.0
    )
    _, lines = run(program, stop_when=lambda _: (tmp_path / "up").exists())
    assert lines == []


def test_a_child_that_never_starts_is_killed_too() -> None:
    program = Program("test", WAIT, 0.1, most_early_ends=2, reports=True, start_seconds=1.0)
    is_stopped, lines = run(program)
    assert not is_stopped
    assert [line["event"] for line in lines].count("test_process_silent") == 2


def test_systemd_gets_no_beat_while_all_children_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{tmp_path.parent}/notify-{os.getpid()}"[-100:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + address)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + address)
        monkeypatch.setenv("WATCHDOG_USEC", "100000")
        came_at: list[float] = []

        def receive() -> None:
            message = b""
            while message != b"STOPPING=1":
                message = systemd.recv(64)
                came_at.append(time.monotonic())

        receiver = threading.Thread(target=receive, daemon=True)
        receiver.start()
        program = Program("test", SILENT, longest_pause_seconds=0.1, silent_seconds=4.0)
        run(program, stop_when=lambda log: "test_process_started" in log)
        receiver.join(PATIENCE_SECONDS)
    gaps = [later - earlier for earlier, later in pairwise(came_at)]
    assert max(gaps) >= 1.5  # of the two seconds between the half of its patience and the kill


def test_a_supervisor_that_reads_nothing_blocks_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        monkeypatch.setattr(processes, "_STANDARD_INPUT", there.fileno())
        monkeypatch.setenv(processes.SUPERVISED, "")
        for _ in range(100_000):
            processes.report_alive()
        assert here.recv(6) == b"alive\n"
