"""What do a request, a record of a batch, a claim and a row of a file cost with a thousand and with
a million members?

Medians (p50 of requests, by connections); x: how many times the smallest size's. Half of the POSTs
create a member, half change one from anywhere in the table. No statistics: not analysed since the
table was filled. Each size has a database and a service of its own; all run at once and are
measured in turn.
"""

import argparse
import csv
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

from rich.progress import Progress

from bench.delivery import allow_batches
from bench.files import load
from bench.harness import Bench, Databases, Installation, Option, Row, chosen, databases
from bench.load import KNOWN, Service, drive, frontdesk
from frontdesk.clock import system_clock
from frontdesk.config import read_config
from frontdesk.db import Database
from frontdesk.eligibility import find_expired
from frontdesk.invitations.protocol import DeliveryContext, claim
from frontdesk.worker.delivery import policy_of
from tests.factories import member_body
from tests.population import analyze, copy_members

FILE_ROWS = 2000
BATCH = 100
FRESH = 50_000_000  # the first number of new members, beyond every size
STATES = ("no statistics", "analysed")
# Reading members; the member is in the middle of the smallest table.
READS = {
    "member": "/v2/plans/1/eligibility/500",
    "by e-mail": "/v2/eligibility?email=robin.500@example.com",
    "page": "/v2/plans/1/eligibility?page[after]=500",
    "history": "/v2/plans/1/eligibility/500/history",
}


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    names = chosen(options)
    sizes = sorted(options.sizes)
    steps = len(names) * len(sizes) * (1 + len(STATES) * options.repetitions)
    task = progress.add_task("measuring", total=steps)
    for name in names:
        costs: defaultdict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
        with ExitStack() as stack:
            # Autovacuum is off, so a table has the statistics that it is given.
            kind = stack.enter_context(databases(name, {"autovacuum": "off"}))
            grown = {}
            for size in sizes:
                grown[size] = _grow(stack, kind, size)
                progress.advance(task)
            for state in STATES:
                if state == "analysed":
                    for installation, _ in grown.values():
                        analyze(installation.db)
                for _ in range(options.repetitions):
                    for size, (installation, service) in grown.items():
                        costs[state, size].append(_measure(installation, service, options.seconds))
                        progress.advance(task)
        for (state, size), measured in costs.items():
            row: Row = {"database": name, "statistics": state, "members": size}
            for cost in measured[0]:
                both = (measured, costs[state, sizes[0]])
                median, smallest = (statistics.median(each[cost] for each in runs) for runs in both)
                row |= {cost: median, f"{cost.partition(':')[0]}: x": round(median / smallest, 2)}
            yield row


def _grow(stack: ExitStack, kind: Databases, size: int) -> tuple[Installation, Service]:
    """A database of that many members, and the service on it."""
    installation = stack.enter_context(kind.installation(f"members_{size}"))
    service = stack.enter_context(frontdesk(installation)).prepare()
    allow_batches(installation.db, installation.customer.account_id)
    copy_members(installation.db, 1, numbers=range(KNOWN, max(size, KNOWN + BATCH)), invited=True)
    service.known = size
    service.fresh = FRESH
    return installation, service


def _measure(installation: Installation, service: Service, seconds: float) -> dict[str, float]:
    costs = {
        f"{what}, {connections}: ms": service.measure(what, connections, seconds).p50 * 1000
        for what in ("POST", "GET")
        for connections in (1, 64)
    }
    costs |= {
        f"{name}: ms": service.measure(path, 1, seconds / 4).p50 * 1000
        for name, path in READS.items()
    }
    batch = _changed(service.known, KNOWN)
    request = service.request("POST", "/v2/plans/1/eligibility/batch", json.dumps(batch))
    costs["batch, record: µs"] = drive(service.port, 1, [request]).elapsed / len(batch) * 1e6
    costs[f"claim of {BATCH}: ms"] = _claim_ms(installation.db)
    path = installation.folder / "members.csv"
    rows = _changed(service.known, FILE_ROWS)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    loaded = load(installation.url, installation.customer.plan_ids[0], str(path))
    return costs | {"file row: µs": loaded["seconds"] / len(rows) * 1e6}


def _claim_ms(db: Database) -> float:
    """The median of 15 claims of invitations, each of which is taken back."""
    taken = []
    config = read_config({"FRONTDESK_LINK_SECRET": "x" * 40})
    for _ in range(15):
        with db.engine.connect() as connection, connection.begin() as transaction:
            started = time.perf_counter()
            context = DeliveryContext(policy_of(config))
            claimed = claim(
                connection, context, now=system_clock(), count=BATCH, find_expired=find_expired
            )
            taken.append((time.perf_counter() - started) * 1000)
            assert len(claimed) == BATCH
            transaction.rollback()
    return statistics.median(taken)


def _changed(size: int, most: int) -> list[dict[str, Any]]:
    """Stored members from all over the table, each with a city that it has not had."""
    city = f"City {datetime.now(UTC).timestamp()}"
    template = member_body(metadata=..., email=..., phone=..., city=city, last_name="First")
    numbers = range(0, size, max(1, size // most))[:most]
    return [template | {"external_id": f"AB {n:08d}", "member_id": f"M-{n:08d}"} for n in numbers]


BENCH = Bench(
    __doc__,
    run,
    Option("sizes", [1000, 1_000_000], [1000, 5000], "members"),
    Option("repetitions", 3, 1, "of each measurement"),
    Option("seconds", 1.0, 0.5, "of each measurement of requests"),
)
