"""Child processes: a supervisor that keeps them running, and the watch that ends a child with its parent."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType

from frontdesk.clock import stored_time, system_clock
from frontdesk.log_output import LogOutput

PARENT = "FRONTDESK_PARENT"  # the process id of the supervisor, for its children
TICK_SECONDS = 0.05
STOP_SECONDS = 3.0  # less than the 5 s in which `frontdesk serve` promises to stop

EARLY_SECONDS = 5.0  # a child that ends sooner has not started well
FIRST_PAUSE_SECONDS = 0.5
WATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Program:
    """What a child runs, and the rule for its restarts.

    A child that ended is started again at once. After a second early end in a row it is started after a pause, which
    doubles up to `longest_pause_seconds`. After `most_early_ends` the supervisor gives up.
    """

    name: str
    command: Sequence[str]
    longest_pause_seconds: float
    most_early_ends: int | None = None


class _Child:
    """One running child of a program; `starts_at` is when the next one is due."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = self.starts_at = 0.0

    def start(self) -> int:
        environment = {**os.environ, PARENT: str(os.getpid())}
        self.process = subprocess.Popen(self.program.command, env=environment)  # noqa: S603  # our own programs
        self.started_at = time.monotonic()
        return self.process.pid


class Supervisor:
    """Keeps one child running for each program in `programs`, and says in the log when one was replaced."""

    def __init__(self, programs: Sequence[Program], log: LogOutput) -> None:
        self._children = [_Child(program) for program in programs]
        self._log = log
        self._early_ends: dict[str, int] = {}
        self._is_stopping = False

    def run(self) -> bool:
        """Return when SIGTERM, SIGINT or SIGHUP came and every child has ended; False when it gave up before.

        Children have 3 s to stop, then they are killed.
        """
        for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if sign != signal.SIGHUP or signal.getsignal(sign) != signal.SIG_IGN:  # `nohup` ignores it
                signal.signal(sign, self._stop)
        for child in self._children:
            child.start()
        has_given_up = False
        while not self._is_stopping and not has_given_up:
            time.sleep(TICK_SECONDS)
            has_given_up = not all(self._keep(child) for child in self._children)
        self._stop_children()
        return not has_given_up

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_stopping = True

    def _keep(self, child: _Child) -> bool:
        """Start the child again when it has ended and is due; False when it has ended early too often."""
        if child.process is None:
            if time.monotonic() >= child.starts_at and not self._is_stopping:
                self._say(f"{child.program.name}_process_started", pid=child.start())
            return True
        status = child.process.poll()
        if status is None or self._is_stopping:
            return True
        self._say(f"{child.program.name}_process_ended", pid=child.process.pid, **_exit_of(status))
        child.process = None
        return self._plan_restart(child)

    def _plan_restart(self, child: _Child) -> bool:
        program, now = child.program, time.monotonic()
        is_early = now - child.started_at < EARLY_SECONDS
        ends = self._early_ends[program.name] = self._early_ends.get(program.name, 0) + 1 if is_early else 0
        if program.most_early_ends is not None and ends >= program.most_early_ends:
            self._say(f"{program.name}_gave_up", ended_early=ends)
            return False
        pause = 0.0 if ends <= 1 else FIRST_PAUSE_SECONDS * 2 ** min(ends - 2, 10)
        child.starts_at = now + min(pause, program.longest_pause_seconds)
        return True

    def _stop_children(self) -> None:
        """Children finish what they have in hand, within `STOP_SECONDS`."""
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _say(self, event: str, **values: object) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._log.put([json.dumps(line) + "\n"])


def _exit_of(status: int) -> dict[str, object]:
    """How a process ended: with an exit status, or by a signal."""
    if status < 0:
        names = {one.value: one.name for one in signal.Signals}
        return {"status": None, "signal": names.get(-status, str(-status))}
    return {"status": status, "signal": None}


def stop_with_parent(stop: Callable[[], None]) -> None:
    """Call `stop`, in a thread, once the supervisor of this process is gone. Does nothing in a process without one.

    A thread watches, not an event loop: a process whose loop is blocked ends too.
    """
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_watch, args=(int(parent), stop), name="parent", daemon=True).start()


def _watch(parent: int, stop: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    stop()
