"""kill -9 of the server and of PostgreSQL under load: nothing acknowledged is lost, nobody is
invited twice.
"""

import http.client
import json
import random
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from frontdesk.queues.tables import encounters, queue_events
from frontdesk.queues.upkeep import rebuild
from tests.conftest import migrated
from tests.factories import make_customer, make_operator, member_body
from tests.faults.callers import Callers, call, check_promises, times, visits
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import PostgresServer

# On each of the two databases: of a server that takes members, and of one that takes queue events.
ANSWER_KILLS = times(3, long=50)
BATCH_KILLS = times(3, long=50)
SERVER_KILLS = times(10, long=500)
KILLS_OF_A_FEED = times(2, long=100)
BACKEND_CUTS = times(10, long=300)
BACKEND_KILLS = times(3, long=100)
POSTMASTER_KILLS = times(5, long=100)
SERVING = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'frontdesk' AND datname = 'killed' "
    "ORDER BY pid"
)


def test_a_killed_server_loses_nothing_that_it_acknowledged(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, now=system_clock())
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    chance = random.Random(7)
    with (
        Server(database_url, tmp_path / "log") as server,
        Callers(server.port, path, customer.token) as callers,
    ):
        for _ in range(SERVER_KILLS):
            callers.wait_for(chance.randint(1, 60))
            server.kill()
            server.start()
    check_promises(db, callers)


def send_by_key(
    server: Server, path: str, token: str, body: object, *, key: str
) -> http.client.HTTPConnection:
    """A POST whose answer is not read."""
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": key,
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    connection.request("POST", path, json.dumps(body), headers)
    return connection


def test_a_retry_after_a_kill_gets_the_first_answer_or_is_the_first_request(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    """The server is killed once a record is committed, whose answer is never read; and while a lock
    keeps another one waiting.
    """
    customer = make_customer(db, now=system_clock())
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"

    def send(number: int) -> http.client.HTTPConnection:
        body = member_body(number, last_name=f"Name{number}")
        return send_by_key(server, path, customer.token, body, key=f"key-{number}")

    def answer(number: int) -> tuple[int, str, str | None]:
        with closing(send(number)) as connection:
            told = connection.getresponse()
            assert json.loads(told.read())["last_name"] == f"Name{number}"
            return (
                told.status,
                told.headers["Eligibility-Outcome"],
                told.headers["Idempotency-Replayed"],
            )

    def is_stored(number: int) -> bool:
        count = db.ask(lambda tx: tx.exec_driver_sql("SELECT count(*) FROM members").scalar_one())
        return int(count) > number

    with Server(database_url, tmp_path / "log") as server:
        for number in range(ANSWER_KILLS):
            with closing(send(number)):
                wait_until(partial(is_stored, number), "a committed record")
                server.kill()
            server.start()
            assert answer(number) == (201, "created", "true")
        with db.write() as tx:
            # SQLite's writing transaction keeps every other one waiting.
            tx.exec_driver_sql("SELECT 1" if db.is_sqlite else "LOCK TABLE members IN SHARE MODE")
            with closing(send(ANSWER_KILLS)), closing(send(0)):
                server.kill()
        server.start()
        assert answer(ANSWER_KILLS) == (201, "created", None)
        assert answer(0) == (201, "created", "true")


def test_a_batch_retried_after_a_kill_gets_the_first_results(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    """The server is killed in the middle of a batch: some of its groups are committed, and their
    answer is never read.
    """
    customer = make_customer(db, now=system_clock())
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility/batch"

    def send(batch: int) -> http.client.HTTPConnection:
        body = [member_body(1000 * batch + n) for n in range(1000)]
        return send_by_key(server, path, customer.token, body, key=f"batch-{batch}")

    def answer(batch: int) -> tuple[dict[str, Any], str | None]:
        with closing(send(batch)) as connection:
            told = connection.getresponse()
            return json.loads(told.read()), told.headers["Idempotency-Replayed"]

    def stored() -> list[int]:
        return list(
            db.ask(
                lambda tx: tx.exec_driver_sql("SELECT id FROM members ORDER BY id").scalars().all()
            )
        )

    with Server(database_url, tmp_path / "log") as server:
        for batch in range(BATCH_KILLS):
            with closing(send(batch)):
                wait_until(lambda: len(stored()) > 1000 * batch, "a committed group")  # noqa: B023
                server.kill()
            before = set(stored())
            server.start()
            first, _ = answer(batch)
            assert first["counts"]["created"] == 1000
            assert before - {each["id"] for each in first["data"]} == set(stored()[: 1000 * batch])
            assert answer(batch) == (first, "true")
    query = "SELECT count(*) FROM member_history WHERE outcome = 'created'"
    assert (
        db.ask(lambda tx: tx.exec_driver_sql(query).scalar_one())
        == len(stored())
        == 1000 * BATCH_KILLS
    )


def test_a_killed_server_loses_no_event_that_it_acknowledged_and_counts_none_twice(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    bodies = partial(visits, make_customer(db, now=system_clock()).plan_ids)
    path = "/operator/v1/queue-events"
    token = make_operator(db, now=system_clock()).token
    chance = random.Random(7)
    with (
        Server(database_url, tmp_path / "log", workers=2) as server,
        Callers(server.port, path, token, bodies, threads=4) as feeders,
    ):
        for _ in range(KILLS_OF_A_FEED):
            feeders.wait_for(chance.randint(1, 120))
            server.kill()
            server.start()
        feeders.wait_for(1)
    with db.write() as tx:
        stored = [
            (row.event_id, row.visit) for row in tx.execute(queue_events.select()) if row.visit
        ]
        assert len(stored) == len(set(stored))
        assert feeders.acknowledged.items() <= dict(stored).items()
        assert sorted(row.visit for row in tx.execute(encounters.select())) == sorted(
            set(dict(stored).values())
        )
        assert rebuild(tx)["mended"] == 0
    assert feeders.statuses <= {207, 503}


def test_killed_backends_and_postmasters_lose_nothing_and_the_server_recovers(
    tmp_path: Path,
) -> None:
    """PostgreSQL cuts one connection, cuts all of them because a backend was killed, or is killed
    itself.
    """
    chance = random.Random(11)
    with PostgresServer(durable=True) as postgres:
        url = migrated(postgres, "killed")
        with closing(open_database(url)) as db:
            customer = make_customer(db, now=system_clock())
        path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"

        def reads() -> bool:
            """A read may share one that began in the recovery, and fail with it; the next ones are
            on new connections.
            """
            status, _ = call(server.port, "GET", "/v2/plans", None, customer.token)
            assert status in (200, 503)
            return status == 200

        with Server(url, tmp_path / "log") as server:
            serving = server.children()
            with Callers(server.port, path, customer.token) as callers:
                for number in range(BACKEND_CUTS + BACKEND_KILLS + POSTMASTER_KILLS):
                    callers.wait_for(chance.randint(10, 40))
                    if number < BACKEND_CUTS:
                        postgres.kill_backends("killed")
                    elif number < BACKEND_CUTS + BACKEND_KILLS:
                        with psycopg.connect(postgres.url(), autocommit=True) as connection:
                            backends = [row[0] for row in connection.execute(SERVING)]
                        postgres.kill_backend(chance.choice(backends))
                        postgres.wait_until_ready()
                    else:
                        postgres.kill_postmaster()
                        postgres.start()
                    wait_until(reads, "a read")
                callers.wait_for(50)
            assert server.children() == serving
        with closing(open_database(url)) as db:
            check_promises(db, callers)
