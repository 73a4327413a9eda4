"""Webhooks reach a real server, signed and in order; failures wait, are told, and end; a slow
endpoint delays no other.
"""

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text
from standardwebhooks import WebhookVerificationError

from frontdesk import events
from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db import Database
from frontdesk.reach import EVERY
from frontdesk.text import wire_time
from frontdesk.worker import exchange, webhooks
from frontdesk.worker.webhooks import WebhookSender
from tests.conftest import SetClock
from tests.events.desk import PATH, Desk, numbers_of, replay, types_of
from tests.events.receiver import Delivered, Receiver, receiving, set_verified
from tests.factories import NOW, make_customer, member_body

HOUR = 3600


def set_to_now(clock: SetClock) -> None:
    """Receivers refuse what is signed with another time than theirs."""
    clock.now = clock.now.fromtimestamp(int(time.time()), clock.now.tzinfo)


def test_a_change_arrives_signed_and_holds_no_value(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url + "/hook?x=1")
    posted = desk.api.post(f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility", member_body(1))
    desk.turn()
    set_to_now(desk.clock)
    desk.happen(7)
    desk.turn()
    first, second = receiver.received
    assert first.path == "/hook?x=1"
    assert "Robin" not in first.body.decode()
    assert json.loads(first.body)["data"]["eligibility_id"] == posted.json()["id"]
    content = second.verify(endpoint["secret"])
    assert (content["type"], content["data"]["eligibility_id"]) == ("member.updated", 7)
    for wrong in (second._replace(body=b"{}"), second._replace(headers=first.headers)):
        with pytest.raises(WebhookVerificationError):
            wrong.verify(endpoint["secret"])
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"], "secret" in shown) == (None, 0, False)
    # as all times of the interface
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}Z", shown["delivered_at"])


def test_both_secrets_sign_for_a_day_after_a_rotation(desk: Desk, receiver: Receiver) -> None:
    set_to_now(desk.clock)
    endpoint = desk.create(receiver.url)
    rotated = desk.api.post(f"{PATH}/{endpoint['id']}/rotate").json()["data"]
    assert rotated["secret"] != endpoint["secret"]
    desk.happen(1)
    desk.turn()
    for each in (endpoint, rotated):
        assert receiver.received[0].verify(each["secret"])["type"] == "member.updated"
    desk.clock.advance(24 * HOUR)
    desk.happen(2)
    desk.turn()
    assert " " not in receiver.received[1].headers["webhook-signature"]


def test_after_two_rotations_each_older_secret_signs_for_its_day(
    desk: Desk, receiver: Receiver
) -> None:
    set_to_now(desk.clock)
    desk.clock.advance(-HOUR)
    first = desk.create(receiver.url)
    second = desk.api.post(f"{PATH}/{first['id']}/rotate").json()["data"]
    desk.clock.advance(HOUR)
    third = desk.api.post(f"{PATH}/{first['id']}/rotate").json()["data"]
    desk.happen(1)
    desk.turn()
    for each in (first, second, third):
        receiver.received[0].verify(each["secret"])
    for hours, count in ((23, 2), (1, 1)):
        desk.clock.advance(hours * HOUR)
        desk.happen(2)
        desk.turn()
        assert len(receiver.received[-1].headers["webhook-signature"].split()) == count


def test_a_secret_that_is_rotated_often_keeps_the_five_before(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)
    for _ in range(8):
        desk.api.post(f"{PATH}/{endpoint['id']}/rotate")
    desk.happen(1)
    desk.turn()
    assert len(receiver.received[0].headers["webhook-signature"].split()) == 6


def test_events_keep_their_order_while_one_fails_and_come_again_with_the_same_id(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2, 3)
    receiver.answer = lambda arrived: 500 if b'"eligibility_id":2' in arrived.body else 200
    desk.turn()
    desk.turn()  # not due
    assert numbers_of(receiver) == [1, 2]
    shown = desk.show(endpoint)
    assert (shown["attempts"], shown["last_error"]) == (1, "status_500")
    desk.clock.advance(0.3)
    desk.turn()
    assert numbers_of(receiver) == [1, 2, 2]
    assert desk.show(endpoint)["attempts"] == 2
    receiver.answer = lambda _: 200
    desk.clock.advance(1.3)
    desk.turn()
    assert numbers_of(receiver) == [1, 2, 2, 2, 3]
    assert len(set(receiver.ids)) == 3
    assert desk.show(endpoint)["failing_since"] is None


