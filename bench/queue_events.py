"""`python -m bench.queue_events`: events per second that one feeder gets stored over HTTP, in batches, on both databases."""

import argparse
import contextlib
import http.client
import json
import secrets
import statistics
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from tests.factories import Customer, Operator, make_customer, make_operator
from tests.faults.server import Server
from tests.postgres import PostgresServer

PATH = "/operator/v1/queue-events"
DOCTORS = 50
TYPES = ("patient.joined", "visit.started", "visit.ended")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.queue_events")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--batches", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, url in _databases(Path(folder)):
            rates = _measure(url, Path(folder) / f"{name}.log", options.batch, options.batches)
            low, middle = min(rates), statistics.median(rates)
            print(
                f"{name:<10} {middle:>8,.0f} events/s (slowest batch {low:,.0f}), batches of {options.batch}"
            )


def _databases(folder: Path) -> Iterator[tuple[str, str]]:
    """Durable ones: what is answered survives a loss of power."""
    yield "SQLite", f"sqlite:///{folder}/frontdesk.db"
    with PostgresServer(durable=True) as server:
        yield "PostgreSQL", server.create_database("bench")


def _measure(url: str, log: Path, batch: int, batches: int) -> list[float]:
    url = read_config({"FRONTDESK_DATABASE_URL": url}).database_url
    db = open_database(url)
    upgrade(db)
    customer = make_customer(db, plan_count=4, now=datetime.now(UTC))
    operator = make_operator(db, now=datetime.now(UTC))
    with contextlib.closing(db), Server(url, log) as server:
        return [
            len(events) / _seconds(server.port, operator, events)
            for events in _stream(_group(db, customer), customer.plan_ids, batch, batches)
        ]


def _group(db: Database, customer: Customer) -> int:
    sql = f"SELECT provider_group_id FROM plans WHERE id = {customer.plan_ids[0]}"
    return int(db.ask(lambda tx: tx.exec_driver_sql(sql).scalar_one()))


def _stream(group: int, plans: list[int], batch: int, batches: int) -> Iterator[list[dict[str, Any]]]:
    """A clinic's day, quick as light: each visit's three events are some hundred events apart, so in other batches too."""
    start = datetime.now(UTC) - timedelta(hours=20)
    mark = secrets.token_hex(4)
    events: list[tuple[float, dict[str, Any]]] = []
    for visit in range(batch * batches // len(TYPES) + 1):
        for step, type_ in enumerate(TYPES):
            at = visit + step * 130
            event = {"type": type_, "plan_id": plans[visit % len(plans)], "visit": f"{mark}-{visit}"}
            event |= {"doctor": f"dr-{visit % DOCTORS}"} if step else {}
            events.append((at, event))
    events.sort(key=lambda pair: pair[0])
    made = [
        {
            "id": f"{mark}-e{number}",
            "at": (start + timedelta(seconds=at)).isoformat(),
            "provider_group_id": group,
        }
        | event
        for number, (at, event) in enumerate(events)
    ]
    for number in range(batches):
        yield made[number * batch : (number + 1) * batch]


def _seconds(port: int, operator: Operator, events: list[dict[str, Any]]) -> float:
    body = json.dumps({"events": events})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        began = perf_counter()
        headers = {"Authorization": f"Bearer {operator.token}", "Content-Type": "application/json"}
        connection.request("POST", PATH, body, headers)
        answer = connection.getresponse()
        counts = json.loads(answer.read())
        seconds = perf_counter() - began
    if counts.get("stored") != len(events):
        raise RuntimeError(f"{answer.status}: not all events were stored")
    return seconds


if __name__ == "__main__":
    main()
