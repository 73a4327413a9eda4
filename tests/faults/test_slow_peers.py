"""Callers by the thousand that send or read slowly: the others are answered as ever. How they are
served does not depend on the database.
"""

import contextlib
import os
import resource
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.cli.serve import listening_sockets
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.deadlines import BODY_SECONDS
from tests.factories import Customer, make_customer
from tests.faults.callers import call
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import free_port

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SOCKETS = 1100
READERS = 200
SLOW_FORM = b"POST /unsubscribe/x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx"
UNREAD = b"GET /docs/scalar.js HTTP/1.1\r\nHost: a\r\n\r\n"

# A serving process that waits for a reader for half a second.
IMPATIENT = """
import sys
from frontdesk import server
server.UNREAD_MILLISECONDS = 500
server.main()
"""


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, min(4096, most)), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@contextlib.contextmanager
def connected(
    port: int, count: int, sent: bytes, *, buffer: int = 0
) -> Iterator[list[socket.socket]]:
    """So many connections on which `sent` was sent."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            if buffer:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            one.settimeout(PATIENCE_SECONDS)
            one.connect(("127.0.0.1", port))
            one.sendall(sent)
        yield sockets


def is_answered(one: socket.socket) -> bool:
    return bool(select.select([one], [], [], 0)[0])


def was_cut_early(one: socket.socket, began: float) -> bool:
    """False on a machine on which the crowd took longer to come together than every sender is
    given.
    """
    return is_answered(one) and time.monotonic() - began < BODY_SECONDS


def upload_of(customer: Customer) -> bytes:
    """An upload of which the first byte has come."""
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {customer.token}\r\n"
    return f"{head}Content-Type: text/csv\r\nContent-Length: 1000\r\n\r\ne".encode()


def test_health_is_answered_beside_a_crowd_of_slow_forms(database_url: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        Server(database_url, tmp_path / "log") as server,
        connected(server.port, SOCKETS, SLOW_FORM) as slow,
    ):
        assert [call(server.port, "GET", path)[0] for path in ("/healthz", "/readyz")] == [200, 200]
        assert not was_cut_early(slow[0], began), "all had their answer before"
        assert slow[-1].recv(1000).startswith(b"HTTP/1.1 408")
        assert not was_cut_early(slow[0], began)


def test_one_account_holds_few_uploads_open_and_another_goes_on(
    database_url: str, tmp_path: Path
) -> None:
    db = open_database(database_url)
    crowd = make_customer(db, now=system_clock())
    other = make_customer(db, name="Other", now=system_clock())
    db.close()
    began = time.monotonic()
    with (
        Server(database_url, tmp_path / "log") as server,
        connected(server.port, SOCKETS, upload_of(crowd)) as uploads,
    ):
        assert uploads[-1].recv(1000).startswith(b"HTTP/1.1 429")
        assert b"too_many_uploads" in uploads[-2].recv(2000)
        assert not was_cut_early(uploads[0], began)
        paths = ("/healthz", "/v2/plans")
        assert [call(server.port, "GET", path, token=other.token)[0] for path in paths] == [
            200,
            200,
        ]
        with connected(server.port, 1, upload_of(other)) as [theirs]:
            theirs.sendall(b"x" * 999)
            assert theirs.recv(1000).startswith(b"HTTP/1.1 202")
        assert not was_cut_early(uploads[0], began)


def test_connections_of_readers_that_do_not_read_are_closed(database_url: str) -> None:
    port = free_port()
    settings = {
        "FRONTDESK_DATABASE_URL": database_url,
        "FRONTDESK_BASE_URL": "http://127.0.0.1:8000",
    }
    [listener] = listening_sockets("127.0.0.1", port, workers=1)
    command = [sys.executable, "-c", IMPATIENT, str(listener.fileno()), "1"]

    def answers() -> bool:
        with contextlib.suppress(OSError):
            return call(port, "GET", "/healthz")[0] == 200
        return False

    def open_sockets() -> int:
        found = 0
        for file in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since
                found += str(file.readlink()).startswith("socket:")
        return found

    with (
        listener,
        subprocess.Popen(
            command,
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        ) as process,
    ):
        try:
            wait_until(answers, "the service to answer")
            before = open_sockets()
            with connected(port, READERS, UNREAD * 8, buffer=4096) as readers:
                wait_until(
                    lambda: all(map(is_answered, readers)),
                    "each reader to have a part of its answer",
                )
                wait_until(lambda: open_sockets() <= before + 1, "the connections to be closed")
                assert answers()
        finally:
            process.kill()