def test_an_event_is_given_up_after_three_days_and_the_endpoint_pauses_after_five(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2, 3)
    receiver.answer = lambda _: 503
    began = desk.clock()
    while desk.show(endpoint)["state"] == "active":
        desk.turn()
        desk.clock.advance(5 * HOUR)
    assert timedelta(days=5) <= desk.clock() - began < timedelta(days=6)
    assert set(numbers_of(receiver)) == {1, 2}
    assert desk.show(endpoint)["paused_reason"] == "failing"
    told = desk.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="webhook")))
    actions = [entry["action"] for entry in told]
    assert actions == ["webhook.paused", "webhook.event_given_up", "webhook.created"]
    before = len(receiver.received)
    desk.turn()
    assert len(receiver.received) == before
    receiver.answer = lambda _: 200
    assert (
        desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "active"}).json()["data"]["attempts"]
        == 0
    )
    desk.turn()
    assert numbers_of(receiver)[before:] == [2, 3]


def test_an_endpoint_that_is_gone_for_minutes_is_paused(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    receiver.answer = lambda _: 410
    for _ in range(8):
        desk.turn()
        shown = desk.show(endpoint)
        assert (shown["state"], shown["last_error"]) == ("active", "status_410")
        desk.clock.advance(30)
    desk.clock.advance(90)
    desk.turn()
    shown = desk.show(endpoint)
    assert (shown["state"], shown["paused_reason"]) == ("paused", "gone")
    assert (
        desk.api.post(f"{PATH}/{endpoint['id']}/test").json()["errors"][0]["code"] == "wrong_state"
    )


def test_one_410_among_other_failures_pauses_nothing(desk: Desk, receiver: Receiver) -> None:
    """A proxy answers so for a moment, while the program behind it is deployed."""
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    for status in (503, 503, 410, 503, 410, 200):
        receiver.answer = lambda _, status=status: status  # type: ignore[misc]
        desk.turn()
        assert desk.show(endpoint)["state"] == "active"
        desk.clock.advance(600)
    assert desk.show(endpoint)["last_error"] is None


def test_a_webhook_that_fails_once_comes_again_within_the_second(
    desk: Desk, receiver: Receiver
) -> None:
    """The events behind it wait no longer than that."""
    desk.create(receiver.url)
    desk.happen(1, 2)
    failures = iter([500])
    receiver.answer = lambda _: next(failures, 200)
    desk.turn()
    desk.clock.advance(0.26)
    desk.turn()
    assert numbers_of(receiver) == [1, 1, 2]


def test_a_worker_looks_again_when_a_retry_is_due(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not at its next poll only."""
    monkeypatch.setattr(WebhookSender, "poll_seconds", 3600.0)
    desk.create(receiver.url)
    desk.happen(1, 2)
    failures = iter([500])
    receiver.answer = lambda _: next(failures, 200)
    with WebhookSender(desk.config, desk.db):
        receiver.wait_for(3)
    assert numbers_of(receiver) == [1, 1, 2]


def test_a_redirect_is_not_followed(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    receiver.answer = lambda _: 307
    desk.turn()
    assert [each.path for each in receiver.received] == ["/"]
    assert desk.show(endpoint)["last_error"] == "status_307"


def test_an_endpoint_gets_the_types_that_it_asked_for_and_its_own_tests(
    desk: Desk, receiver: Receiver
) -> None:
    with receiving() as second:
        desk.create(receiver.url, event_types=["member.created"])
        tested = desk.create(second.url, event_types=["member.ended"])
        desk.happen(1)
        desk.api.post(f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility", member_body(1))
        assert desk.api.post(f"{PATH}/{tested['id']}/test").status_code == 202
        desk.turn()
        assert types_of(receiver) == ["member.created"]
        assert types_of(second) == ["webhook.test"]
    told = desk.api.get("/v2/events").json()["data"]
    assert [event["type"] for event in told] == ["member.updated", "member.created"]


def test_another_account_and_a_suspended_one_are_sent_nothing(
    desk: Desk, receiver: Receiver, db: Database
) -> None:
    stranger = make_customer(db, name="Stranger")
    desk.create(receiver.url)
    with db.write() as tx:
        events.begin_feed(tx, stranger.account_id, desk.clock())
    desk.happen(1, account_id=stranger.account_id)
    desk.turn()
    with db.write() as tx:
        set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=NOW)
    desk.happen(2)
    desk.turn()
    assert receiver.received == []


def test_a_suspension_ends_the_turn_under_way(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TURN_SECONDS", 0.0)

    def answer(_: Delivered) -> int:
        if len(receiver.received) == 5:
            with desk.db.write() as tx:
                set_state(tx, desk.customer.account_id, AccountState.SUSPENDED, now=NOW)
        return 200

    receiver.answer = answer
    desk.create(receiver.url)
    desk.happen(*range(100))
    with desk.sending() as sender:
        receiver.wait_for(webhooks.COMMIT_EVENTS)
        while sender._running:
            time.sleep(0.01)
        sender.step()
        assert not sender._running
    assert len(receiver.received) == webhooks.COMMIT_EVENTS


def test_an_endpoint_that_is_deleted_while_it_is_sent_to_gets_no_more(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)

    def answer(_: Delivered) -> int:
        if len(receiver.received) == 5:
            desk.api.request("DELETE", f"{PATH}/{endpoint['id']}")
        return 200

    receiver.answer = answer
    desk.happen(*range(60))
    desk.turn()
    desk.turn()
    assert len(receiver.received) <= webhooks.COMMIT_EVENTS
    assert desk.log.getvalue() == ""


def test_a_server_whose_clock_is_ahead_delays_no_webhook(desk: Desk, receiver: Receiver) -> None:
    desk.create(receiver.url)
    desk.happen(1)
    sender = WebhookSender(
        desk.config, desk.db, read_time=lambda _: desk.clock() - timedelta(hours=1)
    )
    sender.step()
    sender.close()
    assert numbers_of(receiver) == [1]


def test_a_slow_endpoint_delays_no_other(desk: Desk, receiver: Receiver) -> None:
    def slowly(_: Delivered) -> int:
        time.sleep(3)
        return 200

    with receiving() as slow:
        slow.answer = slowly
        desk.create(slow.url)
        desk.create(receiver.url)
        desk.happen(*range(100))
        with desk.sending():
            receiver.wait_for(100)
            assert len(slow.received) <= 1
    assert numbers_of(receiver) == [*range(100)]


def test_slow_endpoints_leave_threads_to_others(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("THREADS", 2), ("MOST_SLOW", 1), ("SLOW_SECONDS", 0.05)):
        monkeypatch.setattr(webhooks, name, value)
    answers = threading.Event()

    def slowly(_: Delivered) -> int:
        time.sleep(0.1)
        answers.wait(8)
        return 200

    with receiving() as slow, desk.sending() as sender:
        slow.answer = slowly
        answers.set()
        made = [desk.create(slow.url) for _ in range(2)]
        desk.happen(0)
        slow.wait_for(2)
        while len(sender._slow) < 2:
            time.sleep(0.01)
        for endpoint in made:
            desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "paused"})
        desk.clock.advance(1)
        desk.create(receiver.url)
        desk.happen(1)
        receiver.wait_for(1)
        answers.clear()
        for endpoint in made:  # their last turns were before the other's
            desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "active"})
        slow.wait_for(3)
        desk.happen(*range(2, 60))
        receiver.wait_for(59, seconds=6)
        assert len(slow.received) == 3
        answers.set()


def test_an_endless_answer_ends(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    receiver.answer = lambda _: b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"z" * 900 + b"\r\n") * 90
    desk.turn()
    assert desk.show(endpoint)["last_error"] == "answer_too_large"
    receiver.answer = lambda _: b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 200_000  # only its head matters
    desk.clock.advance(10)
    desk.turn()
    assert desk.show(endpoint)["last_error"] is None


def test_a_dripping_answer_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.5)

    def drip(server: socket.socket) -> None:
        connected, _ = server.accept()
        with connected:
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 200:
                try:
                    connected.sendall(bytes([byte]))
                except OSError:
                    return
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as thread:
        endpoint = desk.create(f"http://127.0.0.1:{server.getsockname()[1]}")
        dripping = thread.submit(drip, server)
        desk.happen(1)
        desk.turn()
        assert desk.show(endpoint)["last_error"] == "timeout"
        dripping.result()


def test_two_workers_share_the_endpoints(desk: Desk, receiver: Receiver) -> None:
    desk.create(receiver.url)
    desk.happen(*range(150))
    with desk.sending(), desk.sending():
        receiver.wait_for(150)
    assert numbers_of(receiver) == [*range(150)]


def test_a_worker_leaves_an_endpoint_that_was_changed_meanwhile(
    desk: Desk, receiver: Receiver
) -> None:
    with receiving() as second:
        endpoint = desk.create(second.url)

        def move(_: Delivered) -> int:
            if len(second.received) == 1:
                desk.api.patch(f"{PATH}/{endpoint['id']}", {"url": receiver.url})
                set_verified(desk.db, endpoint["id"])
            return 200

        second.answer = move
        desk.happen(*range(50))
        desk.turn()
        assert len(second.received) <= webhooks.COMMIT_EVENTS
        for _ in range(3):
            desk.turn()
    assert numbers_of(receiver) == [*range(50)]  # some again: their place was not stored
    assert receiver.ids[: len(second.ids)] == second.ids


def test_one_event_is_sent_again_with_its_id_behind_those_that_wait(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url, event_types=["member.updated"])
    desk.api.post(f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility", member_body(1))
    desk.happen(1, 2)
    desk.turn()
    created, first, _ = desk.api.get("/v2/events").json()["data"]
    desk.clock.advance(60)
    desk.happen(3)
    for event in (first, created):  # the endpoint does not ask for the second's type
        assert replay(desk, endpoint, event_id=event["id"]).status_code == 202
    desk.turn()
    assert receiver.ids[3:] == [first["id"], created["id"]]
    assert receiver.received[3].body == receiver.received[0].body
    assert types_of(receiver) == ["member.updated"] * 4 + ["member.created"]
    assert len(desk.api.get("/v2/events").json()["data"]) == 4  # no replay is in the feed
    told = desk.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="webhook.replayed")))
    assert [entry["detail"]["event_id"] for entry in told] == [created["id"], first["id"]]


def test_all_events_since_a_time_are_sent_again_in_their_order(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    desk.clock.advance(60)
    desk.happen(2, 3)
    desk.turn()
    # of JavaScript
    since = desk.api.get("/v2/events").json()["data"][1]["timestamp"].replace("Z", ".000Z")
    receiver.answer = lambda _: 500
    desk.clock.advance(60)
    desk.happen(4)
    desk.turn()
    assert replay(desk, endpoint, since=since).json()["data"]["attempts"] == 0  # it is due at once
    receiver.answer = lambda _: 200
    desk.turn()
    assert numbers_of(receiver) == [1, 2, 3, 4, 2, 3, 4]
    assert receiver.ids[4:] == receiver.ids[1:4]
    desk.clock.advance(60)
    desk.happen(5)
    # Passes over no event that waits.
    for later in ("2027-01-01T00:00:00Z", wire_time(desk.clock())):
        assert replay(desk, endpoint, since=later).status_code == 202
    desk.turn()
    assert numbers_of(receiver)[7:] == [5]
    assert replay(desk, endpoint, since="2020-01-01T00:00:00Z").status_code == 202
    desk.turn()
    assert numbers_of(receiver)[8:] == [1, 2, 3, 4, 5]


def test_a_paused_endpoint_gets_its_replay_when_it_is_active(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "paused"})
    assert replay(desk, endpoint, since="2026-01-01T00:00:00Z").json()["data"]["state"] == "paused"
    desk.turn()
    assert numbers_of(receiver) == [1, 2]
    desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "active"})
    desk.turn()
    assert numbers_of(receiver) == [1, 2, 1, 2]


def test_a_replay_begins_after_the_turn_of_a_worker_that_has_the_endpoint(
    desk: Desk, receiver: Receiver
) -> None:
    """The worker's place is void, and no other one sends beside it."""
    endpoint = desk.create(receiver.url)
    others: list[int] = []

    def answer(_: Delivered) -> int:
        if len(receiver.received) == 15:
            assert replay(desk, endpoint, since="2026-01-01T00:00:00Z").status_code == 202
            desk.turn()  # of another worker
            others.append(len(receiver.received))
        return 200

    receiver.answer = answer
    desk.happen(*range(60))
    desk.turn()
    assert others == [15]
    before = len(receiver.received)
    assert before <= webhooks.COMMIT_EVENTS
    for _ in range(3):
        desk.turn()
    assert numbers_of(receiver)[before:] == [*range(60)]


def test_a_replay_of_what_is_not_kept_is_refused(
    desk: Desk, receiver: Receiver, db: Database
) -> None:
    """An event of another account, one before those that are kept, and a time before them."""
    stranger = make_customer(db, name="Stranger")
    with db.write() as tx:
        events.begin_feed(tx, stranger.account_id, desk.clock())
    endpoint = desk.create(receiver.url)
    desk.happen(1, account_id=stranger.account_id)
    desk.happen(2, 3)
    rows = db.ask(lambda tx: tx.execute(text("SELECT xid, id FROM events ORDER BY id")).all())
    theirs, first, _ = (f"evt_{xid}_{id_}" for xid, id_ in rows)
    with db.write() as tx:
        tx.execute(text("DELETE FROM events WHERE id = :id"), {"id": rows[1].id})
    desk.clock.advance(60 * 24 * HOUR)
    long_ago = wire_time(desk.clock() - timedelta(days=31))
    for asked, code in (
        ({"event_id": theirs}, ("cursor_too_old", "cursor_unknown")),
        ({"event_id": first}, ("cursor_too_old",)),
        ({"event_id": "evt_0_999999999999"}, ("cursor_too_old", "cursor_unknown")),
        ({"since": long_ago}, ("cursor_too_old",)),
    ):
        answer = replay(desk, endpoint, **asked)
        [fault] = answer.json()["errors"]
        assert (answer.status_code, fault["field"]) == (410, next(iter(asked)))
        assert fault["code"] in code, asked
    assert replay(desk, endpoint, since=wire_time(desk.clock())).status_code == 202


def test_a_replay_names_one_event_of_the_account_or_a_time(
    desk: Desk, receiver: Receiver, db: Database
) -> None:
    stranger = make_customer(db, name="Stranger")
    with db.write() as tx:
        events.begin_feed(tx, stranger.account_id, desk.clock())
    endpoint = desk.create(receiver.url)
    for asked, faults in (
        ({}, {"event_id": "required"}),
        ({"event_id": "evt_1_1", "since": "2026-11-20T12:00:00Z"}, {"event_id": "required"}),
        ({"event_id": "evt_1"}, {"event_id": "not_allowed"}),
        ({"event_id": 7}, {"event_id": "wrong_type"}),
        ({"event_id": None, "since": []}, {"event_id": "wrong_type", "since": "wrong_type"}),
        ({"since": "2026-02-30T00:00:00Z"}, {"since": "not_allowed"}),
        ({"since": "2026-11-20"}, {"since": "not_allowed"}),
        ({"since": "2026-11-20T12:00:00+02:00"}, {"since": "not_allowed"}),
    ):
        answer = replay(desk, endpoint, **asked)
        assert answer.status_code == 422, asked
        assert {fault["field"]: fault["code"] for fault in answer.json()["errors"]} == faults
    desk.turn()
    assert receiver.received == []
