"""A worker that waits is woken by what others commit, however rarely it asks by itself."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from frontdesk.config import Config
from frontdesk.db import Database, notifications, open_database
from frontdesk.db.notifications import WorkListener
from frontdesk.worker.background import SHORTEST_WAIT_SECONDS, FileLoader, Wakeup
from tests.conftest import Api
from tests.factories import make_customer, member_body
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import Databases
from tests.worker.conftest import Post

NEVER = 3600.0


@contextmanager
def waiting_worker(post: Post) -> Iterator[None]:
    """A worker that asks by itself once an hour."""
    worker = post.worker(idle_seconds=NEVER)
    thread = threading.Thread(target=worker.run)
    with WorkListener(post.db.engine, worker.wake):
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()


def test_an_invitation_wakes_a_worker_that_waits(post: Post, api: Api) -> None:
    address = f"/v2/plans/{post.customer.plan_ids[0]}/eligibility"
    with waiting_worker(post):
        for number in range(3):
            assert api.post(address, member_body(number, invite_immediately=True)).status_code == 201
            wait_until(lambda: post.states() == ["sent"] * (number + 1), "the mail")  # noqa: B023 - used at once


def test_who_listens_does_so_again_after_its_connection_was_cut(
    db: Database, postgres: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    if db.is_sqlite:
        return  # a file cuts nobody off
    monkeypatch.setattr(notifications, "RETRY_SECONDS", 0.05)
    woken = threading.Semaphore(0)
    with WorkListener(db.engine, woken.release):
        assert woken.acquire(timeout=PATIENCE_SECONDS)
        postgres.kill_backends(str(db.engine.url.database))
        assert woken.acquire(timeout=PATIENCE_SECONDS)  # what came meanwhile may be lost, so it looks
        other = open_database(db.url)
        other.announce_work()
        assert woken.acquire(timeout=PATIENCE_SECONDS)
        other.close()


def test_what_is_announced_before_the_database_is_closed_is_sent(db: Database) -> None:
    woken = threading.Semaphore(0)
    with WorkListener(db.engine, woken.release):
        assert woken.acquire(timeout=PATIENCE_SECONDS)
        other = open_database(db.url)
        make_customer(other)
        other.announce_work()
        other.close()
        assert woken.acquire(timeout=PATIENCE_SECONDS)


def test_a_wakeup_before_the_wait_ends_it_and_many_end_one() -> None:
    waits = Wakeup()
    for _ in range(1000):
        waits.set()
    assert waits._calls.qsize() == 1
    waits.wait(NEVER)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: waits.set())
    timer.start()
    waits.wait(NEVER)
    signal.signal(signal.SIGUSR1, before)


def test_a_task_that_is_woken_all_the_time_still_rests_and_loses_no_wakeup(
    config: Config, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileLoader, "poll_seconds", NEVER)
    steps = threading.Semaphore(0)

    def step(task: FileLoader) -> bool:
        steps.release()
        task.wake()  # as others do meanwhile
        return False

    monkeypatch.setattr(FileLoader, "step", step)
    started = time.monotonic()
    with FileLoader(config, db):
        for _ in range(3):
            assert steps.acquire(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - started >= 2 * SHORTEST_WAIT_SECONDS
