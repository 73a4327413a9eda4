"""A relay that refuses message after message: the sender, or the installation, or one account. No
invitation is lost by it; one that is refused alone has failed.
"""

import json
from collections import Counter

import pytest

from frontdesk.config import parse_relay
from frontdesk.mail.model import MailMessage, RelayRefused
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.worker import breaker
from tests.factories import make_customer
from tests.mail.memory import FaultInjector, failing
from tests.mail.relay import Relay, one_fault
from tests.worker.conftest import Post

REFUSED_AT_ONCE = RelayRefused("content", permanent=True, code=554, words="5.7.1 Not verified")


def told(post: Post, event: str) -> list[dict[str, object]]:
    entries = [json.loads(line) for line in post.log.getvalue().splitlines()]
    return [entry for entry in entries if entry["event"] == event]


def unless_it_is_for(*recipients: str) -> FaultInjector:
    def fault(step: str, message: MailMessage) -> None:
        if step == "finish" and message.recipient not in recipients:
            raise REFUSED_AT_ONCE

    return fault


@pytest.mark.parametrize(
    ("step", "stage"), [("mail", "sender"), ("data", "data"), ("content", "content")]
)
def test_a_relay_that_refuses_the_sender_fails_no_invitation(
    post: Post, step: str, stage: str
) -> None:
    """On the wire, at each step where relays do so."""
    post.enrol(12)
    with Relay(one_fault(step, "5yz")) as relay:
        mailer = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay.port}"))
        worker = post.worker(connections=2, mailer=mailer)
        worker.turn()
        assert {(row["state"], row["attempts"]) for row in post.rows()} == {("pending", 0)}
        [down] = told(post, "relay_down")
        assert (down["stage"], down["code"], worker.status.relay_up) == (stage, 554, False)
        relay.plan = lambda _step: None
        post.clock.advance(60)
        again = post.worker(connections=2, mailer=mailer)
        while again.turn():
            pass
        assert (post.states(), relay.taken.total()) == (["sent"] * 12, 12)
        again.close()
        worker.close()


def test_a_relay_that_refuses_from_the_middle_of_a_run_on_is_down(post: Post) -> None:
    post.enrol(20)
    taken: Counter[str] = Counter()

    def fault(step: str, _message: MailMessage) -> None:
        if step == "finish":
            taken["asked"] += 1
            if taken["asked"] > 5:
                raise REFUSED_AT_ONCE

    worker = post.worker(connections=1, fault=fault)
    while worker.turn():
        pass
    assert Counter(post.states()) == {"sent": 5, "pending": 15}
    assert [entry["stage"] for entry in told(post, "relay_down")] == ["content"]
    assert "Not verified" not in post.log.getvalue()


def test_a_probe_that_is_refused_leaves_the_relay_down(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of many single attempts is another message: none of them fails."""
    monkeypatch.setattr(breaker, "MAX_PAUSE_SECONDS", 0.0)
    post.enrol(10)
    worker = post.worker(connections=1, fault=failing("finish", REFUSED_AT_ONCE))
    worker.turn()
    for _ in range(5):
        post.clock.advance(61)
        assert worker.turn() == 1
    assert (set(post.states()), worker.status.relay_up) == ({"pending"}, False)


def test_one_message_that_is_refused_among_others_has_failed(post: Post) -> None:
    post.enrol(6)
    worker = post.worker(
        connections=1, fault=failing("finish", REFUSED_AT_ONCE, recipient="robin.3@example.com")
    )
    while worker.turn():
        pass
    assert post.states() == ["sent", "sent", "failed", "sent", "sent", "sent"]
    assert (worker.status.relay_up, told(post, "relay_down")) == (True, [])


def test_one_message_that_is_refused_alone_has_failed(post: Post) -> None:
    post.enrol(1)
    post.worker(fault=failing("finish", REFUSED_AT_ONCE)).turn()
    assert (post.states(), told(post, "relay_down")) == (["failed"], [])


def test_recipients_that_are_refused_by_name_fail_one_by_one(post: Post) -> None:
    """A list of dead addresses stops no relay: its words are about each recipient."""
    post.enrol(10)
    refusal = RelayRefused("recipient", permanent=True, code=550, words="5.1.1 No such mailbox")
    post.worker(connections=2, fault=failing("offer", refusal)).turn()
    assert (set(post.states()), told(post, "relay_down")) == ({"failed"}, [])


@pytest.mark.parametrize(
    "words", ["5.7.1 <x@example.com>: Relay access denied", "5.1.8 <a@b.example>: Sender rejected"]
)
def test_a_relay_that_refuses_its_client_at_the_recipient_is_down(post: Post, words: str) -> None:
    """As Postfix does: it answers MAIL with 250 and refuses the sender at RCPT."""
    post.enrol(10)
    refusal = RelayRefused("recipient", permanent=True, code=554, words=words)
    post.worker(connections=1, fault=failing("offer", refusal)).turn()
    [down] = told(post, "relay_down")
    assert (set(post.states()), down["stage"], down["code"]) == ({"pending"}, "recipient", 554)


def test_an_account_that_is_refused_alone_waits_and_holds_up_no_other(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender is not verified at the relay: others' mails leave, its own are tried again."""
    monkeypatch.setattr(breaker, "MAX_PAUSE_SECONDS", 0.0)
    other = make_customer(post.db, name="Other")
    post.enrol(8)
    neighbour = post.as_customer(other)
    neighbour.enrol(8)
    good = [f"robin.{1_000_000 + number}@example.com" for number in range(1, 9)]
    # One of the account that is refused comes first, then one that is taken.
    worker = post.worker(connections=1, fault=unless_it_is_for(*good))
    while worker.turn():
        post.clock.advance(1)
    by_account = Counter((row["account_id"], row["state"]) for row in post.rows())
    assert by_account == {(post.customer.account_id, "pending"): 8, (other.account_id, "sent"): 8}
    downs = len(told(post, "relay_down"))
    post.enrol(8)
    neighbour.enrol(1)
    post.clock.advance(3600)
    while worker.turn():
        post.clock.advance(1)
    assert len(told(post, "relay_down")) == downs
    assert worker.status.relay_up
