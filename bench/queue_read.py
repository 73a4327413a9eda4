"""`python -m bench.queue_read`: what 10,000 waiting patients and 500 doctors change for the readers of GET /v2/plans.

Two servers side by side on one database each, one with an empty queue and one with a long one, read in turns. Also the time
of one renewal, which a server does once per ttl.
"""

import argparse
import contextlib
import http.client
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.queues.queue_state import queue_state
from tests.factories import Customer, make_customer
from tests.faults.server import Server
from tests.postgres import PostgresServer

PATIENTS, DOCTORS, PAST = 10_000, 500, 5_000


@dataclass
class Contestant:
    """A database with a queue, and a server on it."""

    db: Database
    customer: Customer
    server: Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.queue_read")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, urls in _databases(Path(folder)):
            _compare(name, urls, Path(folder), options.rounds, options.seconds)


def _databases(folder: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    yield "SQLite", (f"sqlite:///{folder}/empty.db", f"sqlite:///{folder}/long.db")
    with PostgresServer() as server:
        yield "PostgreSQL", (server.create_database("empty"), server.create_database("long"))


def _compare(name: str, urls: tuple[str, str], folder: Path, rounds: int, seconds: float) -> None:
    with contextlib.ExitStack() as stack:
        empty, long = (_contestant(stack, url, folder / f"{name}-{n}.log") for n, url in enumerate(urls))
        _fill(long)
        pairs = []
        for number in range(rounds):
            first, second = (empty, long) if number % 2 else (long, empty)
            found = {id(one): _reads_per_second(one, seconds) for one in (first, second)}
            pairs.append((found[id(empty)], found[id(long)]))
        before, after = (statistics.median(rates) for rates in zip(*pairs, strict=True))
        cost = statistics.median(empty_rate / long_rate for empty_rate, long_rate in pairs) - 1
        print(f"{name:<10} GET /v2/plans: empty {before:,.0f}/s, long {after:,.0f}/s: cost {cost:+.1%}")
        for label, contestant in (("empty", empty), ("long", long)):
            print(f"{name:<10} one renewal, {label}: {_renewal_seconds(contestant) * 1000:,.1f} ms")


def _contestant(stack: contextlib.ExitStack, url: str, log: Path) -> Contestant:
    url = read_config({"FRONTDESK_DATABASE_URL": url}).database_url
    db = open_database(url)
    stack.callback(db.close)
    upgrade(db)
    customer = make_customer(db, plan_count=4, now=datetime.now(UTC))
    return Contestant(db, customer, stack.enter_context(Server(url, log)))


def _fill(contestant: Contestant) -> None:
    now, plans = datetime.now(UTC), contestant.customer.plan_ids
    sql = f"SELECT provider_group_id FROM plans WHERE id = {plans[0]}"
    group = int(contestant.db.ask(lambda tx: tx.exec_driver_sql(sql).scalar_one()))
    events = [
        QueueEvent(f"on-{n}", EventType.DOCTOR_ON_DUTY, now, group, doctor=f"dr-{n}", capacity=1)
        for n in range(DOCTORS)
    ]
    events += [_of(n, EventType.VISIT_STARTED, now, plans, f"now-{n}", f"dr-{n}") for n in range(DOCTORS)]
    events += [_of(n, EventType.PATIENT_JOINED, now, plans, f"waits-{n}") for n in range(PATIENTS)]
    for n in range(PAST):
        at = now - timedelta(seconds=n)
        events.append(
            _of(n, EventType.VISIT_STARTED, at - timedelta(seconds=600), plans, f"past-{n}", "dr-0")
        )
        events.append(_of(n, EventType.VISIT_ENDED, at, plans, f"past-{n}"))
    for start in range(0, len(events), 1000):
        with contestant.db.write() as tx:
            ingest(tx, events[start : start + 1000], now=now)


def _of(
    n: int, type_: EventType, at: datetime, plans: list[int], visit: str, doctor: str | None = None
) -> QueueEvent:
    return QueueEvent(
        f"{type_}-{visit}", type_, at, plan_id=plans[n % len(plans)], visit=visit, doctor=doctor
    )


def _reads_per_second(contestant: Contestant, seconds: float) -> float:
    headers = {"Authorization": f"Bearer {contestant.customer.token}", "Accept": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", contestant.server.port, timeout=60)
    count, began = 0, perf_counter()
    with contextlib.closing(connection):
        while (spent := perf_counter() - began) < seconds:
            connection.request("GET", "/v2/plans", headers=headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"a read was answered with {answer.status}")
            count += 1
    return count / spent


def _renewal_seconds(contestant: Contestant) -> float:
    found = []
    for _ in range(9):
        began = perf_counter()
        with contestant.db.read() as tx:
            queue_state(tx, contestant.customer.account_id, datetime.now(UTC))
        found.append(perf_counter() - began)
    return statistics.median(found)


if __name__ == "__main__":
    main()
