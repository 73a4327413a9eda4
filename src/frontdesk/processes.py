"""Child processes: a supervisor that keeps them running, and the connection of a child to it.

The standard input of a child is a socket to its supervisor. It closes with the supervisor, in any
case, so children need not poll. On it a child says, in lines, that it is ready, that its loop
advances, or why the installation can't be used. The supervisor kills a child that says nothing for
too long.
"""

import json
import mmap
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from frontdesk import codes
from frontdesk.errors import FrontdeskError
from frontdesk.liveness import (
    SILENT_SECONDS,
    START_SECONDS,
    RequestsInWork,
    make_shared_memory,
    map_shared_memory,
)
from frontdesk.log_output import LogOutput
from frontdesk.systemd import ServiceManager

# Set for the children of a supervisor: the number of the memory that they share with it, or empty.
SUPERVISED = "FRONTDESK_SUPERVISED"
STOP_SECONDS = (
    3.0  # after the drain; less than the 5 s in which `frontdesk serve` promises to stop then
)
# What `/readyz` says from SIGTERM on. Another `frontdesk serve` may then take over the port.
DRAINING = "draining: this process stops soon"
DRAIN = signal.SIGUSR1  # from the supervisor, to children that then drain

EARLY_SECONDS = 5.0  # a child that ends sooner has not started well
FIRST_PAUSE_SECONDS = 0.5

LOOK_SECONDS = 1.0  # between two looks for silent children
# Of the time between two looks so much counts as a child's silence. More of it is time in which the
# supervisor itself did not run, and perhaps the children neither: it was stopped, or the machine
# was suspended.
LONGEST_LOOK_SECONDS = 5.0
MOST_REQUESTS = 4  # that the log names of a silent process

_READY = b"ready"
_ALIVE = b"alive"
_REFUSAL = b"refusal "
_STANDARD_INPUT = 0


@dataclass(frozen=True, slots=True)
class Program:
    """The command of a child, and the rule for its restarts.

    A child that ended is started again at once. After a second early end in a row it is started
    after a pause, which doubles up to `longest_pause_seconds`. After `most_early_ends` the
    supervisor gives up.

    Early is within 5 s. A child of a program that `reports` is also early, on a slow machine for
    instance, when it ends before it has reported that it is ready.

    A child with a `listener` gets that socket, open at the same number, and drains at `DRAIN`. The
    supervisor keeps the socket open until all children have ended, so that connections wait while a
    child is replaced.

    A child that has begun to work and is silent for `silent_seconds` is killed, and so is one that
    starts and says nothing for `start_seconds`. The start ends with the first word, and with the
    report of a child that `reports`.
    """

    name: str
    command: Sequence[str]
    longest_pause_seconds: float
    most_early_ends: int | None = None
    reports: bool = False
    listener: socket.socket | None = None
    silent_seconds: float = SILENT_SECONDS
    start_seconds: float = START_SECONDS


