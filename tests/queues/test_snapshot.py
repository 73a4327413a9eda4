"""The shared snapshot: one and the same in all processes, computed once, and what is served when the database is slow."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import event as sqlalchemy_event

from frontdesk.db import Database, open_database
from frontdesk.errors import Unavailable
from frontdesk.plans.changes import create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.ingest import set_waiting
from frontdesk.queues.model import QueueSnapshot
from frontdesk.queues.tables import estimate_log, queue_snapshots
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer
from tests.patience import wait_until
from tests.queues.feed import JOINED, ON, Clinic, event, feed, make_clinic

TTL = 15


@dataclass
class Process:
    """What a serving process has of its own: a database and what it keeps in memory."""

    db: Database
    snapshots: QueueSnapshots

    def read(self, clinic: Clinic) -> QueueSnapshot | None:
        return self.snapshots.read(self.db, clinic.account_id, clinic.plan_ids)

    def read_in_time(self, clinic: Clinic, clock: SetClock) -> QueueSnapshot:
        """The first snapshot that has not expired."""
        found: list[QueueSnapshot | None] = []

        def renewed() -> bool:
            found.append(self.read(clinic))
            return found[-1] is not None and found[-1].in_time(clock())

        wait_until(renewed, "a snapshot that is renewed")
        assert found[-1] is not None
        return found[-1]


@pytest.fixture
def clinic(db: Database) -> Clinic:
    made = make_clinic(db)
    feed(db, event("on", ON, 0, provider_group_id=made.group_id, doctor="dr-1"))
    return made


@pytest.fixture
def start(database_url: str, clock: SetClock) -> Iterator[Callable[[], Process]]:
    """Makes processes, and ends them with the test."""
    started: list[Process] = []

    def make() -> Process:
        started.append(Process(open_database(database_url), QueueSnapshots(clock, TTL)))
        return started[-1]

    yield make
    for process in started:
        process.snapshots.close()
        process.db.close()


@contextmanager
def statements(db: Database, containing: str) -> Iterator[list[str]]:
    """The statements with these words that are sent while the block runs."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if containing in statement:
            sent.append(statement)

    sqlalchemy_event.listen(db.engine, "before_cursor_execute", note)
    yield sent
    sqlalchemy_event.remove(db.engine, "before_cursor_execute", note)


def joins(db: Database, clinic: Clinic, visit: str) -> None:
    feed(db, event(f"join-{visit}", JOINED, 0, plan_id=clinic.plan_ids[0], visit=visit))


def length(snapshot: QueueSnapshot | None, clinic: Clinic) -> int | None:
    return None if snapshot is None else snapshot.queues[clinic.plan_ids[0]].queue_length


def test_two_processes_that_renew_at_once_answer_alike_every_time(
    db: Database, clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    processes = [start(), start()]
    for process in processes:  # one that is slow to store its first snapshot serves what it has read
        process.read_in_time(clinic, clock)
    clock.advance(TTL)
    for number in range(15):
        barrier = threading.Barrier(3)

        def renew(process: Process, barrier: threading.Barrier = barrier) -> QueueSnapshot | None:
            barrier.wait()
            return process.read(clinic)

        def change(barrier: threading.Barrier = barrier, number: int = number) -> None:
            barrier.wait()
            joins(db, clinic, f"visit-{number}")

        with ThreadPoolExecutor(3) as threads:
            changing = threads.submit(change)
            first, second = threads.map(renew, processes)
            changing.result()
        # A reader that waits for a slow disk is served the last snapshot, which says that it has expired.
        shown = [one for one in (first, second) if one is not None and one.in_time(clock())]
        shown += [process.read_in_time(clinic, clock) for process in processes]
        assert shown == shown[:1] * len(shown)
        clock.advance(TTL)


def test_a_thousand_readers_at_expiry_cause_one_renewal(clinic: Clinic, start: Callable[[], Process]) -> None:
    process = start()
    with statements(process.db, "FROM duties") as renewals, ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: process.read(clinic), range(1000)))
        assert len(renewals) == 1
    assert answers == [answers[0]] * 1000
    assert length(answers[0], clinic) == 0


