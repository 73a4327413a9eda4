"""The processes behind `frontdesk serve`: one that dies is replaced and told of, all end with their parent, and a log that
nobody reads stops none of them. How they serve does not depend on the database.
"""

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import free_port

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SMALLEST_PIPE = 4096

# A server whose processes find out only when they start that they can't.
CANT_START = """
import sys
from dataclasses import replace
from frontdesk.cli import serve
from frontdesk.log_output import LogOutput
from frontdesk.processes import Supervisor

fail = '''
import sys
from frontdesk import server
def fail(*_):
    raise RuntimeError("private")
server.read_config = fail
sys.argv[1:] = ["127.0.0.1", "1", "1"]
server.main()
'''
wanted = serve.serving_program("127.0.0.1", int(sys.argv[1]), 1)
program = replace(wanted, command=(sys.executable, "-c", fail))
sys.exit(0 if Supervisor([program], LogOutput(sys.stdout)).run() else 1)
"""


def told(server: Server, event: str) -> list[dict[str, Any]]:
    """The lines of this event in the server's log."""
    lines = server.log.read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if f'"event": "{event}"' in line]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


@on_one_database
@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_that_dies_is_replaced_and_told_of(database_url: str, tmp_path: Path, workers: int) -> None:
    with Server(database_url, tmp_path / "log", workers=workers) as server:
        for round_ in range(1, 4 - workers):  # twice in a row is no reason to end either
            before = server.serving()
            assert len(before) == workers
            os.kill(before[0], signal.SIGKILL)
            wait_until(lambda: before[0] not in server.serving(), "the process to be gone")  # noqa: B023 - used at once
            wait_until(lambda: len(server.serving()) == workers, "another process")
            wait_until(server.ready, "the service to go on")
            wait_until(lambda: len(told(server, "serving_process_started")) == round_, "the line")  # noqa: B023
            last = told(server, "serving_process_ended")[-1]
            assert (last["pid"], last["signal"], last["status"]) == (before[0], "SIGKILL", None)
            assert told(server, "serving_process_started")[-1]["pid"] in server.serving()
        assert server.stop() == 0


def test_processes_that_cant_start_end_the_server_and_the_log_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        status = subprocess.run(
            [sys.executable, "-c", CANT_START, str(free_port())],
            stdout=output,
            stderr=output,
            timeout=PATIENCE_SECONDS,
            check=False,
        ).returncode
    assert status == 1
    events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    failed = [event for event in events if event["event"] == "serving_process_failed"]
    assert failed[0]["error"] == "RuntimeError"
    assert "private" not in log.read_text()
    assert events[-1]["event"] == "serving_gave_up"


def test_a_process_that_cant_listen_says_so_in_the_log() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "frontdesk.server", "192.0.2.1", str(free_port()), "1"],
        env={
            **os.environ,
            "FRONTDESK_DATABASE_URL": "sqlite://",
            "FRONTDESK_BASE_URL": "http://127.0.0.1:8000",
        },
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (process.returncode, process.stderr) == (1, b"")
    [line] = process.stdout.splitlines()
    assert json.loads(line)["event"] == "serving_process_failed"


@on_one_database
def test_all_processes_end_with_a_parent_that_was_killed(database_url: str, tmp_path: Path) -> None:
    with Server(database_url, tmp_path / "log", workers=2) as server:
        assert not is_free(server.port)
        os.kill(server.pid, signal.SIGKILL)  # only the parent: nobody tells the others
        wait_until(lambda: is_free(server.port), "the port to be free")


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[Path]:
    """A pipe that somebody holds open and never reads."""
    path = tmp_path / "unread"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    fcntl.fcntl(held, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    yield path
    os.close(held)


@on_one_database
def test_a_log_that_nobody_reads_stops_nothing(database_url: str, unread: Path) -> None:
    with Server(database_url, unread) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        for _ in range(10 * SMALLEST_PIPE // 100):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        connection.close()
        os.kill(server.serving()[0], signal.SIGKILL)
        wait_until(server.ready, "another process, though its line can't be written")
        assert server.stop() == 0


@on_one_database
def test_at_an_orderly_stop_every_line_has_been_written(database_url: str, tmp_path: Path) -> None:
    with Server(database_url, tmp_path / "log") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        for _ in range(50):
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        connection.close()
        server.stop()
        assert server.log.read_text().count('"route":"/healthz"') == 50


@on_one_database
@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_a_name_and_an_ipv6_address_can_be_served_on(database_url: str, tmp_path: Path, host: str) -> None:
    if host == "::1" and not has_ipv6():
        return  # this machine has none
    with Server(database_url, tmp_path / "log", host=host) as server:
        assert server.ready()


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False
