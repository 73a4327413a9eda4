"""A process that hangs is killed and replaced, and the log says what it was in; one that is only
slow, or was stopped together with its supervisor, is left alone.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.liveness import MEMORY_BYTES, RequestsInWork
from frontdesk.processes import MOST_REQUESTS
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import Callers, call
from tests.faults.hanging_server import ENDLESSLY, FOR_SECONDS
from tests.faults.server import Server
from tests.faults.watched_server import SILENT_SECONDS
from tests.patience import PATIENCE_SECONDS, wait_until

SERVING = b"hanging_server"
WORKER = b"\0worker"
ROUTE = "/v2/plans/{plan_id}/eligibility"


class WatchedServer(Server):
    """It kills what is silent earlier than the product does."""

    program = ("tests.faults.watched_server",)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
def customer(db: Database) -> Customer:
    return make_customer(db, now=system_clock())


@pytest.fixture
def server(database_url: str, customer: Customer, tmp_path: Path) -> Iterator[Server]:
    with WatchedServer(database_url, tmp_path / "log", workers=2, with_worker=True) as running:
        wait_until(lambda: len(running.children(SERVING)) == 2, "both serving processes")
        wait_until(lambda: running.told("worker_started"), "the worker")
        yield running


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def begin_post(
    server: Server, customer: Customer, first_name: str, request_id: str
) -> tuple[socket.socket, bytes]:
    """Send the head of a POST; the open connection, and the body that it awaits."""
    body = json.dumps(member_body(1, first_name=first_name)).encode()
    head = (
        f"POST {path_of(customer)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {customer.token}\r\n"
        f"X-Request-Id: {request_id}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS)
    connection.sendall(head.encode())
    return connection, body


def ask_on_new_connections(server: Server, times: int) -> None:
    """The system spreads connections over the processes, so many connections meet each of them."""
    for _ in range(times):
        assert call(server.port, "GET", "/healthz")[0] == 200


def test_a_stopped_serving_process_is_killed_and_replaced(
    server: Server, customer: Customer
) -> None:
    stopped = server.children(SERVING)[0]
    with Callers(server.port, path_of(customer), customer.token, threads=4) as callers:
        wait_until(lambda: len(callers.acknowledged) > 20, "some members")
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: server.told("serving_process_silent"), "the silence to be noticed")
        wait_until(lambda: server.told("serving_process_started"), "another process")
        before = len(callers.acknowledged)
        wait_until(lambda: len(callers.acknowledged) > before + 20, "calls to be answered")
    [silent] = server.told("serving_process_silent")
    assert (silent["pid"], silent["level"]) == (stopped, "error")
    [ended] = server.told("serving_process_ended")
    assert (ended["pid"], ended["signal"]) == (stopped, "SIGKILL")
    wait_until(lambda: len(server.children(SERVING)) == 2, "both processes")
    ask_on_new_connections(server, 30)


def test_an_endless_computation_is_ended_and_logged_without_values(
    server: Server, customer: Customer
) -> None:
    with ExitStack() as stack:
        hanging, body = begin_post(server, customer, ENDLESSLY, "the-one-that-hangs")
        stack.enter_context(hanging)
        for number in range(16):  # later requests in both processes, which wait for their bodies
            stack.enter_context(begin_post(server, customer, "Robin", f"waits-{number}")[0])
        time.sleep(1.0)
        hanging.sendall(body)
        wait_until(lambda: server.told("serving_process_silent"), "the silence to be noticed")
    [silent] = server.told("serving_process_silent")
    assert silent["requests"][0] == {"route": ROUTE, "request_id": "the-one-that-hangs"}
    assert len(silent["requests"]) <= MOST_REQUESTS
    assert silent["seconds"] >= SILENT_SECONDS
    wait_until(lambda: server.told("serving_process_started"), "another process")
    ask_on_new_connections(server, 30)
    assert ENDLESSLY not in server.log.read_text()


def test_a_loop_that_is_blocked_for_five_seconds_is_left_alone(
    server: Server, customer: Customer
) -> None:
    connection, body = begin_post(server, customer, FOR_SECONDS, "slow")
    with connection:
        connection.sendall(body)
        assert connection.recv(64).startswith(b"HTTP/1.1 201")
    assert server.told("serving_process_silent") == []


def test_a_worker_that_is_stopped_is_killed_and_replaced(server: Server) -> None:
    [worker] = server.children(WORKER)
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: len(server.told("worker_started")) == 2, "another worker")
    [silent] = server.told("worker_process_silent")
    assert silent["pid"] == worker
    assert server.told("serving_process_silent") == []


@pytest.mark.parametrize("with_children", [False, True])
def test_a_stop_of_the_supervisor_kills_nothing(server: Server, *, with_children: bool) -> None:
    """As when a terminal, a debugger or a suspended machine stops it; perhaps its children with it."""
    before = sorted(server.children(SERVING) + server.children(WORKER))
    stopped = [server.pid, *(before if with_children else [])]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SILENT_SECONDS * 1.5)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    time.sleep(SILENT_SECONDS)  # in which it would kill them
    assert sorted(server.children(SERVING) + server.children(WORKER)) == before
    assert server.told("serving_process_silent") == server.told("worker_process_silent") == []
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)) as connection:
        with suppress(HTTPException):
            connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200


def test_the_newest_requests_are_named_when_there_are_too_many() -> None:
    memory = bytearray(MEMORY_BYTES)
    requests = RequestsInWork(memory)
    slots = [requests.begin(b"/first", f"r{number}") for number in range(300)]
    requests.advance(slots[7])
    assert [each.request_id for each in RequestsInWork(memory).newest(2)] == ["r7", "r299"]


def test_requests_are_forgotten_when_they_end() -> None:
    requests = RequestsInWork(bytearray(MEMORY_BYTES))
    slots = [requests.begin(b"/first", f"r{number}") for number in range(300)]
    for slot in slots:
        requests.end(slot)
    assert requests.newest(4) == []
    assert requests.begin(b"/again", "last") in slots
    assert [each.route for each in requests.newest(4)] == ["/again"]
