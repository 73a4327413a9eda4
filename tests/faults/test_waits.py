"""Waits for a database that is locked or has fallen silent: they end, and hold up nobody else."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk.app import WRITING_THREADS, App
from frontdesk.clock import system_clock
from frontdesk.config import Config, read_config
from frontdesk.db import open_database
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.errors import Unavailable
from tests.conftest import SetClock, migrated
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import call
from tests.faults.in_process import serving
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS
from tests.postgres import PostgresServer

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = 'silent' AND pid <> pg_backend_pid()"


def test_writers_that_wait_hold_up_no_reader_no_probe_and_no_member(
    config: Config, clock: SetClock, customer: Customer
) -> None:
    plan = f"/v2/plans/{customer.plan_ids[0]}"
    token = customer.token

    async def scene() -> list[int]:
        async with serving(config, clock, 1) as [service]:
            go = threading.Event()
            writers = [
                asyncio.create_task(service.app.in_thread(go.wait))
                for _ in range(2 * WRITING_THREADS)
            ]
            await asyncio.sleep(0)
            try:
                return [
                    await service.call("GET", plan, token),
                    await service.call("GET", "/v2/plans", token),
                    await service.call("GET", "/readyz"),
                    await service.call("POST", f"{plan}/eligibility", token, member_body(1)),
                ]
            finally:
                go.set()
                await asyncio.gather(*writers)

    assert asyncio.run(asyncio.wait_for(scene(), PATIENCE_SECONDS)) == [200, 200, 200, 201]


@contextmanager
def fallen_silent(server: PostgresServer) -> Iterator[None]:
    """Every process of the database stands still: connections stay open and nothing is ever said on
    them.
    """
    with psycopg.connect(server.url("silent")) as connection:
        pids = [server.pid, *(row[0] for row in connection.execute(BACKENDS))]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_every_endpoint_answers_503_while_the_database_is_silent(tmp_path: Path) -> None:
    with PostgresServer() as postgres:
        url = migrated(postgres, "silent")
        with closing(open_database(url)) as db:
            customer = make_customer(db, now=system_clock())
        with Server(url, tmp_path / "log") as server:
            assert statuses_of_all(server, customer, 1) == [201, 200, 200, 200, 200, 200]
            with fallen_silent(postgres):
                assert statuses_of_all(server, customer, 2) == [503, 503, 503, 503, 503, 200]
            postgres.wait_until_ready()
            after = statuses_of_all(server, customer, 2)
            assert after[0] in (200, 201)  # whether it was stored was not known
            assert after[1:] == [200, 200, 200, 200, 200]


def test_a_silent_database_does_not_hold_up_the_stop(
    clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what a connection may take else
    monkeypatch.setattr("frontdesk.db.postgresql.WAIT_SECONDS", 3600)
    monkeypatch.setattr("frontdesk.db.pipeline.SILENT_SECONDS", 3600)

    async def submit_and_stop(address: str) -> float:
        config = read_config({"FRONTDESK_DATABASE_URL": address})
        app = App(config, open_database(config.database_url), clock)
        record = parse_member(member_body(1), today="2026-01-01")
        waiting = asyncio.create_task(
            app.enrolments.submit(Submission(1, 1, record, "client", "request"))
        )
        await asyncio.sleep(0.1)
        started = time.monotonic()
        app.shorten_waits()
        with pytest.raises(Unavailable):
            await waiting
        await app.close()
        return time.monotonic() - started

    with socket.create_server(("127.0.0.1", 0)) as says_nothing:
        port = says_nothing.getsockname()[1]
        assert (
            asyncio.run(submit_and_stop(f"postgresql://nobody@127.0.0.1:{port}/none"))
            < PATIENCE_SECONDS
        )


def statuses_of_all(server: Server, customer: Customer, number: int) -> list[int]:
    """A member, a plan, all plans, a token, the probe that asks the database and the one that does
    not, all at once.
    """
    credentials = {
        "grant_type": "client_credentials",
        "client_id": customer.client_id,
        "client_secret": customer.client_secret,
    }
    plan = f"/v2/plans/{customer.plan_ids[0]}"
    calls: list[tuple[Any, ...]] = [
        ("POST", f"{plan}/eligibility", member_body(number), customer.token),
        ("GET", plan, None, customer.token),
        ("GET", "/v2/plans", None, customer.token),
        ("POST", "/oauth/token", credentials),
        ("GET", "/readyz"),
        ("GET", "/healthz"),
    ]
    with ThreadPoolExecutor(len(calls)) as callers:
        return [status for status, _ in callers.map(lambda asked: call(server.port, *asked), calls)]
