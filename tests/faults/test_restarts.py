"""Restarts under load: 12 kept-alive callers that never send a request again post 50 members a
second, and not one call fails.

`FRONTDESK_FAULTS=nightly .venv/bin/pytest -s tests/faults/test_restarts.py` restarts ten times and
prints the figures of docs/faults.md.
"""

import http.client
import json
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.server import choose_as_usual, leave_to_successor
from tests.factories import make_customer
from tests.faults.callers import LEVEL, Callers, call, check_promises, members
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until

RESTARTS = 10 if LEVEL else 1
CALLERS = 12
PER_SECOND = 50
PROCESSES = 2
DRAIN_SECONDS = 5 if LEVEL else 1


class SteadyCallers(Callers):
    """Callers that send each body once, at a steady rate, on a connection that they keep as long as
    the server does.
    """

    def __init__(self, port: int, path: str, token: str) -> None:
        super().__init__(port, path, token, threads=CALLERS)
        self.failures: Counter[str] = Counter()
        self.count = 0
        self.slowest = 0.0

    def figures(self, about: str) -> str:
        """A line of the table in docs/faults.md."""
        refused = self.failures["ConnectionRefusedError"]
        numbers = (RESTARTS, self.count, self.failures.total(), refused, len(self.acknowledged))
        return f"| {about} | {' | '.join(map(str, numbers))} | {self.slowest:.2f} s |\n"

    def _run(self, number: int) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        for body in members(number):
            started = time.monotonic()
            try:
                connection.request("POST", self._path, json.dumps(body), headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status not in (200, 201):
                    self.failures[str(answer.status)] += 1
                else:
                    self.acknowledged[body["external_id"]] = body["last_name"]
                self.statuses.add(answer.status)
            except (OSError, http.client.HTTPException) as error:
                self.failures[type(error).__name__] += 1
                connection.close()
            self.count += 1
            self.slowest = max(self.slowest, time.monotonic() - started)
            if self._stopping.wait(max(0.0, started + CALLERS / PER_SECOND - time.monotonic())):
                break
        connection.close()


@contextmanager
def proxy(ports: list[int]) -> Iterator[int]:
    """A proxy, on the port that it yields, that sends each connection to the first server that is
    ready.
    """

    def is_ready(port: int) -> bool:
        try:
            return call(port, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65_536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller = held.enter_context(listener.accept()[0])
                port = next(port for port in [*ports, ports[0]] if is_ready(port))
                server = held.enter_context(socket.create_connection(("127.0.0.1", port)))
                for pair in ((caller, server), (server, caller)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    with ExitStack() as held, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


Make = Callable[[int], Server]  # a server, not started, that drains for so many seconds
Restart = Callable[[], None]
Way = Callable[[Make], AbstractContextManager[tuple[int, Restart]]]


def listening_sockets(port: int) -> int:
    """How many sockets listen on the port (proc_net_tcp: local address, remote address, state)."""
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return sum(
        line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines
    )


@contextmanager
def taken_over(make: Make) -> Iterator[tuple[int, Restart]]:
    """The next server starts beside the one that drains, on its port; a second signal then ends the
    old one.
    """
    running = [make(60).start()]

    def restart() -> None:
        old = running[0]
        wait_until(lambda: listening_sockets(old.port) == PROCESSES, "every process")
        old.send_signal(signal.SIGTERM)
        wait_until(lambda: not old.ready(), "the drain to begin")
        running[0] = make(60)
        running[0].port = old.port
        running[0].start()
        wait_until(
            lambda: listening_sockets(old.port) == 2 * PROCESSES, "every process of the next server"
        )
        # none of these connections went to the server that drains
        assert all(old.ready() for _ in range(20))
        assert old.stop() == 0

    yield running[0].port, restart


@contextmanager
def handed_over(make: Make) -> Iterator[tuple[int, Restart]]:
    """Each server gets the socket that systemd keeps open."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = make(DRAIN_SECONDS)
        server.listener = listener
        server.port = listener.getsockname()[1]
        server.start()

        def restart() -> None:
            assert server.stop() == 0
            server.start()

        yield server.port, restart


@contextmanager
def behind_proxy(make: Make) -> Iterator[tuple[int, Restart]]:
    """Two servers are restarted in turn, behind a proxy that asks them whether they are ready."""
    servers = [make(DRAIN_SECONDS).start(), make(DRAIN_SECONDS).start()]

    def restart() -> None:
        assert servers[0].stop() == 0
        servers[0].start()
        servers.reverse()

    with proxy([server.port for server in servers]) as port:
        yield port, restart


@pytest.mark.parametrize("way", [taken_over, handed_over, behind_proxy])
def test_restarts_under_load_fail_no_call_and_lose_no_record(
    database_url: str, db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: Way
) -> None:
    customer = make_customer(db, now=system_clock())
    with ExitStack() as stack:

        def make(seconds: int) -> Server:
            drain = {"FRONTDESK_DRAIN_SECONDS": str(seconds)}
            server = Server(database_url, tmp_path / "log", workers=PROCESSES, settings=drain)
            stack.callback(server.kill)
            return server

        port, restart = stack.enter_context(way(make))
        with SteadyCallers(
            port, f"/v2/plans/{customer.plan_ids[0]}/eligibility", customer.token
        ) as callers:
            for _ in range(RESTARTS):
                callers.wait_for(PER_SECOND)
                restart()
            callers.wait_for(PER_SECOND)
    with capsys.disabled() if LEVEL else nullcontext():
        sys.stdout.write(
            callers.figures(f"{way.__name__}, {'SQLite' if db.is_sqlite else 'PostgreSQL'}")
        )
    assert callers.failures == {}
    check_promises(db, callers)


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (2, 2)])
def test_new_connections_are_shared_evenly_by_the_next_server(before: int, after: int) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.1", 0), reuse_port=True))
        address = first.getsockname()
        others = [
            stack.enter_context(socket.create_server(address, reuse_port=True))
            for _ in range(before + after - 1)
        ]
        for listener in (old := [first, *others[: before - 1]]):
            leave_to_successor(listener, before)
        new = others[before - 1 :]
        counts = connected(address, old + new)
        assert counts[:before] == [0] * before
        for listener in old:
            listener.close()
        choose_as_usual(new[0])
        assert all(connected(address, new))


def connected(address: Any, listeners: list[socket.socket]) -> list[int]:
    """How many of 60 new connections each of the listening sockets gets."""
    counts = []
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection(address)).sendall(b"GET")
        for listener in listeners:
            listener.setblocking(False)
            counts.append(0)
            with suppress(BlockingIOError):
                while True:
                    stack.enter_context(listener.accept()[0])
                    counts[-1] += 1
    return counts
