"""SIGKILL of one PostgreSQL backend under load, after which PostgreSQL cuts every connection and recovers by itself."""

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from tests.conftest import migrated
from tests.factories import make_customer
from tests.faults.callers import Callers, call, times
from tests.faults.server import Server
from tests.patience import wait_until
from tests.postgres import PostgresServer

KILLS = times(5, long=100)
SERVING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'frontdesk' AND datname = 'crashed' ORDER BY pid"


@pytest.fixture
def durable() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


@pytest.fixture
def crashed(durable: PostgresServer) -> Iterator[Database]:
    """A migrated database of the durable server."""
    db = open_database(migrated(durable, "crashed"))
    yield db
    db.close()


def test_a_crashed_backend_loses_nothing_and_the_server_goes_on_by_itself(
    durable: PostgresServer, crashed: Database, tmp_path: Path
) -> None:
    customer = make_customer(crashed, now=system_clock())
    crashed.close()  # connections that the first crash would cut
    chance = random.Random(11)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    with Server(durable.url("crashed"), tmp_path / "log") as server:
        process = server.pid
        with Callers(server.port, path, customer.token) as callers:
            for _ in range(KILLS):
                callers.wait_for(chance.randint(10, 80))
                with psycopg.connect(durable.url(), autocommit=True) as connection:
                    serving = [row[0] for row in connection.execute(SERVING)]
                durable.kill_backend(chance.choice(serving))
                durable.wait_until_ready()
                # A read may share one that began in the recovery, and fail with it; the next ones are asked on new connections.
                wait_until(lambda: reads(server.port, customer.token), "a read")
            callers.wait_for(50)
        assert server.pid == process
    assert callers.statuses <= {200, 201, 503}
    check_nothing_lost(crashed, callers.acknowledged)


def reads(port: int, token: str) -> bool:
    status, _ = call(port, "GET", "/v2/plans", None, token)
    assert status in (200, 503)
    return status == 200


def check_nothing_lost(db: Database, acknowledged: dict[str, str]) -> None:
    query = """SELECT external_id, last_name, (SELECT count(*) FROM invitations WHERE member_id = members.id)
               FROM members"""
    rows = db.ask(lambda tx: tx.exec_driver_sql(query).all())
    stored = {row[0]: row[1] for row in rows}
    assert {key: stored.get(key) for key in acknowledged} == acknowledged
    assert len(stored) == len(rows)
    assert {row[2] for row in rows} == {1}
