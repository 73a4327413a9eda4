"""`python -m bench.delivery`: invitations delivered per second against a relay that does nothing, and the cost of choosing.

It measures claims and commits on both databases; then how long finding the next batch takes with 1,000 and with 1,000,000
pending invitations, and by which query plan.
"""

import argparse
import io
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from frontdesk import invitations
from frontdesk.clock import stored_time, system_clock
from frontdesk.config import Config, Uniqueness, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.eligibility import enrol, find_expired, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.invitations.model import ClaimedInvitation, MessageContext
from frontdesk.invitations.protocol import DeliveryContext, claim
from frontdesk.log_output import LogOutput
from frontdesk.mail.model import MailMessage, MailSession
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of
from tests.factories import Customer, make_customer, member_body
from tests.population import analyze, copy_members
from tests.postgres import PostgresServer

RESULTS = Path(__file__).parent / "delivery.md"
WANTED = {"PostgreSQL": 2000, "SQLite": 1000}


class NullRelay:
    """Takes everything at once."""

    def __init__(self) -> None:
        self.taken = 0

    def open(self) -> MailSession:
        return NullConversation(self)


class NullConversation:
    def __init__(self, relay: NullRelay) -> None:
        self._relay = relay

    def offer(self, message: MailMessage) -> None: ...

    def finish(self) -> int:
        self._relay.taken += 1
        return 250

    def abandon(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds on the clock, and of the worker's own processor time."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """`claims`: claims and commits with ready-made messages; `whole`: each message is written too."""

    database: str
    messages: int
    claims: Run
    whole: Run
    choosing_ms: dict[int, float]
    plan: str

    @property
    def per_second(self) -> float:
        return self.messages / self.claims.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--many", type=int, default=1_000_000, help="pending rows when choosing is timed")
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--only", choices=sorted(WANTED))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [
        measure(name, messages=options.messages, many=options.many, connections=options.connections)
        for name in WANTED
        if options.only in (None, name)
    ]
    if options.json:
        print(
            json.dumps(
                [
                    {"database": m.database, "per_second": round(m.per_second)} | {"ms": m.choosing_ms}
                    for m in found
                ]
            )
        )
    else:
        show(found)
    if options.only is None:
        RESULTS.write_text(markdown(found, options.connections))


def measure(name: str, *, messages: int, many: int, connections: int) -> Measured:
    with database(name) as (db, url):
        config = read_config({"FRONTDESK_DATABASE_URL": url, "FRONTDESK_LINK_SECRET": "x" * 40})
        customer = make_customer(db, now=system_clock())
        template = enrol_one(db, customer)
        choosing = {}
        queue(db, template, 1000)
        choosing[1000] = choosing_ms(db, config)
        empty(db)
        queue(db, template, messages)
        claims = deliver(db, config, messages, connections, WorkerOptions(compose=ready_made))
        queue(db, template, messages)
        whole = deliver(db, config, messages, connections, WorkerOptions())
        queue(db, template, many)
        choosing[many] = choosing_ms(db, config)
        return Measured(name, messages, claims, whole, choosing, plan_of(db, customer))


@contextmanager
def database(name: str) -> Iterator[tuple[Database, str]]:
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder:
        if name == "SQLite":
            url = f"sqlite:///{folder}/bench.db"
            yield from _migrated(url)
        else:
            with PostgresServer(durable=True) as server:
                yield from _migrated(
                    read_config({"FRONTDESK_DATABASE_URL": server.create_database("bench")}).database_url
                )


def _migrated(url: str) -> Iterator[tuple[Database, str]]:
    db = open_database(url)
    upgrade(db)
    yield db, url
    db.close()


def enrol_one(db: Database, customer: Customer) -> int:
    """The member that all others are copied from; its id."""
    record = parse_member(member_body(1), today="2026-11-20")
    submission = Submission(customer.account_id, customer.plan_ids[0], record, "bench", "bench")
    allow_batches(db, customer.account_id)
    with db.write() as tx:
        [enrolled] = enrol(tx, [submission], now=system_clock(), uniqueness=Uniqueness.SERVICE)
        tx.exec_driver_sql("DELETE FROM invitations")
    return int(enrolled.answer["id"])  # type: ignore[union-attr]


def allow_batches(db: Database, account: int) -> None:
    """Let batched invitations of the account go out as fast as they can."""
    with db.write() as tx:
        invitations.set_deliverability(
            tx, account, enabled=True, batch_size=1_000_000, batch_interval_seconds=1, hourly_limit=10_000_000
        )


