"""kill -9 of the server and of PostgreSQL under load: nothing acknowledged is lost, nobody is invited twice."""

import random
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from tests.conftest import migrated
from tests.factories import Customer, make_customer
from tests.faults.callers import Callers, times
from tests.faults.server import Server
from tests.postgres import PostgresServer

SERVER_KILLS = times(25, long=500)  # on each of the two databases
BACKEND_KILLS = times(20, long=300)
POSTMASTER_KILLS = times(10, long=100)


def check_promises(db: Database, callers: Callers) -> None:
    """Every acknowledged record is there with its acknowledged name, once, with one invitation."""
    with db.read() as tx:
        rows = tx.exec_driver_sql(
            "SELECT m.external_id, m.last_name, (SELECT count(*) FROM invitations i WHERE i.member_id = m.id), "
            "(SELECT count(*) FROM member_history h WHERE h.member_id = m.id AND h.outcome = 'created') FROM members m"
        ).all()
    stored = {row[0]: row[1] for row in rows}
    assert len(stored) == len(rows)
    assert callers.acknowledged
    assert {key: stored.get(key) for key in callers.acknowledged} == callers.acknowledged
    assert {(row[2], row[3]) for row in rows} == {(1, 1)}


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def test_a_killed_server_loses_nothing_that_it_acknowledged(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, now=system_clock())
    server = Server(database_url, tmp_path / "log", workers=1)
    server.start()
    chance = random.Random(7)
    try:
        with Callers(server.port, path_of(customer), customer.token) as callers:
            for _ in range(SERVER_KILLS):
                callers.wait_for(chance.randint(1, 60))
                server.kill()
                server.start()
    finally:
        server.kill()
    check_promises(db, callers)
    assert callers.statuses <= {200, 201, 503}


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


def test_killed_backends_and_postmasters_lose_nothing_and_the_server_recovers(
    durable: PostgresServer, tmp_path: Path
) -> None:
    url = migrated(durable, "killed")
    db = open_database(url)
    customer = make_customer(db, now=system_clock())
    server = Server(url, tmp_path / "log")
    server.start()
    try:
        with Callers(server.port, path_of(customer), customer.token) as callers:
            for number in range(BACKEND_KILLS + POSTMASTER_KILLS):
                callers.wait_for(20)
                if number < BACKEND_KILLS:
                    durable.kill_backends("killed")
                else:
                    durable.kill_postmaster()
                    durable.start()
    finally:
        server.stop()
    db.close()
    db = open_database(url)
    check_promises(db, callers)
    db.close()
    assert callers.statuses <= {200, 201, 503}


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_answers_what_it_took_and_loses_nothing(
    database_url: str, db: Database, tmp_path: Path, sign: signal.Signals
) -> None:
    customer = make_customer(db, now=system_clock())
    server = Server(database_url, tmp_path / "log", with_worker=True)
    server.start()
    half_sent = socket.create_connection(("127.0.0.1", server.port))
    half_sent.sendall(b"POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    with Callers(server.port, path_of(customer), customer.token) as callers:
        callers.wait_for(100)
        server.stop(sign)
        callers.stop()
    half_sent.close()
    check_promises(db, callers)
    assert callers.statuses <= {200, 201, 503}
