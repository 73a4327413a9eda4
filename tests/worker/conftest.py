"""A worker on the test's database, with a memory mailer and a set clock; members are enrolled as a
customer would.
"""

import io
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from frontdesk import invitations
from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.invitations.hourly_window import HourlyWindows
from frontdesk.invitations.protocol import DeliveryContext
from frontdesk.log_output import LogOutput
from frontdesk.mail.model import Mailer
from frontdesk.reach import EVERY
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of
from tests.conftest import SetClock
from tests.factories import Customer, member_body
from tests.invitations.mails import enrol_members
from tests.mail.memory import FaultInjector, MemoryMailer


class Post:
    """Members enrolled, workers that deliver, and what then stands in the database."""

    def __init__(self, config: Config, db: Database, clock: SetClock, customer: Customer) -> None:
        self.config = config
        self.db = db
        self.clock = clock
        self.customer = customer
        self.mailer = MemoryMailer()
        self.log = io.StringIO()
        self._workers: list[DeliveryWorker] = []
        self._members = 0

    def worker(
        self,
        *,
        connections: int = 4,
        fault: FaultInjector | None = None,
        stop_seconds: float = 10.0,
        idle_seconds: float = 0.02,
        mailer: Mailer | None = None,
        **policy: Any,
    ) -> DeliveryWorker:
        """It delivers to the post's own mailer, or to another."""
        self.mailer.fault = fault or self.mailer.fault
        options = WorkerOptions(
            connections=connections,
            poll_seconds=0.02,
            idle_seconds=idle_seconds,
            stop_seconds=stop_seconds,
            context=DeliveryContext(
                replace(policy_of(self.config), **policy),
                HourlyWindows(self.clock_seconds),
                random.Random(1),
            ),
            read_time=lambda _tx: self.clock(),
            log=LogOutput(self.log),
        )
        worker = DeliveryWorker(self.config, self.db, mailer or self.mailer, options)
        self._workers.append(worker)
        return worker

    def requester(self) -> Requester:
        return Requester("cli:anna", "request", self.clock())

    def clock_seconds(self) -> float:
        return self.clock.now.timestamp()

    def enrol(
        self, count: int = 1, *, immediate: bool = True, plan: int | None = None, **fields: Any
    ) -> None:
        """New members with an invitation each; `fields` go into their records."""
        numbers = range(self._members + 1, self._members + count + 1)
        self._members += count
        bodies = [member_body(number, invite_immediately=immediate, **fields) for number in numbers]
        with self.db.write() as tx:
            enrol_members(tx, self.customer, bodies, now=self.clock(), plan=plan)

    def as_customer(self, customer: Customer) -> "Post":
        """The same post, for members of another account."""
        other = Post(self.config, self.db, self.clock, customer)
        other._members = 1_000_000
        return other

    def batches(self, **settings: Any) -> None:
        with self.db.write() as tx:
            invitations.set_deliverability(
                tx, self.customer.account_id, **({"enabled": True} | settings)
            )

    def states(self) -> list[str]:
        return [str(row["state"]) for row in self.rows()]

    def rows(self) -> list[dict[str, Any]]:
        with self.db.read() as tx:
            rows = invitations.list_invitations(tx, EVERY, state=None, limit=100_000)
        return [row._asdict() for row in sorted(rows)]

    def row(self) -> dict[str, Any]:
        [row] = self.rows()
        return row

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


@pytest.fixture
def post(config: Config, db: Database, clock: SetClock, customer: Customer) -> Iterator[Post]:
    made = Post(config, db, clock, customer)
    yield made
    made.close()