def queue(db: Database, template: int, count: int) -> None:
    """More members with a batched invitation each."""
    with db.read() as tx:
        start = int(tx.exec_driver_sql("SELECT count(*) FROM members").scalar_one()) + 1
    copy_members(db, template, numbers=range(start, start + count), invited=True)
    analyze(db)


def empty(db: Database) -> None:
    with db.write() as tx:
        tx.exec_driver_sql("DELETE FROM invitations")


def choosing_ms(db: Database, config: Config) -> float:
    """How long a claim of 100 takes, the median of 15, each of which is taken back."""
    taken = []
    for _ in range(15):
        with db.engine.connect() as connection, connection.begin() as transaction:
            started = time.perf_counter()
            context = DeliveryContext(policy_of(config))
            claimed = claim(connection, context, now=system_clock(), count=100, find_expired=find_expired)
            taken.append((time.perf_counter() - started) * 1000)
            assert len(claimed) == 100
            transaction.rollback()
    return statistics.median(taken)


def ready_made(
    invitation: ClaimedInvitation, _context: MessageContext, /, *, base_url: str, mail_from: str
) -> MailMessage:
    return MailMessage(mail_from, invitation.address, invitation.message_id, base_url.encode())


def deliver(db: Database, config: Config, messages: int, connections: int, options: WorkerOptions) -> Run:
    """One worker delivers all of them."""
    relay = NullRelay()
    options = replace(options, connections=connections, prefetch=8, log=LogOutput(io.StringIO()))
    worker = DeliveryWorker(config, db, relay, options)
    started, cpu = time.perf_counter(), time.process_time()
    while relay.taken < messages:
        worker.step()
    worker.finish()
    run = Run(time.perf_counter() - started, time.process_time() - cpu)
    with db.read() as tx:
        states = tx.exec_driver_sql("SELECT state, count(*) FROM invitations GROUP BY state").all()
    assert {row[0] for row in states} == {"sent"}, states
    return run


_CHOICE = (
    "SELECT id FROM invitations WHERE state = 'pending' AND delivery = 'batched' AND account_id = {account} "
    "AND plan_id = {plan} AND due_at <= '{now}' ORDER BY due_at, id LIMIT 100"
)


def plan_of(db: Database, customer: Customer) -> str:
    sql = _CHOICE.format(
        account=customer.account_id, plan=customer.plan_ids[0], now=stored_time(system_clock())
    )
    explain = (
        "EXPLAIN QUERY PLAN " if db.is_sqlite else "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
    )
    with db.read() as tx:
        rows = tx.exec_driver_sql(explain + sql).all()
    return "\n".join(str(row[-1]) for row in rows)


def show(found: list[Measured]) -> None:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
    for row in rows(found):
        if not table.columns:
            for name in row:
                table.add_column(name)
        table.add_row(*map(str, row.values()))
    Console().print(table)


def rows(found: list[Measured]) -> list[dict[str, Any]]:
    return [
        {
            "database": measured.database,
            "messages": measured.messages,
            "claimed and committed per second": round(measured.per_second),
            "wanted": WANTED[measured.database],
            "reached": "yes" if measured.per_second >= WANTED[measured.database] else "no",
            "per processor second": round(measured.messages / measured.claims.cpu_seconds),
            "with messages written": round(measured.messages / measured.whole.seconds),
        }
        | {f"claim of 100, {count:,} pending, ms": round(ms, 2) for count, ms in measured.choosing_ms.items()}
        for measured in found
    ]


def markdown(found: list[Measured], connections: int) -> str:
    table = rows(found)
    lines = [
        "# Delivery",
        "",
        f"Load when it was written: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.",
        "",
        f"Written by `python -m bench.delivery` on {datetime.now(UTC):%Y-%m-%d}: one worker, {connections} connections, a relay",
        "that takes everything at once; each message claimed, written, offered, settled, with its timeline.",
        "",
        "| " + " | ".join(table[0]) + " |",
        "|" + "---|" * len(table[0]),
        *("| " + " | ".join(map(str, row.values())) + " |" for row in table),
        "",
        "How the next batch is found with the larger number pending:",
        "",
    ]
    for measured in found:
        lines += [f"{measured.database}:", "", "```", measured.plan, "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
