"""The parts of the lab: which there are, the version that each says of itself, and a program of one
that runs for a test.
"""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests import postgres_keeper as keeper

POSTGRESQL_BIN = Path("/usr/lib/postgresql/15/bin")
# A part's program, and how it is asked for its version. install.sh has their packages.
PROGRAMS = {
    "PostgreSQL": (f"{POSTGRESQL_BIN}/postgres", "--version"),
    "PgBouncer": ("/usr/sbin/pgbouncer", "--version"),
    "nginx": ("/usr/sbin/nginx", "-v"),
    "Postfix": ("/usr/sbin/postconf", "-d", "mail_version"),
    "Cyrus SASL": ("/usr/sbin/saslpasswd2", "-v"),
    "Prometheus": ("/usr/bin/promtool", "--version"),
    "Chromium": ("/usr/bin/chromium", "--version"),
    "Patroni": ("/usr/bin/patroni", "--version"),
    "etcd": ("/usr/bin/etcd", "--version"),
}
# What each file of tests needs. Postfix starts as root only.
OF_FILE = {
    "test_postgresql.py": ("PostgreSQL",),
    "test_pgbouncer.py": ("PgBouncer", "PostgreSQL"),
    "test_nginx.py": ("nginx",),
    "test_postfix.py": ("Postfix", "Cyrus SASL"),
    "test_prometheus.py": ("Prometheus",),
    "test_chromium.py": ("Chromium",),
    "test_patroni.py": ("Patroni", "etcd", "PostgreSQL"),
}
IS_ROOT = os.geteuid() == 0
_USER = "nobody"  # PostgreSQL and PgBouncer refuse to run as root; the others need no rights either
_STOP_SECONDS = 10.0


@cache
def version(part: str) -> str | None:
    """What the part itself says, or None where it is not installed."""
    program, *arguments = PROGRAMS[part]
    if not Path(program).exists():
        return None
    told = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    found = re.search(r"\d+(\.\d+)+", told.stdout + told.stderr)
    return found.group() if found else "of an unknown version"


def missing(file: str) -> list[str]:
    """The parts that the tests of this file need and that are not here."""
    absent = [part for part in OF_FILE[file] if version(part) is None]
    return [*absent, "root"] if file == "test_postfix.py" and not IS_ROOT else absent


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder that belongs to the user that the parts run as."""
    path = Path(tempfile.mkdtemp(prefix="frontdesk-lab-"))
    path.chmod(0o755)
    give(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def give(*paths: Path) -> None:
    """Make the files those of the user that the parts run as."""
    if IS_ROOT:
        user = pwd.getpwnam(_USER)
        for path in paths:
            os.chown(path, user.pw_uid, user.pw_gid)


class Program:
    """A program of a part that runs in `home`, without rights unless told; it ends with the test,
    or with its process.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        home: Path,
        *,
        as_root: bool,
        name: str,
        files: Sequence[int],
    ) -> None:
        self.log = home / f"{name or Path(command[0]).name}.log"
        rights = (
            ["--reuid", _USER, "--regid", "nogroup", "--clear-groups"]
            if IS_ROOT and not as_root
            else []
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *rights, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=home,
                env={
                    "PATH": "/usr/sbin:/usr/bin:/bin",
                    "LC_ALL": "C.UTF-8",
                    "TZ": "UTC",
                    "HOME": str(home),
                },
                start_new_session=True,
                pass_fds=files,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_told(self, words: str) -> bool:
        """Whether the words are in its log. Raises RuntimeError when the program has ended."""
        told = self.told()
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.log.name} ended:\n{told[-2000:]}")
        return words in told

    def told(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and its children, by force where they have not gone in time."""
        if self._process.poll() is None:
            family = [self.pid, *keeper.children(self.pid)]
            self._process.send_signal(how)
            if not keeper.wait_until(
                lambda: self._process.poll() is not None, seconds=_STOP_SECONDS
            ):
                self._process.kill()
                self._process.wait()
            keeper.see_gone(family)


@contextmanager
def running(
    command: Sequence[str | Path],
    home: Path,
    *,
    as_root: bool = False,
    name: str = "",
    files: Sequence[int] = (),
) -> Iterator[Program]:
    """`name` tells the logs of two of a kind apart; `files` are open in the program, too."""
    program = Program(command, home, as_root=as_root, name=name, files=files)
    try:
        yield program
    except Exception as error:
        error.add_note(program.told()[-4000:])
        raise
    finally:
        program.end()
