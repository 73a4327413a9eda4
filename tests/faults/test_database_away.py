"""PostgreSQL is away, or cuts connections: the log names the cause once, and requests are answered
as ever.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from frontdesk.app import App
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from tests.conftest import Api, migrated
from tests.factories import Customer, make_customer, make_operator
from tests.faults.callers import call, times
from tests.faults.server import Server
from tests.patience import wait_until
from tests.postgres import Databases, PostgresServer

CUTS = times(5, long=100)


@pytest.fixture
def stoppable() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


def test_an_outage_is_told_once_with_its_cause_and_metrics_go_on_from_memory(
    stoppable: PostgresServer, tmp_path: Path
) -> None:
    url = migrated(stoppable, "away")
    with closing(open_database(url)) as db:
        customer = make_customer(db, now=system_clock())
        operator = make_operator(db, now=system_clock())
    with Server(url, tmp_path / "log", with_worker=True) as server:

        def metrics() -> str:
            status, text = call(server.port, "GET", "/metrics", token=operator.token)
            assert status == 200, text
            return str(text)

        def status(path: str, token: str = "") -> int:
            return call(server.port, "GET", path, token=token)[0]

        wait_until(lambda: server.told("worker_started"), "the worker")
        before = metrics()
        assert "frontdesk_database_up 1.0" in before
        assert "frontdesk_invitations_held" in before
        assert status("/v2/plans", customer.token) == 200
        stoppable.kill_postmaster()
        wait_until(lambda: "frontdesk_database_up 0.0" in metrics(), "an outage")
        during = metrics()
        assert "frontdesk_requests_total" in during
        assert "frontdesk_invitations_held" not in during
        assert status("/metrics", "unknown") == 503
        assert [status("/readyz") for _ in range(5)] == [503] * 5
        wait_until(lambda: len(server.told("database_away")) == 2, "the worker to notice")
        stoppable.start()
        wait_until(lambda: status("/readyz") == 200, "the database to be back")
        wait_until(lambda: len(server.told("database_back")) == 2, "the worker to be back")
    away = server.told("database_away")
    assert len(away) == 2  # one process serves and one works
    assert "Traceback" not in server.log.read_text()
    causes = {"database_no_server", "database_starting", "database_unreachable"}
    assert {line["cause"] for line in away} <= causes
    assert all(line["detail"].endswith(".") for line in away)


def test_a_server_and_a_worker_that_start_before_the_database_wait_for_it(
    stoppable: PostgresServer, tmp_path: Path
) -> None:
    url = migrated(stoppable, "late")
    logs = (tmp_path / "serve", tmp_path / "worker")
    stoppable.kill_postmaster()
    server = Server(url, logs[0])
    command = (sys.executable, "-m", "frontdesk", "worker")
    variables = {"FRONTDESK_DATABASE_URL": url}

    def lines(event: str) -> list[int]:
        return [log.exists() and log.read_text().count(f'"event": "{event}"') for log in logs]

    with logs[1].open("wb") as log, ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        worker = subprocess.Popen(command, stdout=log, env=os.environ | variables)
        stack.callback(worker.wait)
        stack.callback(worker.kill)
        starting = thread.submit(server.start)
        stack.callback(server.kill)
        wait_until(lambda: lines("database_away") == [1, 1], "both to wait")
        stoppable.start()
        starting.result()
        wait_until(lambda: lines("worker_started") == [0, 1], "the worker")
        assert (lines("database_away"), lines("database_back")) == ([1, 1], [1, 1])


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_patch_on_dead_connections_is_made_once_or_refused_as_ever(
    api: Api, app: App, customer: Customer, postgres: Databases
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"

    def patch(headers: dict[str, str], **change: str) -> int:
        """Every connection of the service dies before, after it has some."""
        assert postgres.kill_backends(str(app.db.engine.url.database)) > 0
        return int(api.patch(path, change, headers=headers).status_code)

    for number in range(CUTS):
        assert patch({}, name=f"Name {number}") == 200
    tag = api.get(path).headers["ETag"]
    assert tag.startswith(f'"v{CUTS + 1}.')
    assert patch({}, external_id="plan-1") == 422
    assert [patch({"If-Match": tag}, name=name) for name in ("Other", "Third")] == [200, 412]
