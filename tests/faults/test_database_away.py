"""PostgreSQL is stopped and started under a serving process: its log names the cause once, and /metrics goes on from memory."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import open_database
from tests.conftest import migrated
from tests.factories import Customer, Operator, make_customer, make_operator
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import PostgresServer

Callers = tuple[Customer, Operator]


@pytest.fixture
def stoppable() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def callers(stoppable: PostgresServer) -> Callers:
    db = open_database(migrated(stoppable, "away"))
    with closing(db):
        return make_customer(db, now=system_clock()), make_operator(db, now=system_clock())


def test_an_outage_is_told_once_with_its_cause_and_metrics_go_on_from_memory(
    stoppable: PostgresServer, callers: Callers, tmp_path: Path
) -> None:
    customer, operator = callers
    with Server(stoppable.url("away"), tmp_path / "log", with_worker=True) as server:
        wait_until(lambda: told(server, "worker_started"), "the worker")
        before = get(server, "/metrics", operator.token)
        assert "frontdesk_database_up 1.0" in before
        assert "frontdesk_invitations_held" in before
        assert get(server, "/v2/plans", customer.token)
        stoppable.kill_postmaster()
        wait_until(
            lambda: "frontdesk_database_up 0.0" in get(server, "/metrics", operator.token), "an outage"
        )
        during = get(server, "/metrics", operator.token)
        assert "frontdesk_requests_total" in during
        assert "frontdesk_invitations_held" not in during
        assert status(server, "/metrics", "unknown") == 503
        for _ in range(5):
            assert status(server, "/readyz", None) == 503
        wait_until(lambda: len(told(server, "database_away")) == 2, "the worker to notice")
        stoppable.start()
        wait_until(lambda: status(server, "/readyz", None) == 200, "the database to be back")
        wait_until(lambda: len(told(server, "database_back")) == 2, "the worker to be back")
    away = told(server, "database_away")
    assert len(away) == 2  # one process serves and one works
    assert "Traceback" not in server.log.read_text()
    assert {line["cause"] for line in away} <= {
        "database_no_server",
        "database_starting",
        "database_unreachable",
    }
    assert all(line["detail"].endswith(".") for line in away)


def request(server: Server, path: str, token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE_SECONDS)
    with closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def get(server: Server, path: str, token: str | None) -> str:
    code, text = request(server, path, token)
    assert code == 200, text
    return text


def status(server: Server, path: str, token: str | None) -> int:
    return request(server, path, token)[0]


def told(server: Server, event: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["event"] == event]