def test_a_new_plan_is_added_and_the_others_keep_their_values_until_they_expire(
    db: Database, clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    one, other = start(), start()
    before = one.read(clinic)
    joins(db, clinic, "later")
    with db.write() as tx:
        new = create_plan(tx, NewPlan(clinic.account_id, clinic.group_id, "new", "New"), now=NOW)
    clock.advance(3)
    grown = other.snapshots.read(other.db, clinic.account_id, [*clinic.plan_ids, new.id])
    assert before is not None
    assert grown is not None
    assert new.id in grown.queues
    assert (grown.expires_at, length(grown, clinic)) == (before.expires_at, 0)
    assert one.read(clinic) == before


def test_values_expire_at_the_second_that_is_told(
    clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    process = start()
    clock.advance(0.7)
    first = process.read(clinic)
    assert first is not None
    assert (first.expires_at.microsecond, first.ttl_seconds) == (0, TTL)
    clock.advance(14.29)
    assert process.read(clinic) is first
    clock.advance(0.01)
    assert process.read(clinic) is not first


@contextmanager
def locked_for_writers(db: Database) -> Iterator[None]:
    """Somebody else holds what a renewal would have to write."""
    with db.write() as tx:
        if db.is_sqlite:
            tx.exec_driver_sql("UPDATE installation SET uniqueness = uniqueness")
        else:
            tx.exec_driver_sql("LOCK TABLE queue_snapshots IN EXCLUSIVE MODE")
        yield


def test_a_process_that_could_not_store_its_values_soon_takes_those_that_another_has_stored(
    db: Database, clinic: Clinic, start: Callable[[], Process]
) -> None:
    one, other = start(), start()
    with locked_for_writers(db):
        alone = one.read(clinic)
        wait_until(lambda: not one.snapshots._renewals, "the end of the renewal")
    assert one.read(clinic) == alone
    joins(db, clinic, "later")
    stored = other.read(clinic)
    assert (length(alone, clinic), length(stored, clinic)) == (0, 1)
    wait_until(lambda: one.read(clinic) == stored, "the stored snapshot")


def test_the_last_snapshot_is_served_while_a_newer_one_cannot_be_stored(
    db: Database, clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    processes = [start(), start()]
    before = [process.read(clinic) for process in processes]
    joins(db, clinic, "later")
    clock.advance(TTL)
    with locked_for_writers(db):
        assert [process.read(clinic) for process in processes] == before
    for process in processes:
        process.snapshots._retry_at.clear()
        wait_until(lambda: length(process.read(clinic), clinic) == 1, "a newer snapshot")  # noqa: B023 - used at once


class Away(Database):
    """A database that can't be reached."""

    def ask(self, question: Callable[[Any], Any]) -> Any:
        raise Unavailable("The database can't be reached.")


def test_a_database_that_is_away_is_bridged_up_to_a_hard_limit_and_then_nothing_is_invented(
    clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    process = start()
    before = process.read(clinic)
    process.db = Away(process.db.engine)
    clock.advance(TTL * 5 - 1)
    assert process.read(clinic) == before
    clock.advance(1)
    process.snapshots._retry_at.clear()
    assert process.read(clinic) is None
    assert process.read(clinic) is None  # at once: a failed renewal is not tried again for a moment


def test_a_plan_is_shown_without_queue_info_rather_than_with_an_invented_one(
    api: Api, app: Any, customer: Customer
) -> None:
    nothing = {"in_memory": lambda *_: None, "read": lambda *_: None, "close": app.queues.close}
    app.queues = type("Nothing", (), nothing)()
    for path in ("/v2/plans", f"/v2/plans/{customer.plan_ids[0]}"):
        answer = api.get(path)
        assert answer.status_code == 200
        assert "queue_info" not in answer.json()["data"][0]


def test_each_estimate_that_is_given_is_logged_once_and_a_second_process_takes_it_from_the_first(
    db: Database, clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    one, other = start(), start()
    for _ in range(2):
        with statements(other.db, "FROM duties") as renewals:
            assert one.read(clinic) == other.read(clinic)
        assert renewals == []
        clock.advance(TTL)
    with db.read() as tx:
        logged = sorted((row.plan_id, row.estimate_seconds) for row in tx.execute(estimate_log.select()))
        assert len(tx.execute(queue_snapshots.select()).all()) == 1
    assert logged == sorted([(plan_id, 0) for plan_id in clinic.plan_ids] * 2)


def test_a_snapshot_of_a_future_that_was_set_back_is_taken_anew(
    db: Database, clinic: Clinic, clock: SetClock, start: Callable[[], Process]
) -> None:
    process = start()
    process.read(clinic)
    with db.write() as tx:
        set_waiting(tx, clinic.plan_ids[0], "visit-1", waiting=True, now=NOW)
    clock.advance(-3600)
    assert length(process.read(clinic), clinic) == 1
