"""A relay that is away or slow: nothing is lost, nothing counts against a message; and the figures
that show it.
"""

import json
import threading
from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from frontdesk.db import Database, Tx
from frontdesk.mail.model import MailMessage, RelayRefused
from frontdesk.web.stored_metrics import StoredMetrics, delivery_metrics
from tests.factories import NOW
from tests.mail.memory import failing
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.worker.conftest import Post


def test_a_relay_that_is_down_for_a_day_costs_no_attempts(post: Post) -> None:
    """It is left alone for a while, then asked with one message."""
    post.enrol(20)
    asked: list[str] = []

    def refuse(step: str, message: MailMessage) -> None:
        asked.append(message.recipient)
        raise RelayRefused("greeting", permanent=False, code=554)

    for _ in range(24):
        worker = post.worker(connections=1, fault=refuse)
        assert worker.turn() > 0
        assert worker.turn() == 0  # it pauses
        post.clock.advance(3600)
    assert len(asked) < 24 * 20
    assert {(row["state"], row["attempts"]) for row in post.rows()} == {("pending", 0)}
    assert '"event": "relay_down"' in post.log.getvalue()
    assert "example.com" not in post.log.getvalue()
    post.mailer.fault = None
    worker = post.worker(connections=4)
    while worker.turn():
        pass
    assert (post.states(), len(post.mailer.messages)) == (["sent"] * 20, 20)


@pytest.mark.parametrize("code", [530, 534, 535, 538])
def test_a_relay_that_wants_a_login_fails_no_invitation(post: Post, code: int) -> None:
    """A password that was lost or changed is no fault of a message: none may fail for good because
    of it.
    """
    post.enrol(3)
    words = "5.7.0 <robin.1@example.com> may not"
    refusal = RelayRefused("sender", permanent=True, code=code, words=words)
    post.worker(connections=1, fault=failing("offer", refusal)).turn()
    assert {(row["state"], row["attempts"]) for row in post.rows()} == {("pending", 0)}
    [told, *_] = [json.loads(line) for line in post.log.getvalue().splitlines()]
    assert (told["event"], told["stage"], told["code"]) == ("relay_down", "sender", code)
    assert "robin" not in post.log.getvalue()
    assert {row["relay_words"] for row in post.rows()} - {None} == {words}


@pytest.mark.parametrize("trusted", [False, True])
def test_a_login_that_one_recipient_needs_does_not_hold_up_the_others(
    post: Post, *, trusted: bool
) -> None:
    """It is the first in line, at once, and on connections that have taken nothing yet it would be
    so for ever.
    """
    post.batches()
    post.enrol()
    post.enrol(5, immediate=False)
    refusal = RelayRefused("recipient", permanent=True, code=530, trusted=trusted)
    pauses = 0
    for _ in range(3):  # each time a new worker, without the pause
        post.worker(
            connections=1, fault=failing("offer", refusal, recipient="robin.1@example.com")
        ).turn()
        pauses += "relay_down" in post.log.getvalue()
        post.clock.advance(1)
    assert post.states() == ["pending", *["sent"] * 5]
    assert (post.rows()[0]["attempts"], pauses) == ((1, 0) if trusted else (0, 3))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_worker_that_stops_does_not_wait_for_a_relay_that_says_nothing(post: Post) -> None:
    """Before the content has been offered nothing can have left: it goes back in line, and stays
    unsent.
    """
    post.enrol(2)
    offering = threading.Event()
    go_on = threading.Event()

    def silent(_step: str, _message: MailMessage) -> None:
        offering.set()
        go_on.wait(2 * PATIENCE_SECONDS)

    worker = post.worker(connections=1, fault=silent, stop_seconds=0.1)
    running = threading.Thread(target=worker.run)
    running.start()
    assert offering.wait(PATIENCE_SECONDS)
    worker.stop()
    running.join(PATIENCE_SECONDS)
    assert not running.is_alive()
    assert [(row["state"], row["reason"]) for row in post.rows()] == [
        ("pending", "not_offered")
    ] * 2
    go_on.set()
    worker.close()
    assert post.mailer.messages == []


def test_a_fault_of_ours_is_told_by_its_kind_and_harms_no_other_message(post: Post) -> None:
    post.enrol(3)
    post.worker(fault=failing("offer", KeyError("robin"), recipient="robin.2@example.com")).turn()
    assert sorted(post.states()) == ["pending", "sent", "sent"]
    assert '"error": "KeyError"' in post.log.getvalue()
    assert "robin" not in post.log.getvalue()


def test_a_relay_that_is_slower_than_a_lease_still_gets_its_message_and_only_once(
    post: Post,
) -> None:
    post.enrol()
    other = post.worker()
    worker = post.worker(lease_seconds=0.3)

    def slow(step: str, _message: MailMessage) -> None:
        if step == "offer":
            for _ in range(10):
                post.clock.advance(0.2)
                wait_until(
                    lambda: post.row()["due_at"] > post.clock() + timedelta(seconds=0.2),
                    "a new lease",
                )

    post.mailer.fault = slow
    worker.turn()
    assert post.states() == ["sent"]
    assert other.turn() == 0


def test_states_windows_and_the_oldest_are_told(post: Post) -> None:
    registry = CollectorRegistry()
    post.batches()
    post.enrol(2, immediate=False)
    post.worker().turn()
    post.enrol(2, immediate=False)  # older, and they wait for their hour
    post.clock.advance(30)
    post.enrol(3)
    post.clock.advance(30)
    registry.register(StoredMetrics(post.db, post.clock, delivery_metrics))
    lines = generate_latest(registry).decode().splitlines()
    states = {
        f'{{state="{state}"}} {n}.0' for state, n in (("sent", 2), ("pending", 5), ("ambiguous", 0))
    }
    used = f'_window_used{{account_id="{post.customer.account_id}"}} 2.0'
    expected = {*states, used, "_oldest_due_seconds 30.0", "_held 0.0"}
    assert {f"frontdesk_invitations{rest}" for rest in expected} <= set(lines)


def test_metrics_that_take_long_to_read_are_read_seldom(db: Database) -> None:
    # Each read asks at its start and at its end.
    moments = iter([0.0, 0.2, 19.0, 21.0, 21.01, 25.0, 27.0, 27.0])
    reads: list[Metric] = []

    def read(_tx: Tx, _now: datetime) -> list[Metric]:
        reads.append(GaugeMetricFamily("read", "A read.", value=len(reads)))
        return reads[-1:]

    metrics = StoredMetrics(
        db, lambda: NOW, read, fresh_seconds=5.0, monotonic=lambda: next(moments)
    )
    found = [next(metrics.collect()) for _ in range(5)]
    # The first took 0.2 s and lasts 20 s; the second took 0.01 s and lasts 5 s.
    assert [reads.index(one) for one in found] == [0, 0, 1, 1, 2]
