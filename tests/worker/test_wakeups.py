"""A worker that waits is woken by what others commit, however rarely it asks by itself, and stops
on a signal.
"""

import io
import os
import signal
import sys
import threading
import time
from contextlib import closing
from types import FrameType
from typing import Any

import pytest

from frontdesk.access.model import Scope
from frontdesk.config import Config
from frontdesk.db import Database, notifications, open_database
from frontdesk.db.notifications import WorkListener
from frontdesk.installation import run_options
from frontdesk.log_output import LogOutput
from frontdesk.worker.background import SHORTEST_WAIT_SECONDS, FileLoader, Wakeup
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from frontdesk.worker.webhooks import WebhookSender
from tests.conftest import Api
from tests.events.receiver import receiving
from tests.factories import NOW, Customer, make_customer, member_body, second_token
from tests.files.loading import csv_of, row
from tests.mail.memory import MemoryMailer
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import Databases
from tests.worker.conftest import Post

NEVER = 3600.0


@pytest.fixture
def base_address() -> str:
    """On this machine, as the receiver of webhooks is."""
    return "http://127.0.0.1:8000"


def test_an_invitation_wakes_a_worker_that_waits(post: Post, api: Api) -> None:
    """It asks by itself once an hour."""
    address = f"/v2/plans/{post.customer.plan_ids[0]}/eligibility"
    worker = post.worker(idle_seconds=NEVER)
    thread = threading.Thread(target=worker.run)
    with WorkListener(post.db.engine, worker.wake):
        thread.start()
        try:
            for number in range(3):
                assert (
                    api.post(address, member_body(number, invite_immediately=True)).status_code
                    == 201
                )
                wait_until(lambda: post.states() == ["sent"] * (number + 1), "the mail")  # noqa: B023
        finally:
            worker.stop()
            thread.join()


def test_files_wake_a_worker_that_waits_and_a_bad_one_holds_up_nobody(
    api: Api, config: Config, db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two wait when it starts."""
    monkeypatch.setattr(FileLoader, "poll_seconds", NEVER)
    address = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
    kind = {"Content-Type": "text/csv"}

    def upload(content: bytes) -> str:
        taken = api.request("POST", address, content=content, headers=kind)
        return str(taken.headers["Location"]).removeprefix("https://api.example.com")

    def state(path: str) -> object:
        return api.get(path).json()["data"]["state"]

    paths = [upload(content) for content in (b"no header\n", csv_of([row(1)]))]
    loader = FileLoader(db, run_options(config), clock=lambda: NOW)
    with loader, WorkListener(db.engine, loader.wake):
        wait_until(
            lambda: [state(path) for path in paths] == ["failed", "done"], "those that waited"
        )
        for number in (2, 3):
            path = upload(csv_of([row(number)]))
            wait_until(lambda: state(path) == "done", "the file")  # noqa: B023 - used at once


def test_a_member_wakes_a_sender_of_webhooks_that_waits(
    api: Api, config: Config, db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WebhookSender, "poll_seconds", NEVER)
    manager = api.as_(second_token(db, customer.account_id, Scope.WEBHOOKS_MANAGE))
    sender = WebhookSender(config, db)
    with receiving() as receiver, sender, WorkListener(db.engine, sender.wake):
        assert manager.post("/v2/webhook-endpoints", {"url": receiver.url}).status_code == 201
        receiver.wait_for(1)  # the test of its address
        wait_until(lambda: not sender._running, "the end of the turn")
        time.sleep(2 * SHORTEST_WAIT_SECONDS)
        for number in range(3):
            api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(number))
            receiver.wait_for(number + 2)
            wait_until(lambda: not sender._running, "the end of the turn")
            time.sleep(2 * SHORTEST_WAIT_SECONDS)  # then it has looked again, and waits


def test_a_listener_is_woken_before_a_close_and_after_a_cut_connection(
    db: Database, postgres: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "RETRY_SECONDS", 0.05)
    woken = threading.Semaphore(0)
    with WorkListener(db.engine, woken.release):
        assert woken.acquire(timeout=PATIENCE_SECONDS)
        if not db.is_sqlite:  # a file cuts nobody off
            postgres.kill_backends(str(db.engine.url.database))
            # what came meanwhile may be lost, so it looks
            assert woken.acquire(timeout=PATIENCE_SECONDS)
        with closing(open_database(db.url)) as other:
            make_customer(other)
            other.announce_work()
        assert woken.acquire(timeout=PATIENCE_SECONDS)


def test_a_wakeup_before_the_wait_ends_it_and_many_end_one() -> None:
    waits = Wakeup()
    for _ in range(1000):
        waits.set()
    assert waits._calls.qsize() == 1
    waits.wait(NEVER)


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
    with FileLoader(db, run_options(config)):
        for _ in range(3):
            assert steps.acquire(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - started >= 2 * SHORTEST_WAIT_SECONDS


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_signal_at_any_line_of_an_idle_worker_stops_it(
    config: Config, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeliveryWorker, "step", lambda _worker: False)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(60)  # ends a test that hangs
    for moment in range(1, 80):
        options = WorkerOptions(idle_seconds=0.0, log=LogOutput(io.StringIO()))
        worker = DeliveryWorker(config, db, MemoryMailer(), options)
        lines = 0

        def trace(_frame: FrameType, event: str, _argument: Any, moment: int = moment) -> Any:
            nonlocal lines
            lines += event == "line"
            if lines == moment and event == "line":
                os.kill(os.getpid(), signal.SIGUSR1)
            return trace

        before = signal.signal(signal.SIGUSR1, lambda *_, worker=worker: worker.stop())
        tracer = sys.gettrace()
        sys.settrace(trace)
        try:
            worker.run()
        finally:
            sys.settrace(tracer)
            signal.signal(signal.SIGUSR1, before)
        assert lines >= moment
    signal.alarm(0)