class _Child:
    """One running child of a program; `starts_at` is the time of the next start."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.line: socket.socket | None = None  # to the process's standard input
        self.started_at = self.starts_at = 0.0
        self.is_ready = False
        self.silent_seconds = 0.0
        self._has_begun_to_work = False
        self._is_killed = False
        self._unread = b""  # the beginning of a line
        self._memory: mmap.mmap | None = None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        self.hang_up()
        self.is_ready = False
        self.silent_seconds = 0.0
        self._has_begun_to_work = False
        self._is_killed = False
        self._unread = b""
        self.line, its_end = socket.socketpair()
        number = make_shared_memory()
        files = [] if number is None else [number]
        if self.program.listener is not None:
            files.append(self.program.listener.fileno())
        try:
            with its_end:
                self.process = subprocess.Popen(  # noqa: S603  # our own programs
                    command,
                    env={**environment, SUPERVISED: "" if number is None else str(number)},
                    stdin=its_end.fileno(),
                    pass_fds=files,
                )
            self._memory = None if number is None else map_shared_memory(number)
        finally:
            if number is not None:
                os.close(number)
        self.started_at = time.monotonic()
        return self.process.pid

    def listen(self) -> None:
        """Read all that the process has said. Raises FrontdeskError for a reported refusal."""
        while self.line is not None:
            try:
                received = self.line.recv(65_536, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                received = b""
            if not received:  # it has ended; the next one gets a line of its own
                self.hang_up()
                return
            *messages, self._unread = (self._unread + received).split(b"\n")
            for message in messages:
                self._take(message)

    def _take(self, message: bytes) -> None:
        if message.startswith(_REFUSAL):
            raise FrontdeskError(
                json.loads(message.removeprefix(_REFUSAL)), code=codes.operators.CANT_SERVE
            )
        self.silent_seconds = 0.0
        self.is_ready = self.is_ready or message == _READY
        self._has_begun_to_work = self.is_ready or not self.program.reports

    @property
    def _allowed_seconds(self) -> float:
        return (
            self.program.silent_seconds if self._has_begun_to_work else self.program.start_seconds
        )

    @property
    def is_silent(self) -> bool:
        """Whether it is to be killed."""
        is_running = self.process is not None and not self._is_killed
        return is_running and self.silent_seconds >= self._allowed_seconds

    @property
    def is_living(self) -> bool:
        """Whether it starts, or has beaten a short time ago."""
        is_running = self.process is not None and not self._is_killed
        return is_running and self.silent_seconds < self._allowed_seconds / 2

    def kill_silent(self) -> dict[str, object]:
        """Kill the process; what the log says about it. It is read before: the memory belongs to
        the process.
        """
        if self.process is None:
            return {}
        requests = (
            [] if self._memory is None else RequestsInWork(self._memory).newest(MOST_REQUESTS)
        )
        self.process.kill()
        self._is_killed = True
        return {
            "pid": self.process.pid,
            "seconds": round(self.silent_seconds),
            "requests": [{"route": each.route, "request_id": each.request_id} for each in requests],
        }

    def has_ended_early(self) -> bool:
        self.listen()
        is_unready = self.program.reports and not self.is_ready
        return is_unready or time.monotonic() - self.started_at < EARLY_SECONDS

    def hang_up(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None


class Supervisor:
    """Keeps one child running for each program in `programs`, and says in the log when one was
    replaced.

    With `first_command` the first child runs that instead, until one of its processes has reported
    that it is ready; only then do the others start. `variables` are added to the children's
    environment. Children drain for `drain_seconds`.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        log: LogOutput,
        *,
        first_command: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
        drain_seconds: int = 0,
    ) -> None:
        self._children = [_Child(program) for program in programs]
        self._first_command = first_command
        self._manager = ServiceManager()
        self._beaten_at = float("-inf")
        self._looked_at = time.monotonic()
        self._environment = {**os.environ, **(variables or {})}
        self._log = log
        self._early_ends: dict[str, int] = {}
        self._drain_seconds = drain_seconds
        self._is_stopping = self._is_urgent = False

    def run(self) -> bool:
        """Return when SIGTERM, SIGINT or SIGHUP came and every child has ended; False when it gave
        up before.

        Raises FrontdeskError with what the first child reported instead of being ready. Children
        have 3 s to stop, after the drain, then they are killed. SIGTERM begins a drain; a second
        signal, or another one, ends it. Call it in the main thread.
        """
        with _signals_as_bytes(self._stop) as signals:
            try:
                return self._supervise(signals)
            finally:
                self._stop_children(signals)

    def _supervise(self, signals: socket.socket) -> bool:
        self._start(self._children[0])
        while not self._is_stopping:
            self._listen()
            if self._first_command is None or self._children[0].is_ready:
                self._first_command = None
                self._beat()
                for child in self._children:
                    if not child.started_at:
                        self._start(child)
            if not all(self._keep(child) for child in self._children if child.started_at):
                return False
            self._end_silent()
            self._wait(signals)
        return True

    def _listen(self) -> None:
        """Read every line, and count the silence of the children that have said nothing. Raises
        FrontdeskError for a refusal.
        """
        now = time.monotonic()
        seconds = min(now - self._looked_at, LONGEST_LOOK_SECONDS)
        self._looked_at = now
        for child in self._children:
            child.silent_seconds += seconds
            child.listen()

    def _end_silent(self) -> None:
        for child in self._children:
            if child.is_silent:
                known = child.kill_silent()
                self._log.write(f"{child.program.name}_process_silent", **known)

    def _beat(self) -> None:
        """Tell systemd that the service lives, unless no serving child does: then systemd restarts
        all of it.
        """
        serving = [child for child in self._children if child.program.listener is not None]
        now = time.monotonic()
        is_due = now >= self._beaten_at + self._manager.beat_seconds
        if is_due and any(child.is_living for child in serving or self._children):
            self._beaten_at = now
            self._manager.beat()

    def _wait(self, signals: socket.socket) -> None:
        """Until a signal comes (also for the end of a child), a child says something, or a start, a
        look or a beat is due.
        """
        now = time.monotonic()
        waits = [
            child.starts_at - now
            for child in self._children
            if child.process is None and child.started_at
        ]
        waits.append(min(LOOK_SECONDS, self._manager.beat_seconds or LOOK_SECONDS))
        seconds = max(0.0, min(waits))
        lines = [child.line for child in self._children if child.line is not None]
        select.select([signals, *lines], [], [], seconds)
        with suppress(BlockingIOError):
            signals.recv(4096)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._is_urgent = self._is_stopping or number != signal.SIGTERM
        self._is_stopping = True
        self._manager.stopping()

    def _start(self, child: _Child) -> int:
        return child.start(self._first_command or child.program.command, self._environment)

    def _keep(self, child: _Child) -> bool:
        """Start the child again when it has ended and is due; False when it has ended early too
        often.
        """
        if child.process is None:
            if time.monotonic() >= child.starts_at and not self._is_stopping:
                self._log.write(f"{child.program.name}_process_started", pid=self._start(child))
            return True
        status = child.process.poll()
        if status is None or self._is_stopping:
            return True
        self._log.write(
            f"{child.program.name}_process_ended", pid=child.process.pid, **_exit_of(status)
        )
        child.process = None
        return self._plan_restart(child)

    def _plan_restart(self, child: _Child) -> bool:
        program = child.program
        now = time.monotonic()
        before = self._early_ends.get(program.name, 0)
        ends = self._early_ends[program.name] = before + 1 if child.has_ended_early() else 0
        if program.most_early_ends is not None and ends >= program.most_early_ends:
            self._log.write(f"{program.name}_gave_up", ended_early=ends)
            return False
        pause = 0.0 if ends <= 1 else FIRST_PAUSE_SECONDS * 2 ** min(ends - 2, 10)
        child.starts_at = now + min(pause, program.longest_pause_seconds)
        return True

    def _stop_children(self, signals: socket.socket) -> None:
        """Children drain, then finish their current work within `STOP_SECONDS`."""
        drains = self._is_stopping and not self._is_urgent and self._drain_seconds > 0
        if drains:
            self._log.write("serve_draining", seconds=self._drain_seconds)
        for child in self._children:
            if child.process is not None:
                child.process.send_signal(
                    DRAIN if drains and child.program.listener else signal.SIGTERM
                )
        running = [child.process for child in self._children if child.process is not None]
        deadline = time.monotonic() + STOP_SECONDS + (self._drain_seconds if drains else 0)
        while any(each.poll() is None for each in running) and time.monotonic() < deadline:
            select.select([signals], [], [], max(0.0, deadline - time.monotonic()))
            with suppress(BlockingIOError):
                signals.recv(4096)
            if drains and self._is_urgent:
                self._stop_children(signals)
        for process in running:
            process.kill()
            process.wait()
        for child in self._children:
            child.hang_up()
            if child.program.listener is not None:
                child.program.listener.close()


