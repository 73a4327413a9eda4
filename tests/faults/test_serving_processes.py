"""The processes behind `frontdesk serve`: one that dies is replaced and told of, all end with their
parent, and a log that nobody reads stops none of them. How they serve does not depend on the
database.
"""

import contextlib
import fcntl
import io
import json
import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest

from frontdesk import PROGRAM
from frontdesk.cli.serve import listening_sockets, serving_program
from frontdesk.log_output import LogOutput
from frontdesk.processes import Supervisor
from tests.faults.server import Server, is_alive
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import free_port

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SMALLEST_PIPE = 4096
WORKER = b"\0worker"  # as its command line has it


def can_bind(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return True
    return False


def has_logged_starts(server: Server, count: int) -> bool:
    return len(server.told("serving_process_started")) == count


def ask_health(server: Server, *, times: int) -> None:
    with contextlib.closing(
        HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    ) as connection:
        for _ in range(times):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_serving_process_that_dies_is_replaced_and_logged(
    database_url: str, tmp_path: Path, workers: int
) -> None:
    with Server(database_url, tmp_path / "log", workers=workers) as server:
        wait_until(lambda: len(server.children()) == workers, "every process")
        for round_ in range(1, 4 - workers):  # twice in a row is no reason to end either
            before = server.children()
            os.kill(before[0], signal.SIGKILL)
            wait_until(lambda: before[0] not in server.children(), "the end")  # noqa: B023
            assert server.ready()  # a connection waits for the other process, or for the next one
            wait_until(lambda: len(server.children()) == workers, "another process")
            wait_until(partial(has_logged_starts, server, round_), "the line")
            last = server.told("serving_process_ended")[-1]
            assert (last["pid"], last["signal"], last["status"]) == (before[0], "SIGKILL", None)
            assert server.told("serving_process_started")[-1]["pid"] in server.children()
        ask_health(server, times=50)
        assert server.stop() == 0
        assert server.log.read_text().count('"route":"/healthz"') == 50


def test_processes_that_cannot_start_end_the_server(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FRONTDESK_DATABASE_URL", database_url)
    monkeypatch.setenv("FRONTDESK_LINK_SECRET", "private")  # too short
    log = io.StringIO()
    [listener] = listening_sockets("127.0.0.1", free_port(), workers=1)
    with listener:
        assert not Supervisor([serving_program(listener, 1)], LogOutput(log)).run()
    said = capfd.readouterr()
    assert {json.loads(line)["event"] for line in said.out.splitlines()} == {
        "serving_process_failed"
    }
    assert "private" not in said.out + said.err + log.getvalue()
    assert json.loads(log.getvalue().splitlines()[-1])["event"] == "serving_gave_up"


def test_a_killed_worker_is_replaced_and_a_killed_parent_ends_all(
    database_url: str, tmp_path: Path
) -> None:
    with Server(database_url, tmp_path / "log", workers=2, with_worker=True) as server:
        assert not can_bind("127.0.0.1", server.port)
        wait_until(lambda: len(server.told("worker_started")) == 1, "the worker")
        [served] = server.told("serve_started")
        [worker] = server.told("worker_started")
        assert {
            **PROGRAM,
            "environment": "sandbox",
            "address": "127.0.0.1",
            "port": server.port,
        }.items() <= served.items()
        assert {**PROGRAM, "environment": "sandbox", "level": "info"}.items() <= worker.items()
        os.kill(server.children(WORKER)[0], signal.SIGKILL)
        wait_until(lambda: len(server.told("worker_started")) == 2, "another worker")
        [second] = server.children(WORKER)
        os.kill(server.pid, signal.SIGKILL)  # only the parent: nobody tells the others
        wait_until(lambda: can_bind("127.0.0.1", server.port), "the port to be free")
        wait_until(lambda: not is_alive(second), "the worker to end by itself")


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[Path]:
    """A pipe that somebody holds open and never reads."""
    path = tmp_path / "unread"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    fcntl.fcntl(held, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    yield path
    os.close(held)


def test_a_log_that_nobody_reads_stops_nothing(database_url: str, unread: Path) -> None:
    with Server(database_url, unread) as server:
        ask_health(server, times=10 * SMALLEST_PIPE // 100)
        os.kill(server.children()[0], signal.SIGKILL)
        wait_until(server.ready, "another process, though its line can't be written")
        assert server.stop() == 0


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_a_name_and_an_ipv6_address_can_be_served_on(
    database_url: str, tmp_path: Path, host: str
) -> None:
    if host == "::1" and not can_bind(host, 0):
        return  # this machine has none
    with Server(database_url, tmp_path / "log", host=host) as server:
        assert server.ready()
