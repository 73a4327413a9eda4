"""How many records per second does a service take in batches, and how many of their webhooks does one worker send?

One caller sends batches of 1,000, first of new members, then of a change to each; then a worker sends the event of each record.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import closing

from rich.progress import Progress

from bench.harness import Bench, Option, Row, chosen, databases
from bench.load import drive, frontdesk
from frontdesk.config import read_config
from frontdesk.worker.webhooks import WebhookSender
from tests.events.receiver import receiving
from tests.factories import member_body

RECORDS = 1000  # of a batch


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    count = options.batches * RECORDS
    for name in chosen(options):
        task = progress.add_task(f"records, {name}", total=options.batches)
        with databases(name) as kind, kind.installation() as installation, receiving() as receiver:
            with frontdesk(installation) as service:
                asked = service.request("POST", "/v2/webhook-endpoints", json.dumps({"url": receiver.url}))
                drive(service.port, 1, [asked])
                half = count // 2
                records = [member_body(n % half) | {"city": f"City {n // half}"} for n in range(count)]
                batches = (records[first : first + RECORDS] for first in range(0, count, RECORDS))
                path = "/v2/plans/1/eligibility/batch"
                requests = [service.request("POST", path, json.dumps(batch)) for batch in batches]
                taken = drive(service.port, 1, progress.track(requests, task_id=task))
            config = read_config(
                {"FRONTDESK_DATABASE_URL": installation.url, "FRONTDESK_LINK_SECRET": "x" * 40}
            )
            with closing(WebhookSender(config, installation.db)) as sender:
                began = time.perf_counter()
                sender.step()
                receiver.wait_for(count, seconds=600)
                seconds = time.perf_counter() - began
        rates = {"records/s": count / taken.elapsed, "webhooks/s": count / seconds}
        yield {"database": name, "records": count} | {what: round(rate) for what, rate in rates.items()}


BENCH = Bench(__doc__, run, Option("batches", 20, 2, "of 1,000 records"))
