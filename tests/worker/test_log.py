"""The worker's log: how each delivery and each file ended, and when the relay was lost and came
back; ids and codes only.
"""

import io
import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.invitations import save_worker_status
from frontdesk.invitations.model import WorkerStatus
from frontdesk.invitations.tables import invitations
from frontdesk.log_output import LogOutput
from frontdesk.mail.model import AnswerLost, RelayRefused
from tests.files.loading import Desk, csv_of, row
from tests.mail.memory import failing
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.worker.conftest import Post

AWAY = RelayRefused("connect", permanent=False, cause="ConnectionRefusedError")
WORDS = "5.1.1 <robin.1@example.com> unknown here"


def lines(text: io.StringIO, *names: str) -> list[Any]:
    """The lines by these values, without ids and times."""
    assert "example.com" not in text.getvalue()
    return [tuple(map(json.loads(line).get, names)) for line in text.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("step", "error", "line"),
    [
        ("offer", None, ("info", "sent", "accepted", 250, None, 1)),
        ("offer", RelayRefused("recipient", permanent=True, code=550, words=WORDS),
         ("warning", "failed", "refused", 550, "5.1.1", 1)),
        ("finish", RelayRefused("content", permanent=False, code=451, words="4.7.1x robin.1@example.com"),
         ("warning", "deferred", "refused_for_now", 451, None, 1)),
        ("finish", AnswerLost(), ("warning", "ambiguous", "answer_lost", None, None, 1)),
    ],
)  # fmt: skip
def test_a_delivery_is_logged_with_the_codes_and_without_the_words(
    post: Post, step: str, error: Exception | None, line: tuple[Any, ...]
) -> None:
    post.enrol()
    post.worker(fault=failing(step, error) if error else None).turn()
    names = ("level", "result", "reason", "code", "enhanced_code", "attempt")
    assert lines(post.log, *names) == [line]
    assert lines(post.log, "event", "invitation_id") == [("delivery", post.row()["id"])]


def test_the_last_attempt_fails_and_a_mail_that_another_worker_lost_is_logged(post: Post) -> None:
    post.enrol()
    for_now = failing("offer", RelayRefused("recipient", permanent=False, code=451))
    worker = post.worker(fault=for_now, max_attempts=2)
    for _ in range(2):
        worker.turn()
        post.clock.advance(100)
    with post.db.write() as tx:
        tx.execute(invitations.update().values(state="offered", due_at=post.clock()))
    worker.turn()
    assert lines(post.log, "result", "reason", "attempt") == [
        ("deferred", "refused_for_now", 1),
        ("failed", "too_many_attempts", 2),
        ("ambiguous", "lease_lapsed", 3),
    ]


def test_the_relay_is_told_of_once_when_it_is_lost_and_once_when_it_is_back(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.worker.breaker.FIRST_PAUSE_SECONDS", 0.0)
    post.enrol()
    worker = post.worker(connections=1, fault=failing("offer", AWAY))
    for _ in range(3):
        assert worker.turn() == 1
        post.clock.advance(100)
    post.mailer.fault = None
    assert worker.turn() == 1
    told = lines(post.log, "event", "level", "stage", "cause", "result")
    assert told == [
        ("relay_down", "error", "connect", "ConnectionRefusedError", None),
        ("relay_back", "info", None, None, None),
        ("delivery", "info", None, None, "sent"),
    ]


def test_a_relay_that_comes_back_after_a_restart_of_the_worker_is_logged(post: Post) -> None:
    with post.db.write() as tx:
        save_worker_status(tx, WorkerStatus(relay_up=False), now=post.clock())
    post.enrol()
    worker = post.worker()
    running = threading.Thread(target=worker.run)
    running.start()
    wait_until(lambda: post.states() == ["sent"], "the delivery")
    worker.stop()
    running.join(PATIENCE_SECONDS)
    assert lines(post.log, "event", "seconds") == [("relay_back", None), ("delivery", None)]


def test_files_are_logged_when_they_start_end_and_are_held(post: Post) -> None:
    desk = Desk(post.db, post.customer, post.clock)
    log = io.StringIO()
    desk.options = replace(desk.options, tell=LogOutput(log).write)
    all_of_them = csv_of(row(number, email=f"e{number}@example.com") for number in range(41))
    files = [desk.load(all_of_them, file_name="robin@example.com.csv")]
    files += [desk.load(csv_of([row(0)]), full=True), desk.load(b"example.com")]
    account = post.customer.account_id
    told = lines(log, "event", "level", "file_id", "account_id", "rows", "code")
    assert told == [
        ("file_started", "info", files[0].id, account, 0, None),
        ("file_done", "info", files[0].id, account, 41, None),
        ("file_started", "info", files[1].id, account, 0, None),
        ("file_held", "warning", files[1].id, account, 0, "too_many_lose_access"),
        ("file_started", "info", files[2].id, account, 0, None),
        ("file_failed", "warning", files[2].id, account, 0, "no_header"),
    ]
