"""What systemd is told by a service of `Type=notify`: here a datagram socket of the test plays
systemd.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import typer

from frontdesk.cli import serve as serving
from frontdesk.db import open_database
from frontdesk.db.migrate import upgrade
from frontdesk.systemd import ServiceManager, sockets_of_systemd
from tests.patience import PATIENCE_SECONDS
from tests.postgres import free_port

WATCHED = {"WATCHDOG_USEC": "100000"}  # a beat each 50 ms


class Systemd:
    """A socket that receives what services send, in order."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE_SECONDS)
        self.variables = {"NOTIFY_SOCKET": address}

    def next(self) -> str:
        return self._socket.recv(4096).decode()

    def next_but_beats(self) -> str:
        while (message := self.next()) == "WATCHDOG=1":
            pass
        return message

    def is_silent(self) -> bool:
        self._socket.setblocking(False)
        try:
            return not self._socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self._socket.settimeout(PATIENCE_SECONDS)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd() -> Iterator[Systemd]:
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket has 107 bytes at most
        manager = Systemd(f"{folder}/notify")
        yield manager
        manager.close()


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    db = open_database(url)
    upgrade(db)
    db.close()
    return url


def service(*words: str, systemd: Systemd, database_url: str) -> subprocess.Popen[bytes]:
    variables = {
        **os.environ,
        **systemd.variables,
        **WATCHED,
        "FRONTDESK_DATABASE_URL": database_url,
    }
    command = (sys.executable, "-m", "frontdesk", *words)
    return subprocess.Popen(
        command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_serve_is_ready_when_it_accepts_connections(systemd: Systemd, database_url: str) -> None:
    port = free_port()
    words = ("serve", "--port", str(port), "--workers", "2")
    with service(*words, systemd=systemd, database_url=database_url) as serve:
        try:
            assert systemd.next() == "READY=1"
            socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
            assert [systemd.next(), systemd.next()] == ["WATCHDOG=1"] * 2
            serve.send_signal(signal.SIGTERM)
            assert systemd.next_but_beats() == "STOPPING=1"
            assert serve.wait(PATIENCE_SECONDS) == 0
            assert systemd.is_silent()  # its worker and its serving processes are no services
        finally:
            serve.kill()


def test_serve_that_can_not_serve_is_never_ready(systemd: Systemd, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    with service("serve", "--port", str(free_port()), systemd=systemd, database_url=url) as serve:
        assert serve.wait(PATIENCE_SECONDS) == 1
    assert systemd.is_silent()


def test_a_worker_is_ready_alive_and_stopping(systemd: Systemd, database_url: str) -> None:
    with service("worker", systemd=systemd, database_url=database_url) as worker:
        try:
            assert [systemd.next() for _ in range(3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
            worker.send_signal(signal.SIGTERM)
            assert systemd.next_but_beats() == "STOPPING=1"
            assert worker.wait(PATIENCE_SECONDS) == 0
        finally:
            worker.kill()


def test_an_abstract_address_is_understood() -> None:
    systemd = Systemd(f"@frontdesk-test-{os.getpid()}")
    ServiceManager(systemd.variables).beat()
    assert systemd.next() == "READY=1"
    systemd.close()


@pytest.mark.parametrize(
    "watched",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"},
    ],
)
def test_beats_are_sent_only_to_a_watchdog_of_this_process(
    systemd: Systemd, watched: dict[str, str]
) -> None:
    variables = systemd.variables | watched
    manager = ServiceManager(variables)
    manager.beat()
    manager.beat()
    assert (systemd.next(), systemd.is_silent()) == ("READY=1", True)
    assert variables == {}  # for its children


def test_without_systemd_nothing_is_sent_and_nothing_fails(tmp_path: Path) -> None:
    for variables in ({}, WATCHED | {"NOTIFY_SOCKET": f"{tmp_path}/gone"}):
        manager = ServiceManager(dict(variables))
        manager.beat()
        manager.beat()
        manager.stopping()


@pytest.mark.parametrize(("count", "process"), [("1", "1"), ("", "own"), ("-1", "own"), ("1", "")])
def test_sockets_of_another_process_are_left_alone_and_no_child_hears_of_them(
    count: str, process: str
) -> None:
    variables = {
        "LISTEN_FDS": count,
        "LISTEN_PID": process.replace("own", str(os.getpid())),
        "LISTEN_FDNAMES": "http",
        "HOME": "/",
    }
    assert sockets_of_systemd(variables) == []
    assert variables == {"HOME": "/"}


@pytest.mark.parametrize(
    ("kind", "count", "said"),
    [
        (socket.AF_INET, 2, "give --workers 2"),
        (socket.AF_UNIX, 1, "ListenStream="),
        (socket.AF_INET, 1, "ListenStream="),
    ],
)
def test_sockets_that_can_not_be_served_on_are_refused(
    kind: socket.AddressFamily,
    count: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ExitStack() as stack:
        given = [stack.enter_context(socket.socket(kind)) for _ in range(count)]  # none listens
        monkeypatch.setattr(serving, "sockets_of_systemd", lambda: given)
        with pytest.raises(typer.Exit):
            serving.handed_over(workers=1)
    assert said in capsys.readouterr().err
