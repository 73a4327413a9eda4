"""SIGTERM and Ctrl-C: what was accepted is answered, what is half sent holds nothing up, and the
process ends in time, after the drain if there is one.

A request counts as accepted when the server asks for its body (`Expect: 100-continue`).
`Server.stop` gives up after the seconds that `frontdesk serve` promises.
"""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.processes import DRAINING
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import Callers, call, check_promises
from tests.faults.locks import held_by_another_process
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until

CONNECTIONS = 32

Connections = list[socket.socket]


@pytest.fixture
def customer(db: Database) -> Customer:
    return make_customer(db, now=system_clock())


@pytest.fixture
def server(database_url: str, customer: Customer, tmp_path: Path) -> Iterator[Server]:
    with Server(database_url, tmp_path / "log", with_worker=True) as running:
        yield running


@pytest.fixture
def connections(server: Server) -> Iterator[Connections]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS)
            )
            for _ in range(CONNECTIONS)
        ]


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def announce(connection: socket.socket, customer: Customer, length: int) -> None:
    """Send the head of a POST and return when the server has asked for the body."""
    head = (
        f"POST {path_of(customer)} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {customer.token}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Expect: 100-continue",
    )
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")


def announced(connections: Connections, customer: Customer) -> list[bytes]:
    """The body of a new member for each connection, on which its head was sent."""
    numbers = range(len(connections))
    bodies = [
        json.dumps(member_body(number, invite_immediately=True)).encode() for number in numbers
    ]
    for connection, body in zip(connections, bodies, strict=True):
        announce(connection, customer, len(body))
    return bodies


def all_of(connection: socket.socket) -> bytes:
    """What comes until the server closes or resets the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65_536):
            received += chunk
    return received


def stored_ids(db: Database) -> set[str]:
    return set(
        db.ask(lambda tx: tx.exec_driver_sql("SELECT external_id FROM members").scalars().all())
    )


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_answers_accepted_requests_and_drops_half_sent_ones(
    server: Server, db: Database, customer: Customer, connections: Connections, how: signal.Signals
) -> None:
    half_body, *half_heads = connections[:8]
    announce(half_body, customer, 500)
    half_body.sendall(b'{"external_id": "HALF"')
    for connection in half_heads:
        connection.sendall(b"POST /v2/plans/1/eligibility HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthoriza")
    accepted = connections[8:]
    bodies = announced(accepted, customer)
    with Callers(server.port, path_of(customer), customer.token, threads=8) as callers:
        callers.wait_for(50)
        for connection, body in zip(accepted, bodies, strict=True):
            connection.sendall(body)
        assert server.stop(how) == 0
        callers.stop()
    answers = [all_of(connection) for connection in accepted]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 201"}
    told = {json.loads(answer.partition(b"\r\n\r\n")[2])["external_id"] for answer in answers}
    assert len(told) == len(accepted)
    assert told <= stored_ids(db)
    assert not any(
        all_of(connection).startswith(b"HTTP/1.1 2") for connection in (half_body, *half_heads)
    )
    check_promises(db, callers)


def test_writers_that_wait_for_a_lock_are_answered_503_and_do_not_hold_up_the_stop(
    server: Server, db: Database, customer: Customer, connections: Connections
) -> None:
    bodies = announced(connections, customer)
    with held_by_another_process(db):
        for connection, body in zip(connections, bodies, strict=True):
            connection.sendall(body)
        assert server.stop() == 0
        answers = [all_of(connection) for connection in connections]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 503"}
    assert not stored_ids(db)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_draining_server_serves_until_a_second_signal(
    database_url: str, customer: Customer, tmp_path: Path, how: signal.Signals
) -> None:
    settings = {"FRONTDESK_DRAIN_SECONDS": "60"}  # longer than `Server.stop` waits
    with Server(database_url, tmp_path / "log", with_worker=True, settings=settings) as server:
        wait_until(lambda: server.told("worker_started"), "the worker")
        command = (sys.executable, "-m", "frontdesk", "serve", "--port", str(server.port))
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (second.returncode, "can't be listened on" in second.stderr) == (1, True)
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)) as kept:
            kept.request("GET", "/healthz")
            assert kept.getresponse().read()
            server.send_signal(signal.SIGTERM)
            wait_until(lambda: not server.ready(), "the drain")
            wait_until(lambda: not server.children(b"\0worker"), "the worker to end")
            headers = {
                "Authorization": f"Bearer {customer.token}",
                "Content-Type": "application/json",
            }
            kept.request("POST", path_of(customer), json.dumps(member_body(1)), headers)
            answer = kept.getresponse()
            assert (answer.status, answer.getheader("Connection")) == (201, "close")
        status, problem = call(server.port, "GET", "/readyz")
        assert (status, problem["detail"]) == (503, DRAINING)
        assert server.stop(how) == 0
        assert [line["seconds"] for line in server.told("serve_draining")] == [60]
        assert len(server.told("serve_stopped")) == 1


def test_ctrl_c_does_not_drain(database_url: str, tmp_path: Path) -> None:
    settings = {"FRONTDESK_DRAIN_SECONDS": "60"}
    with Server(database_url, tmp_path / "log", settings=settings) as server:
        assert server.stop(signal.SIGINT) == 0
        assert (server.told("serve_draining"), len(server.told("serve_stopped"))) == ([], 1)
