"""An address is sent events only after it has answered a test, and no receiver is sent more than it
can be expected to take.
"""

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.config import read_config
from frontdesk.events import delivery
from frontdesk.events.model import DueEndpoint
from frontdesk.events.target import host_of, parse_target
from frontdesk.reach import EVERY
from frontdesk.worker import webhooks
from frontdesk.worker.exchange import WebhookConnection
from frontdesk.worker.pacing import MOST_RECEIVERS, WEBHOOKS_PER_SECOND, ReceiverPaces
from tests.events.desk import PATH, Desk, replay, types_of
from tests.events.receiver import Receiver, receiving

DAY = 24 * 3600


def patch(desk: Desk, endpoint: Any, **values: Any) -> Any:
    answer = desk.api.patch(f"{PATH}/{endpoint['id']}", values)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def actions_of(desk: Desk) -> list[str]:
    entries = desk.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="webhook")))
    return [entry["action"] for entry in reversed(entries)]


def test_a_new_endpoint_answers_a_test_and_then_gets_all_events_since_its_creation(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)
    assert (endpoint["state"], endpoint["paused_reason"]) == ("unverified", None)
    desk.happen(1, 2)
    receiver.answer = lambda _: 500
    desk.turn()
    assert types_of(receiver) == ["webhook.test"]
    shown = desk.show(endpoint)
    assert (shown["state"], shown["attempts"], shown["last_error"]) == (
        "unverified",
        1,
        "status_500",
    )
    desk.turn()  # too early
    desk.happen(3)
    receiver.answer = lambda _: 204
    desk.clock.advance(10)
    desk.turn()
    desk.turn()
    assert types_of(receiver) == ["webhook.test"] * 2 + ["member.updated"] * 3
    assert receiver.ids[0] == receiver.ids[1]
    assert receiver.received[0].body == receiver.received[1].body
    shown = desk.show(endpoint)
    assert (shown["state"], shown["attempts"], shown["last_error"]) == ("active", 0, None)
    assert actions_of(desk) == ["webhook.created", "webhook.verified"]


def test_the_test_of_an_address_is_signed_like_every_webhook(
    desk: Desk, receiver: Receiver
) -> None:
    desk.clock.now = desk.clock.now.now(desk.clock.now.tzinfo)
    endpoint = desk.create(receiver.url, is_verified=False)
    desk.turn()
    assert receiver.received[0].verify(endpoint["secret"])["type"] == "webhook.test"


def test_an_address_that_answers_no_test_is_paused_after_a_day_and_told_so(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)
    desk.happen(1)
    receiver.answer = lambda _: 404
    began = desk.clock()
    for _ in range(32):
        desk.turn()
        if desk.show(endpoint)["state"] != "unverified":
            break
        desk.clock.advance(3600)
    assert timedelta(days=1) <= desk.clock() - began < timedelta(days=1, hours=7)
    shown = desk.show(endpoint)
    assert (shown["state"], shown["paused_reason"], shown["last_error"]) == (
        "paused",
        "unverified",
        "status_404",
    )
    assert set(types_of(receiver)) == {"webhook.test"}
    assert len(receiver.received) < 20
    assert actions_of(desk) == ["webhook.created", "webhook.paused"]
    before = len(receiver.received)
    desk.turn()
    assert len(receiver.received) == before
    receiver.answer = lambda _: 204
    assert patch(desk, endpoint, state="active")["state"] == "unverified"
    desk.turn()
    desk.turn()
    assert types_of(receiver)[before:] == ["webhook.test", "member.updated"]
    assert desk.show(endpoint)["state"] == "active"


def test_another_address_is_tested_before_it_gets_what_has_waited(
    desk: Desk, receiver: Receiver
) -> None:
    with receiving() as second:
        endpoint = desk.create(receiver.url)
        desk.happen(1)
        desk.turn()
        second.answer = lambda _: 503
        moved = patch(desk, endpoint, url=second.url)
        assert (moved["state"], moved["last_error"]) == ("unverified", None)
        desk.happen(2)
        desk.turn()
        assert (len(receiver.received), types_of(second)) == (1, ["webhook.test"])
        second.answer = lambda _: 200
        desk.clock.advance(10)
        desk.turn()
        desk.turn()
        assert types_of(second) == ["webhook.test", "webhook.test", "member.updated"]


