"""What ends a test server and clears up after it when the process that started it is gone, however
it went.

It runs as a process of its own and reads its standard input: each line is the pid of a server that
was started in the folder named on the command line. When the input ends the process that wrote it
has ended, or wants the server to. It imports nothing but the standard library, so that it is there
at once.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

STOP_SECONDS = 5.0
_POSTMASTER_PID_SHARED_MEMORY = 6  # the line of postmaster.pid with "key id" of the shared memory
_IPC_RMID = 0


def keep(home: Path) -> None:
    """Wait for the end of the input, then leave nothing behind of the servers that ran in `home`."""
    pids = [int(line) for line in sys.stdin]
    for pid in pids:
        if _runs_in(pid, home):
            end(pid, first=signal.SIGQUIT)
    remove_shared_memory(home / "data")
    shutil.rmtree(home, ignore_errors=True)


def end(pid: int, *, first: signal.Signals) -> None:
    """Signal a server and see it and its children gone; what has not gone by itself in time is
    killed.
    """
    family = [pid, *children(pid)]
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, first)
    see_gone(family)


def see_gone(pids: list[int]) -> None:
    """Return when none of the processes runs any more."""
    if not wait_until(lambda: not any(map(alive, pids)), seconds=STOP_SECONDS):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(alive, pids)), seconds=STOP_SECONDS)


def children(parent: int) -> list[int]:
    """The pids of a process's children, as /proc has them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "pid (name) state parent …", and a name may hold spaces and brackets
            state, ppid = stat.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state != "Z":
                found.append(int(stat.parent.name))
    return found


def remove_shared_memory(data: Path) -> None:
    """Give back the shared memory of a server that was killed; one that stops gives it back itself."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        line = (data / "postmaster.pid").read_text().splitlines()[_POSTMASTER_PID_SHARED_MEMORY]
        ctypes.CDLL(None).shmctl(int(line.split()[1]), _IPC_RMID, None)


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Look until it is so; False when it is not so in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    """Whether the process still runs; one that has ended and waits to be fetched by its parent
    doesn't.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _runs_in(pid: int, home: Path) -> bool:
    """Whether the pid is still the server that we started and not a stranger that came by its
    number.
    """
    with contextlib.suppress(FileNotFoundError):
        return os.fsencode(home) in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
