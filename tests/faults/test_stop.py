"""SIGTERM and Ctrl-C: what was accepted is answered, what is half sent holds nothing up, and the process ends in time.

A request counts as accepted when the server asks for its body (`Expect: 100-continue`). `Server.stop` gives up after the
seconds that `frontdesk serve` promises.
"""

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from tests.factories import Customer, make_customer, member_body
from tests.faults.server import Server
from tests.faults.test_disk_and_locks import held_by_another_process
from tests.patience import PATIENCE_SECONDS

CONNECTIONS = 32

Connections = list[socket.socket]

# What is half sent never gets as far as a database.
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS))
            for _ in range(CONNECTIONS)
        ]


def announce(connection: socket.socket, customer: Customer, length: int) -> None:
    """Send the head of a POST and return when the server has asked for the body."""
    head = (
        f"POST /v2/plans/{customer.plan_ids[0]}/eligibility HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {customer.token}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Expect: 100-continue",
    )
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")


def all_of(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
    return received


def stored_ids(db: Database) -> set[str]:
    return set(db.ask(lambda tx: tx.exec_driver_sql("SELECT external_id FROM members").scalars().all()))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_every_accepted_request_is_answered_before_the_server_stops(
    server: Server, db: Database, customer: Customer, connections: Connections, how: signal.Signals
) -> None:
    bodies = [json.dumps(member_body(number)).encode() for number in range(CONNECTIONS)]
    for connection, body in zip(connections, bodies, strict=True):
        announce(connection, customer, len(body))
    for connection, body in zip(connections, bodies, strict=True):
        connection.sendall(body)
    assert server.stop(how) == 0
    answers = [all_of(connection) for connection in connections]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 201"}
    told = {json.loads(answer.partition(b"\r\n\r\n")[2])["external_id"] for answer in answers}
    assert told == stored_ids(db)
    assert len(told) == CONNECTIONS


@on_one_database
def test_a_half_sent_body_does_not_hold_up_the_stop(
    server: Server, db: Database, customer: Customer, connections: Connections
) -> None:
    half, whole, *_ = connections
    announce(half, customer, 500)
    half.sendall(b'{"external_id": "HALF"')
    body = json.dumps(member_body(1)).encode()
    announce(whole, customer, len(body))
    whole.sendall(body)
    server.stop()
    assert all_of(whole).startswith(b"HTTP/1.1 201")
    assert stored_ids(db) == {"AB 000001"}


@on_one_database
def test_half_sent_headers_do_not_hold_up_the_stop(server: Server, connections: Connections) -> None:
    for connection in connections:
        connection.sendall(b"POST /v2/plans/1/eligibility HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthoriza")
    server.stop()
    assert not server_answers(connections)


def server_answers(connections: Connections) -> list[bytes]:
    """What came back on connections whose request was never complete; a reset is no answer."""
    found = []
    for connection in connections:
        try:
            found.append(all_of(connection))
        except ConnectionResetError:
            found.append(b"")
    return [answer for answer in found if answer.startswith(b"HTTP/1.1 2")]


@on_one_database
def test_a_body_that_never_ends_is_answered_408_and_its_connection_closed(
    server: Server, db: Database, customer: Customer, connections: Connections
) -> None:
    announce(connections[0], customer, 500)
    connections[0].sendall(b'{"external_id": "HALF"')
    answer = all_of(connections[0])
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"application/problem+json" in answer
    assert not stored_ids(db)
    assert server.ready()


def test_writers_that_wait_for_a_lock_are_answered_503_and_do_not_hold_up_the_stop(
    server: Server, db: Database, customer: Customer, connections: Connections
) -> None:
    bodies = [json.dumps(member_body(number)).encode() for number in range(CONNECTIONS)]
    for connection, body in zip(connections, bodies, strict=True):
        announce(connection, customer, len(body))
    with held_by_another_process(db):
        for connection, body in zip(connections, bodies, strict=True):
            connection.sendall(body)
        assert server.stop() == 0
        answers = [all_of(connection) for connection in connections]
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 503"}
    assert not stored_ids(db)