def test_a_pause_gets_round_no_test(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url, is_verified=False, state="paused")
    assert (endpoint["state"], endpoint["paused_reason"]) == ("paused", "asked")
    desk.happen(1)
    receiver.answer = lambda _: 404
    for asked, state in (("active", "unverified"), ("paused", "paused"), ("active", "unverified")):
        assert patch(desk, endpoint, state=asked)["state"] == state
        assert (
            patch(desk, endpoint, event_types=["member.updated"] if asked == "paused" else [])[
                "state"
            ]
            == state
        )
        desk.turn()
    assert types_of(receiver) == ["webhook.test"] * 2


def test_a_verified_endpoint_is_tested_once_only(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)
    desk.turn()
    for state in ("paused", "active"):
        assert patch(desk, endpoint, state=state)["state"] == state
    patch(desk, endpoint, url=receiver.url)  # as it is
    desk.happen(1)
    desk.turn()
    assert types_of(receiver) == ["webhook.test", "member.updated"]


def test_an_unverified_endpoint_can_be_tested_again_at_once_and_replays_wait(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)
    receiver.answer = lambda _: 500
    desk.turn()
    receiver.answer = lambda _: 200
    assert replay(desk, endpoint, since="2026-01-01T00:00:00Z").status_code == 202
    tested = desk.api.post(f"{PATH}/{endpoint['id']}/test")
    assert (tested.status_code, tested.json()["data"]["state"]) == (202, "unverified")
    desk.turn()
    assert types_of(receiver) == ["webhook.test"] * 2


def test_unverified_is_no_state_that_can_be_asked_for(desk: Desk) -> None:
    for method, path in (
        ("POST", PATH),
        ("PATCH", f"{PATH}/{desk.create('http://127.0.0.1:9/')['id']}"),
    ):
        answer = desk.api.request(
            method, path, json={"url": "http://127.0.0.1:9/", "state": "unverified"}
        )
        assert answer.status_code == 422
        assert [fault["field"] for fault in answer.json()["errors"]] == ["state"]


def test_an_address_that_was_changed_while_its_test_was_under_way_is_not_verified(
    desk: Desk, receiver: Receiver
) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)

    def move(_: object) -> int:
        patch(desk, endpoint, url="http://127.0.0.1:9/")
        return 200

    receiver.answer = move
    desk.turn()
    assert desk.show(endpoint)["state"] == "unverified"
    assert actions_of(desk) == ["webhook.created", "webhook.changed"]


@pytest.mark.parametrize(
    ("base_url", "environment", "allows"),
    [
        ("http://127.0.0.1:8000", "sandbox", True),
        ("http://localhost:8000/desk", "sandbox", True),
        ("http://[::1]:8000", "sandbox", True),
        ("https://sandbox.example.com", "sandbox", False),
        ("https://localhost.example.com", "sandbox", False),
    ],
)
def test_webhooks_reach_this_machine_only_while_the_service_is_for_this_machine(
    base_url: str, environment: str, allows: bool
) -> None:
    config = read_config({"FRONTDESK_BASE_URL": base_url, "FRONTDESK_ENVIRONMENT": environment})
    assert config.allows_loopback is allows


