"""`python -m bench.immediate_delivery`: from the 201 until the relay takes an immediate invitation, quiet and beside a load.

A served installation with its worker; the file is uploaded, so the same worker loads it that delivers.
"""

import argparse
import http.client
import io
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.delivery import database
from frontdesk.clock import system_clock
from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import call
from tests.faults.server import Server
from tests.mail.relay import Relay
from tests.patience import wait_until

WANTED_SECONDS = 1.0  # p95
EVERY_SECONDS = 0.2
SETTLE_SECONDS = 5.0
FIRST_NUMBER = 10_000_000  # beyond those that the file names


@dataclass
class Watch:
    """When each invitation was acknowledged, and when the relay took it."""

    relay: Relay
    answered: dict[str, float] = field(default_factory=dict)
    taken: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            for address in self.relay.recipients[len(self.taken) :]:
                self.taken[address] = time.monotonic()
            time.sleep(0.002)

    def waits(self) -> list[float]:
        return sorted(max(0.0, self.taken[address] - at) for address, at in self.answered.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.immediate_delivery")
    parser.add_argument("--rows", type=int, default=50_000, help="of the file that is loaded meanwhile")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the quiet measurement")
    parser.add_argument("--only", choices=("PostgreSQL", "SQLite"))
    options = parser.parse_args()
    for name in ("PostgreSQL", "SQLite"):
        if options.only in (None, name):
            for rows in (0, options.rows):
                _show(name, rows, _measure(name, rows, options.seconds))


def _measure(name: str, rows: int, seconds: float) -> list[float]:
    with database(name) as (db, url), tempfile.TemporaryDirectory() as folder, Relay() as relay:
        customer = make_customer(db, now=system_clock())
        settings = {
            "FRONTDESK_ENVIRONMENT": "production",
            "FRONTDESK_SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
            "FRONTDESK_LINK_SECRET": "an invented secret for a benchmark",
        }
        with Server(url, Path(folder) / "log", settings=settings, with_worker=True) as server:
            watch = Watch(relay)
            _invite(server, customer, watch, FIRST_NUMBER)
            wait_until(lambda: bool(watch.taken), "the worker to be up")
            watch.answered.clear()
            file = _upload(server, customer, rows) if rows else None
            for number in _in_time():
                _invite(server, customer, watch, FIRST_NUMBER + number)
                if not _goes_on(server, customer, file, number * EVERY_SECONDS < seconds):
                    break
            time.sleep(SETTLE_SECONDS)
            server.stop()
        return watch.waits()


def _in_time() -> Iterator[int]:
    started, number = time.monotonic(), 0
    while True:
        number += 1
        yield number
        time.sleep(max(0.0, started + number * EVERY_SECONDS - time.monotonic()))


def _invite(server: Server, customer: Customer, watch: Watch, number: int) -> None:
    body = member_body(number, invite_immediately=True)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    status, _ = call(server.port, "POST", path, body, customer.token)
    assert status == 201
    watch.answered[body["email"]] = time.monotonic()


def _upload(server: Server, customer: Customer, rows: int) -> str:
    """The path of the file that is being loaded."""
    content = io.BytesIO()
    for _ in write_sample(sample_members(rows, seed=1), Format.CSV, content):
        pass
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {customer.token}", "Content-Type": "text/csv"}
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
    connection.request("POST", path, content.getvalue(), headers)
    answer = connection.getresponse()
    assert answer.status == 202
    return f"{path}/{json.loads(answer.read())['data']['id']}"


def _goes_on(server: Server, customer: Customer, file: str | None, is_time_left: bool) -> bool:
    """Quiet: for a while. Beside a load: until it has ended."""
    if file is None:
        return is_time_left
    _, answer = call(server.port, "GET", file, token=customer.token)
    return answer["data"]["state"] not in ("done", "held", "failed")


def _show(name: str, rows: int, waits: list[float]) -> None:
    beside = f"beside a load of {rows:,} rows" if rows else "quiet"
    p95 = waits[min(len(waits) - 1, int(len(waits) * 0.95))]
    print(
        f"{name}, {beside}: {len(waits)} invitations; taken after a median of {waits[len(waits) // 2]:.2f} s, p95 {p95:.2f} s "
        f"({'reached' if p95 <= WANTED_SECONDS else 'NOT reached'}: {WANTED_SECONDS} s), longest {waits[-1]:.2f} s; "
        f"load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
