"""The service as its own group of processes, to be killed, stopped and started again; it knows no endpoint but /readyz."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.postgres import _free_port as free_port

START_SECONDS = 30.0
STOP_SECONDS = 5.0  # the promise of `frontdesk serve`


class Server:
    """`python -m frontdesk serve` on a port that stays the same when it is started again. `log` holds what it wrote."""

    def __init__(self, database_url: str, folder: Path, *, workers: int = 1) -> None:
        self.port = free_port()
        self.log = folder / "server.log"
        self._command = [
            *(sys.executable, "-m", "frontdesk", "serve"),
            *("--port", str(self.port), "--workers", str(workers)),
        ]
        # A killed server leaves its temporary folder behind, so it gets one that is cleared away with the test's.
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")},
            "FRONTDESK_DATABASE_URL": database_url,
            "TMPDIR": str(folder),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    @property
    def pid(self) -> int:
        """That of the parent of the serving processes; it leads their process group."""
        return self._running().pid

    def start(self) -> Self:
        """Start and wait until it can serve."""
        if self._process is not None:
            raise RuntimeError("the server is running")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.01)
        return self

    def ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False

    def kill(self) -> None:
        """SIGKILL to all of its processes at once; returns when they are gone, and with them their connections."""
        process = self._running()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._see_group_gone(process.pid)
        self._process = None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; the exit status. Raises subprocess.TimeoutExpired when it takes longer than it promises."""
        process = self._running()
        process.send_signal(how)
        status = process.wait(STOP_SECONDS)
        self._process = None
        return status

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process

    def _see_group_gone(self, group: int) -> None:
        """Orphans are reaped by init, soon but not at once; a zombie holds nothing any more but still counts here."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not any(_lives(pid) for pid in _group(group)):
                return
            time.sleep(0.002)
        raise RuntimeError("a killed server is still there")


def _group(group: int) -> list[int]:
    """The processes of a group, from /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ProcessLookupError):
                if os.getpgid(int(entry.name)) == group:
                    found.append(int(entry.name))
    return found


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
