"""How many invitations, and how many webhooks, does one worker deliver per second, beside the
statements alone?

One worker with 128 connections claims, writes, offers and settles each message; the relay, in
memory, takes everything at once. Statements alone: the least that a delivery writes, by plain SQL.
Webhooks: to one endpoint, of a hundredth as many new members.
"""

import argparse
import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

from rich.progress import Progress

from bench.harness import Bench, Installation, Option, Row, chosen, databases
from bench.load import KNOWN, drive, frontdesk
from frontdesk import invitations
from frontdesk.config import Config, read_config
from frontdesk.db import Database
from frontdesk.log_output import LogOutput
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from frontdesk.worker.webhooks import WebhookSender
from tests.events.receiver import receiving
from tests.mail.memory import MemoryMailer
from tests.population import analyze, copy_members

BATCH = 100
CONNECTIONS = 128
FRESH = 50_000_000  # the first number of new members


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    for name in chosen(options):
        task = progress.add_task(f"delivering, {name}", total=options.messages)
        with databases(name) as kind, kind.installation() as installation:
            _queue(installation, options.messages)
            alone = _statements_alone(installation.db, options.messages)
            seconds, processor_seconds = _deliver(
                installation, options.messages, partial(progress.update, task)
            )
            webhooks = _send_webhooks(installation, options.messages // 100)
        yield {
            "database": name,
            "messages": options.messages,
            "delivered/s": round(options.messages / seconds),
            "statements alone/s": round(options.messages / alone),
            "times the statements": round(seconds / alone, 2),
            "worker µs": round(processor_seconds / options.messages * 1e6),
            "webhooks/s": round(webhooks),
        }


def allow_batches(db: Database, account: int) -> None:
    """Let batched invitations of the account go out as fast as they can."""
    with db.write() as tx:
        invitations.set_deliverability(
            tx,
            account,
            enabled=True,
            batch_size=1_000_000,
            batch_interval_seconds=1,
            hourly_limit=10_000_000,
        )


def _queue(installation: Installation, count: int) -> None:
    """Members with a batched invitation each."""
    allow_batches(installation.db, installation.customer.account_id)
    with frontdesk(installation) as service:
        service.prepare()
    with installation.db.write() as tx:
        tx.exec_driver_sql("DELETE FROM invitations")
    copy_members(installation.db, 1, numbers=range(KNOWN, KNOWN + count), invited=True)
    analyze(installation.db)


def _statements_alone(db: Database, count: int) -> float:
    """Seconds for the least that a delivery writes, in batches: a state claimed, a state settled, a
    row of the timeline.
    """
    with db.write() as tx:
        tx.exec_driver_sql("CREATE TABLE bench_invitations AS SELECT * FROM invitations")
        tx.exec_driver_sql("CREATE UNIQUE INDEX bench_ids ON bench_invitations (id)")
        tx.exec_driver_sql("CREATE TABLE bench_events (invitation_id bigint, state text)")
        [(first,)] = tx.exec_driver_sql("SELECT min(id) FROM bench_invitations").all()
    started = time.perf_counter()
    for start in range(first, first + count, BATCH):
        batch = f"WHERE id BETWEEN {start} AND {start + BATCH - 1}"
        with db.write() as tx:
            tx.exec_driver_sql(f"UPDATE bench_invitations SET state = 'sending' {batch}")
        with db.write() as tx:
            tx.exec_driver_sql(f"UPDATE bench_invitations SET state = 'sent' {batch}")
            tx.exec_driver_sql(
                f"INSERT INTO bench_events SELECT id, state FROM bench_invitations {batch}"
            )
    return time.perf_counter() - started


def _deliver(
    installation: Installation, messages: int, report: Callable[..., None]
) -> tuple[float, float]:
    """One worker delivers all of them; the seconds on the clock, and of its processor time."""
    relay = MemoryMailer(keep=False)
    log = LogOutput(io.StringIO())
    options = WorkerOptions(connections=CONNECTIONS, prefetch=8, log=log)
    worker = DeliveryWorker(_config(installation), installation.db, relay, options)
    started = time.perf_counter()
    cpu = time.process_time()
    while relay.accepted < messages:
        worker.step()
        report(completed=relay.accepted)
    worker.finish()
    taken = time.perf_counter() - started, time.process_time() - cpu
    with installation.db.read() as tx:
        assert tx.exec_driver_sql("SELECT DISTINCT state FROM invitations").all() == [("sent",)]
    return taken


def _send_webhooks(installation: Installation, count: int) -> float:
    """Webhooks per second of one worker, to one endpoint on this machine, about members that
    requests create.
    """
    with receiving() as receiver, frontdesk(installation) as service:
        asked = service.request("POST", "/v2/webhook-endpoints", json.dumps({"url": receiver.url}))
        drive(service.port, 1, [asked])
        drive(service.port, 16, [service.post(FRESH + number, "Sample") for number in range(count)])
        with closing(WebhookSender(_config(installation), installation.db)) as sender:
            began = time.perf_counter()
            sender.step()
            receiver.wait_for(count + 1, seconds=600)  # with the test of its address
            return count / (time.perf_counter() - began)


def _config(installation: Installation) -> Config:
    return read_config(
        {"FRONTDESK_DATABASE_URL": installation.url, "FRONTDESK_LINK_SECRET": "x" * 40}
    )


BENCH = Bench(__doc__, run, Option("messages", 100_000, 2_000, "to deliver"))