class TestHosted:
    """A sandbox that is on the internet."""

    @pytest.fixture
    def base_address(self) -> str:
        return "https://sandbox.example.com"

    def test_a_hosted_sandbox_sends_nothing_to_the_services_beside_it(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        for url in (
            receiver.url,
            "https://localhost:5432",
            "https://[::1]",
            "http://hooks.example.com",
        ):
            answer = desk.api.post(PATH, {"url": url})
            assert answer.status_code == 422, url
        endpoint = desk.create("https://hooks.example.com", is_verified=False)
        with desk.db.write() as tx:  # one that was stored while the base URL was this machine's
            tx.execute(text("UPDATE webhook_endpoints SET url = :url"), {"url": receiver.url})
        desk.turn()
        assert receiver.received == []
        told = desk.show(endpoint)["last_error"]
        assert desk.api.patch(f"{PATH}/{endpoint['id']}", {"state": "active"}).status_code == 200
        with desk.db.write() as tx:
            tx.execute(text("UPDATE webhook_endpoints SET url = 'http://127.0.0.1:1/'"))
        desk.turn()
        # it does not tell an open port from a closed one
        assert desk.show(endpoint)["last_error"] == told


class FakeTime:
    def __init__(self) -> None:
        self.now = 1000.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


def paces() -> tuple[FakeTime, ReceiverPaces]:
    fake = FakeTime()
    return fake, ReceiverPaces(clock=fake.read, sleep=fake.sleep)


def test_a_receiver_is_sent_so_many_webhooks_a_second_and_no_more() -> None:
    fake, spaced = paces()
    for _ in range(10 * WEBHOOKS_PER_SECOND):
        spaced.wait("hooks.example.com")
    assert 9.9 <= fake.now - 1000 <= 10.1
    before = fake.now
    spaced.wait("other.example.com")
    assert fake.now == before


def test_the_first_webhook_for_a_receiver_waits_for_nothing() -> None:
    fake, spaced = paces()
    spaced.wait("a")
    assert fake.now == 1000


def test_no_pause_between_webhooks_is_saved_up() -> None:
    fake, spaced = paces()
    spaced.wait("a")
    fake.now += 60
    for _ in range(WEBHOOKS_PER_SECOND):
        spaced.wait("a")
    assert fake.now - 1060 >= 0.99


def test_receivers_that_are_sent_nothing_are_forgotten() -> None:
    fake, spaced = paces()
    for number in range(3 * MOST_RECEIVERS):
        spaced.wait(f"host-{number}")
        fake.now += 0.01
    assert len(spaced._free_at) <= MOST_RECEIVERS


@pytest.mark.parametrize(
    "names",
    [("one.example", "one.example"), ("one.example", "two.example")],
    ids=["one name", "two names of one address"],
)
def test_endpoints_of_all_accounts_share_the_pace_of_a_receiver(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    fake, spaced = paces()
    targets = [parse_target(f"https://{name}", allows_loopback=False) for name in names]
    connections = [WebhookConnection(target, None, spaced) for target in targets]  # type: ignore[arg-type]

    def connect(connection: WebhookConnection, _deadline: float) -> Any:
        connection._address = "93.184.215.14"
        return object()

    monkeypatch.setattr(WebhookConnection, "_connect", connect)
    monkeypatch.setattr(WebhookConnection, "_attempt", lambda *_, **__: 204)
    monkeypatch.setattr("frontdesk.worker.exchange._has_bytes", lambda _: False)
    for _ in range(WEBHOOKS_PER_SECOND):
        for connection in connections:
            assert connection.post(b"{}", {}) == 204
    assert fake.now - 1000 >= 1.98


def test_endpoints_of_one_host_take_few_threads_and_let_others_go_first(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = [
        DueEndpoint(number, number, f"https://Busy.example:{number}/") for number in range(1, 11)
    ]
    due.append(DueEndpoint(11, 11, "https://other.example"))
    sender = desk.sending()
    chosen, passed_over = sender._choose(due)
    assert (chosen, passed_over) == ([1, 2, 3, 4, 11], [5, 6, 7, 8, 9, 10])
    sender._running = {each.id: each for each in due[:3]}
    assert sender._choose(due)[0] == [4, 11]
    sender.close()


def test_endpoints_of_one_account_take_few_threads_also_those_that_it_has_deleted(
    desk: Desk, receiver: Receiver
) -> None:
    """Under a name for each, as a wildcard in the DNS gives them."""
    due = [DueEndpoint(number, 1, f"https://n{number}.example/") for number in range(1, 11)]
    due.append(DueEndpoint(11, 2, "https://other.example"))
    sender = desk.sending()
    chosen, passed_over = sender._choose(due)
    assert (chosen, passed_over) == ([1, 2, 3, 4, 5, 6, 11], [7, 8, 9, 10])
    sender._running = {each.id: each for each in due[:6]}
    made_anew = [each._replace(id=each.id + 100) for each in due]
    assert sender._choose(made_anew)[0] == [111]
    sender.close()


def test_an_endpoint_that_is_passed_over_has_its_turn_later(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MOST_FOR_HOST", 1)
    for _ in range(3):
        desk.create(receiver.url)
    desk.happen(1)
    for count in (1, 2, 3):
        desk.clock.advance(1)
        desk.turn()
        assert len(receiver.received) == count


def test_names_of_hosts_have_one_spelling() -> None:
    for url in (
        "https://Hooks.Example.com/a",
        "https://hooks.example.com.:8443",
        "https://HOOKS.example.com?x",
    ):
        assert host_of(url) == "hooks.example.com"
    assert host_of("https://[::1") == ""


def test_the_test_of_an_address_says_what_it_is(desk: Desk, receiver: Receiver) -> None:
    endpoint = desk.create(receiver.url, is_verified=False)
    desk.turn()
    [arrived] = receiver.received
    content = json.loads(arrived.body)
    assert (content["type"], content["data"]) == ("webhook.test", {"request_id": None})
    assert arrived.headers["webhook-id"].startswith(f"test_{endpoint['id']}_")
    assert delivery.VERIFY_WITHIN.total_seconds() == DAY
