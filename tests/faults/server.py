"""The service as its own group of processes, to be killed, stopped and started again; it knows no
endpoint but /readyz.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import free_port

STOP_SECONDS = 20.0  # `frontdesk serve` promises 5 s where the machine has time for it

# What systemd does before it starts a service with a socket (sd_listen_fds(3)); then the words
# after it are run.
HAND_OVER = """if True:
    import os, sys
    os.dup2(int(sys.argv[1]), 3)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"""


class Server:
    """`python -m frontdesk serve` on a port that stays the same when it is started again; it writes
    to `log`.
    """

    program: Sequence[str] = ("frontdesk", "serve")

    def __init__(
        self,
        database_url: str,
        log: Path,
        *,
        workers: int = 1,
        host: str = "127.0.0.1",
        settings: Mapping[str, str] | None = None,
        with_worker: bool = False,
    ) -> None:
        self.host = host
        self.port = free_port()
        self.log = log
        self.listener: socket.socket | None = (
            None  # is handed over as systemd does it, and has the port
        )
        self._options = ["--workers", str(workers), "--worker" if with_worker else "--no-worker"]
        # A killed server leaves its temporary folder behind, so it gets one that is cleared away
        # with the test's.
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("FRONTDESK_")
            },
            "FRONTDESK_DATABASE_URL": database_url,
            "TMPDIR": str(log.parent),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """That of the parent of the serving processes; it leads their process group."""
        return self._running().pid

    def children(self, command: bytes = b"frontdesk.server") -> list[int]:
        """The children of now whose command line has these words: the serving processes unless
        told.
        """
        found = []
        for pid in _processes(1, self.pid):
            with contextlib.suppress(OSError):
                if command in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def told(self, event: str) -> list[dict[str, Any]]:
        """The lines of this event in its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if f'"event": "{event}"' in line]

    def start(self) -> Self:
        """Start and wait until it can serve."""
        if self._process is not None:
            raise RuntimeError("the server is running")
        command = [
            "-m",
            *self.program,
            "--host",
            self.host,
            "--port",
            str(self.port),
            *self._options,
        ]
        files = [] if self.listener is None else [self.listener.fileno()]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *(word for file in files for word in ("-c", HAND_OVER, str(file))),
                    *command,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
                pass_fds=files,
            )
        try:
            wait_until(self.ready, "the server to be ready")
        except RuntimeError:
            self.kill()
            raise
        return self

    def ready(self) -> bool:
        if self._running().poll() is not None:
            raise RuntimeError(f"the server ended:\n{self.log.read_text(errors='replace')[-2000:]}")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False

    def kill(self) -> None:
        """SIGKILL to all of its processes at once; returns when they are gone. One that has ended
        is left alone.
        """
        process = self._process
        self._process = None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not _processes(2, process.pid), "the killed server to be gone")

    def send_signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status. Raises subprocess.TimeoutExpired when it takes longer
        than it promises.
        """
        self._running().send_signal(how)
        status = self._running().wait(STOP_SECONDS)
        self._process = None
        return status

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process


def mailing(relay_port: int) -> dict[str, str]:
    """The settings of a server in production that mails by this relay."""
    return {
        "FRONTDESK_ENVIRONMENT": "production",
        "FRONTDESK_BASE_URL": "https://api.example.com",
        "FRONTDESK_MAIL_FROM": "invitations@example.com",
        "FRONTDESK_SMTP_URL": f"smtp://127.0.0.1:{relay_port}",
        "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
    }


def _stat(pid: int | str) -> list[str]:
    """State, parent and group of a process, or of a thread (`pid/task/tid`); empty when there is
    none.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return []


def _processes(place: int, value: int) -> list[int]:
    """Those that hold anything, by a field of `_stat`."""
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if _stat(pid)[place : place + 1] == [str(value)] and is_alive(pid)]


def is_alive(pid: int) -> bool:
    """Whether a process holds anything; one that only waits to be reaped does not. The first thread
    of a killed process may be gone before the others, which still hold its files and its port.
    """
    threads = [f"{pid}/task/{path.name}" for path in Path(f"/proc/{pid}/task").glob("*")]
    return any(_stat(thread)[:1] not in ([], ["Z"], ["X"]) for thread in threads)