def _exit_of(status: int) -> dict[str, object]:
    """How a process ended: with an exit status, or by a signal."""
    if status < 0:
        names = {one.value: one.name for one in signal.Signals}
        return {"status": None, "signal": names.get(-status, str(-status))}
    return {"status": status, "signal": None}


@contextmanager
def _signals_as_bytes(stop: Callable[[int, FrameType | None], None]) -> Iterator[socket.socket]:
    """A socket that can be read once a signal has come. `stop` handles those that end the program;
    SIGCHLD only wakes.

    Not `signal.sigtimedwait`: the signals would have to be blocked, and children inherit that.
    """
    handlers = dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), stop)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # `nohup` ignores it
        del handlers[signal.SIGHUP]
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        handlers[signal.SIGCHLD] = lambda *_: None
        before = {one: signal.signal(one, handler) for one, handler in handlers.items()}
        try:
            yield reader
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
            signal.set_wakeup_fd(wakeup)


def report_ready() -> None:
    """Tell the supervisor, if there is one, that this process accepts connections: the other
    children may start.
    """
    _report(_READY)


def report_refusal(reason: str) -> None:
    """Tell the supervisor why the installation can't be used, in sentences for the operator."""
    _report(_REFUSAL + json.dumps(reason).encode())


def report_alive() -> None:
    """Tell the supervisor, if there is one, that this process does its work. Call it from the loop
    that works.

    Never waits: a supervisor that is stopped reads nothing, and finds enough beats when it goes on.
    """
    if SUPERVISED in os.environ:
        with suppress(OSError), socket.socket(fileno=os.dup(_STANDARD_INPUT)) as line:
            line.send(_ALIVE + b"\n", socket.MSG_DONTWAIT)


def _report(what: bytes) -> None:
    if SUPERVISED in os.environ:
        # The supervisor is gone: `stop_with_parent` ends this process.
        with suppress(BrokenPipeError):
            os.write(_STANDARD_INPUT, what + b"\n")


def requests_in_work() -> RequestsInWork:
    """Where this process notes its requests; its supervisor, if there is one, can read them."""
    number = os.environ.get(SUPERVISED, "")
    if not number:
        return RequestsInWork()
    memory = map_shared_memory(int(number))
    os.close(int(number))
    return RequestsInWork(memory)


def stop_with_parent(stop: Callable[[], None]) -> None:
    """Call `stop`, in a thread, once the supervisor of this process is gone. Does nothing in a
    process without one.

    A thread waits, not an event loop: a process whose loop is blocked ends too.
    """
    if SUPERVISED in os.environ:
        threading.Thread(target=_wait_for_end, args=(stop,), name="parent", daemon=True).start()


def _wait_for_end(stop: Callable[[], None]) -> None:
    with suppress(OSError):
        while os.read(_STANDARD_INPUT, 1):
            pass
    stop()
