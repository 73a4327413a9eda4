"""How many queue events are stored per second, and what does a long queue cost a reader?

One feeder over HTTP, batches of 500; rows alone: the same events as plain rows, a transaction per
batch. Reads are GETs of the plans on one connection, of two servers in turn: one with an empty
queue, one with a long one. A snapshot is what the processes compute anew when the last one is too
old.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from rich.progress import Progress

from bench.harness import Bench, Databases, Installation, Option, Row, chosen, databases
from bench.load import frontdesk
from frontdesk.queues.snapshot import queue_state
from frontdesk.reach import Reach
from tests.factories import make_operator
from tests.faults.callers import call

PATH = "/operator/v1/queue-events"
BATCH = 500


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    for name in chosen(options):
        with databases(name) as kind, ExitStack() as stack:
            empty, long = (
                stack.enter_context(kind.installation(which)) for which in ("empty", "long")
            )
            services = [
                stack.enter_context(frontdesk(installation)) for installation in (empty, long)
            ]
            batches = _batches(long, options)
            limit = _rows_alone(kind, batches)
            token = make_operator(long.db, now=datetime.now(UTC)).token
            rates = []
            for events in progress.track(batches, description=f"events to {name}"):
                started = time.perf_counter()
                status, answer = call(services[1].port, "POST", PATH, {"events": events}, token)
                rates.append(len(events) / (time.perf_counter() - started))
                if answer.get("stored") != len(events):
                    raise RuntimeError(f"{status}: not all events were stored: {answer}")
            pairs = []
            for number in progress.track(range(options.repetitions), description="reads"):
                read = {
                    n: services[n].measure("GET", 1, 0.5)
                    for n in ((0, 1) if number % 2 else (1, 0))
                }
                pairs.append((read[0].per_second, read[1].per_second))
            yield {
                "database": name,
                "waiting": options.patients,
                "events/s": round(statistics.median(rates)),
                "rows alone/s": round(limit),
                "reads/s, empty": round(statistics.median(pair[0] for pair in pairs)),
                "reads/s, long": round(statistics.median(pair[1] for pair in pairs)),
                "more time per read, %": round(
                    (statistics.median(a / b for a, b in pairs) - 1) * 100, 1
                ),
                "snapshot ms, empty": _snapshot_ms(empty),
                "snapshot ms, long": _snapshot_ms(long),
            }


def _batches(long: Installation, options: argparse.Namespace) -> list[list[dict[str, Any]]]:
    """Doctors on duty, visits that are over, a visit that is not for each doctor, and patients that
    wait; by time.
    """
    now = datetime.now(UTC)
    plans = long.customer.plan_ids
    sql = f"SELECT provider_group_id FROM plans WHERE id = {plans[0]}"
    group = int(long.db.ask(lambda tx: tx.exec_driver_sql(sql).scalar_one()))
    events: list[dict[str, Any]] = []

    def add(type_: str, name: str, seconds_ago: float, **more: object) -> None:
        at = (now - timedelta(seconds=seconds_ago)).isoformat(timespec="microseconds")
        event = {"id": f"{type_} {name}", "type": type_, "at": at, "provider_group_id": group}
        events.append(event | ({"visit": name} if "plan_id" in more else {}) | more)

    for n in range(options.doctors):
        add("doctor.on_duty", f"dr-{n}", 85_000, doctor=f"dr-{n}", capacity=1)
        add("visit.started", f"now-{n}", 600, plan_id=plans[n % len(plans)], doctor=f"dr-{n}")
    for n in range(options.past):
        plan = plans[n % len(plans)]
        ended = 1000 + 80_000 * (1 - n / options.past)
        add("patient.joined", f"past-{n}", ended + 900, plan_id=plan)
        add(
            "visit.started",
            f"past-{n}",
            ended + 600,
            plan_id=plan,
            doctor=f"dr-{n % options.doctors}",
        )
        add("visit.ended", f"past-{n}", ended, plan_id=plan)
    for n in range(options.patients):
        add("patient.joined", f"waits-{n}", 1 + n / 100, plan_id=plans[n % len(plans)])
    events.sort(key=itemgetter("at"))
    return [events[start : start + BATCH] for start in range(0, len(events), BATCH)]


def _rows_alone(kind: Databases, batches: list[list[dict[str, Any]]]) -> float:
    """Events per second as plain rows, a transaction for each batch: the least that storing them
    takes.
    """
    with kind.installation("rows") as bare:
        with bare.db.write() as tx:
            tx.exec_driver_sql("CREATE TABLE bench_events (id text PRIMARY KEY, event text)")
        mark = "?" if bare.db.is_sqlite else "%s"
        started = time.perf_counter()
        for events in batches:
            with bare.db.write() as tx:
                rows = [(event["id"], json.dumps(event)) for event in events]
                tx.exec_driver_sql(f"INSERT INTO bench_events VALUES ({mark}, {mark})", rows)
        return sum(map(len, batches)) / (time.perf_counter() - started)


def _snapshot_ms(installation: Installation) -> float:
    """The time of one new snapshot of the account's queues, which the processes share for a second."""
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        with installation.db.read() as tx:
            queue_state(tx, Reach.of(installation.customer.account_id), datetime.now(UTC))
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1000, 1)


BENCH = Bench(
    __doc__,
    run,
    Option("patients", 10_000, 1_000, "that wait"),
    Option("doctors", 500, 50, "on duty, each in a visit"),
    Option("past", 5_000, 500, "visits that are over"),
    Option("repetitions", 20, 2, "of half a second of reads"),
)
