"""The shared snapshot: one and the same in all processes, computed once, and what is served when
the database is slow.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from frontdesk.db import Database, open_database
from frontdesk.errors import Unavailable
from frontdesk.plans.changes import create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.ingest import set_waiting
from frontdesk.queues.model import QueueSnapshot
from frontdesk.queues.tables import estimate_log, queue_snapshots
from tests.conftest import Api, SetClock
from tests.db.statements import statements
from tests.factories import NOW, Customer
from tests.patience import wait_until
from tests.queues.feed import JOINED, ON, Clinic, event, feed, make_clinic

TTL = 15


class Process:
    """What a serving process has of its own: a database and what it keeps in memory."""

    def __init__(self, db: Database, clock: SetClock, clinic: Clinic) -> None:
        self.db = db
        self.snapshots = QueueSnapshots(clock, TTL)
        self._clock = clock
        self._clinic = clinic

    def read(self) -> QueueSnapshot | None:
        return self.snapshots.read(self.db, self._clinic.account_id, self._clinic.plan_ids)

    def read_in_time(self) -> QueueSnapshot | None:
        """The first snapshot that has not expired."""
        wait_until(
            lambda: (one := self.read()) and one.in_time(self._clock()),
            "a snapshot that is renewed",
        )
        return self.read()

    def length(self) -> int | None:
        """Of the first plan's line, as it is read."""
        snapshot = self.read()
        return None if snapshot is None else snapshot.queues[self._clinic.plan_ids[0]].queue_length


@dataclass
class Practice:
    """A clinic with a doctor on duty, and the processes that serve its queues."""

    db: Database
    clock: SetClock
    clinic: Clinic
    stack: ExitStack

    def start(self) -> Process:
        db = self.stack.enter_context(closing(open_database(self.db.url)))
        process = Process(db, self.clock, self.clinic)
        self.stack.callback(process.snapshots.close)
        return process

    def joins(self, visit: str = "later") -> None:
        feed(
            self.db, event(f"join-{visit}", JOINED, 0, plan_id=self.clinic.plan_ids[0], visit=visit)
        )


@pytest.fixture
def practice(db: Database, clock: SetClock) -> Iterator[Practice]:
    clinic = make_clinic(db)
    feed(db, event("on", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1"))
    with ExitStack() as stack:
        yield Practice(db, clock, clinic, stack)


def test_a_thousand_readers_at_expiry_cause_one_renewal_that_is_logged_once(
    practice: Practice,
) -> None:
    process = practice.start()
    other = practice.start()
    practice.clock.advance(0.7)
    for renewal in (1, 2):
        with statements(process.db, "FROM duties") as renewals, ThreadPoolExecutor(50) as threads:
            answers = list(threads.map(lambda _: process.read_in_time(), range(1000)))
            assert len(renewals) == 1
        assert answers == [answers[0]] * 1000
        with statements(other.db, "FROM duties") as renewals:
            assert other.read() == answers[0]  # which another process has stored
        assert renewals == []
        with practice.db.read() as tx:
            logged = sorted(
                (row.plan_id, row.estimate_seconds) for row in tx.execute(estimate_log.select())
            )
            assert len(tx.execute(queue_snapshots.select()).all()) == 1
        assert logged == sorted([(plan_id, 0) for plan_id in practice.clinic.plan_ids] * renewal)
        # Values expire at the second that is told.
        first = answers[0]
        assert first is not None
        assert (first.expires_at.microsecond, first.ttl_seconds) == (0, TTL)
        practice.clock.advance(TTL - 0.71)
        assert process.read() is first
        practice.clock.advance(0.71)


def test_a_new_plan_is_added_and_the_others_keep_their_values_until_they_expire(
    practice: Practice,
) -> None:
    clinic = practice.clinic
    one = practice.start()
    other = practice.start()
    before = one.read()
    practice.joins()
    with practice.db.write() as tx:
        new = create_plan(tx, NewPlan(clinic.account_id, clinic.group_id, "new", "New"), now=NOW)
    practice.clock.advance(3)
    grown = other.snapshots.read(other.db, clinic.account_id, [*clinic.plan_ids, new.id])
    assert before is not None and grown is not None  # noqa: PT018 - for the types
    assert (grown.expires_at, grown.queues) == (
        before.expires_at,
        before.queues | {new.id: grown.queues[new.id]},
    )
    assert one.read() == before


@contextmanager
def locked_for_writers(db: Database) -> Iterator[None]:
    """Somebody else holds what a renewal would have to write."""
    lock = "LOCK TABLE queue_snapshots IN EXCLUSIVE MODE"
    with db.write() as tx:
        tx.exec_driver_sql(
            "UPDATE installation SET uniqueness = uniqueness" if db.is_sqlite else lock
        )
        yield


def test_the_last_snapshot_is_served_while_a_newer_one_cannot_be_stored(practice: Practice) -> None:
    one = practice.start()
    other = practice.start()
    processes = one, other
    with locked_for_writers(practice.db):
        alone = one.read()
        wait_until(lambda: not one.snapshots._renewals, "the end of the renewal")
    assert one.read() == alone
    wait_until(lambda: one.read() == other.read(), "the snapshot that another process has stored")
    before = [process.read() for process in processes]
    practice.joins()
    practice.clock.advance(TTL)
    with locked_for_writers(practice.db):
        assert [process.read() for process in processes] == before
    for process in processes:
        process.snapshots._retry_at.clear()
        wait_until(lambda: process.length() == 1, "a newer snapshot")  # noqa: B023 - used at once
    # One of a future that was set back is taken anew.
    with practice.db.write() as tx:
        set_waiting(tx, practice.clinic.plan_ids[0], "visit-1", waiting=True, now=NOW)
    practice.clock.advance(-3600)
    assert one.length() == 2


class Away(Database):
    """A database that can't be reached."""

    def ask(self, question: Callable[[Any], Any]) -> Any:
        raise Unavailable("The database can't be reached.")


def test_a_database_that_is_away_is_bridged_for_a_while_and_nothing_is_invented(
    practice: Practice,
) -> None:
    process = practice.start()
    before = process.read()
    process.db = Away(process.db.engine)
    practice.clock.advance(TTL * 5 - 1)
    assert process.read() == before
    practice.clock.advance(1)
    process.snapshots._retry_at.clear()
    assert process.read() is None
    assert process.read() is None  # at once: a failed renewal is not tried again for a moment


def test_a_plan_is_shown_without_queue_info_if_there_is_none(
    api: Api, app: Any, customer: Customer
) -> None:
    nothing = {"in_memory": lambda *_: None, "read": lambda *_: None, "close": app.queues.close}
    app.queues = type("Nothing", (), nothing)()
    for path in ("/v2/plans", f"/v2/plans/{customer.plan_ids[0]}"):
        answer = api.get(path)
        assert answer.status_code == 200
        assert "queue_info" not in answer.json()["data"][0]
