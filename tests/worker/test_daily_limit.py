"""One mailbox gets five mails a day, whatever stands behind the `+` and whoever sends; the others
come a day later each.
"""

import threading
from collections import Counter
from datetime import datetime, timedelta

import pytest

from frontdesk.eligibility import find_addresses, find_expired
from frontdesk.invitations.daily_limit import DAILY_LIMIT, DAY, mailbox_of, next_place
from frontdesk.invitations.model import InvitationState
from frontdesk.invitations.protocol import claim
from frontdesk.invitations.resend import resend_invitation
from frontdesk.mail.model import MailMessage, RelayRefused
from frontdesk.reach import EVERY
from tests.factories import NOW, make_customer, member_body
from tests.invitations.mails import enrol_members
from tests.worker.conftest import Post


def enrol(post: Post, *addresses: str) -> None:
    for address in addresses:
        post.enrol(1, email=address)


def tagged(count: int, first: int = 1) -> list[str]:
    return [f"person+{number}@example.com" for number in range(first, first + count)]


def recipients(post: Post) -> list[str]:
    return [message.recipient for message in post.mailer.messages]


@pytest.mark.parametrize(
    ("address", "mailbox"),
    [
        ("robin@example.com", "robin@example.com"),
        ("robin+@example.com", "robin@example.com"),
        ("robin+a+b@example.com", "robin@example.com"),
        ("r.obin+a@example.com", "r.obin@example.com"),
        ("+robin@example.com", "+robin@example.com"),
        ("+@example.com", "+@example.com"),
        ('"robin+a"@example.com', '"robin+a"@example.com'),
    ],
)
def test_a_mailbox_is_the_address_without_its_tag(address: str, mailbox: str) -> None:
    assert mailbox_of(address) == mailbox


def test_places_come_one_behind_the_other_five_in_any_day() -> None:
    moments: list[datetime] = []
    for _ in range(17):
        moments.append(next_place(moments, NOW))
    days = [(moment - NOW) / DAY for moment in moments]
    assert days == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 2


def test_of_twelve_tags_five_are_mailed_each_day_and_all_in_the_end_oldest_first(
    post: Post,
) -> None:
    enrol(post, *tagged(12))
    worker = post.worker()
    while worker.turn():
        pass
    assert sorted(recipients(post)) == sorted(tagged(5))
    waiting = [row for row in post.rows() if row["state"] == "pending"]
    assert {row["reason"] for row in waiting} == {"mailbox_limit"}
    assert Counter(row["due_at"] - NOW for row in waiting) == {DAY: 5, 2 * DAY: 2}
    post.clock.advance(DAY.total_seconds())
    while worker.turn():
        pass
    assert sorted(recipients(post)) == sorted(tagged(10))
    post.clock.advance(DAY.total_seconds())
    while worker.turn():
        pass
    assert sorted(recipients(post)) == sorted(tagged(12))
    assert Counter(post.states()) == {"sent": 12}


def test_another_account_gets_no_five_more(post: Post) -> None:
    enrol(post, *tagged(4))
    other = post.as_customer(make_customer(post.db, name="Other Health"))
    enrol(other, *tagged(4, first=5))
    post.worker().turn()
    assert len(recipients(post)) == DAILY_LIMIT


def test_another_account_waits_a_day_and_not_behind_all_that_the_first_has_waiting(
    post: Post,
) -> None:
    enrol(post, *tagged(40))
    worker = post.worker()
    while worker.turn():
        pass
    other = post.as_customer(make_customer(post.db, name="Other Health"))
    enrol(other, "person@example.com")
    while worker.turn():
        pass
    [waits] = [row for row in post.rows() if row["account_id"] == other.customer.account_id]
    assert (waits["state"], waits["due_at"] - NOW) == ("pending", DAY)


def test_batched_mails_count_and_other_mailboxes_go_on(post: Post) -> None:
    post.batches(batch_size=100)
    post.enrol(1, immediate=False, email="person@example.com")
    enrol(post, *tagged(6), "someone@example.com", "person@example.org")
    worker = post.worker()
    while worker.turn():
        pass
    assert Counter(post.states()) == {"sent": 7, "pending": 2}
    assert {"someone@example.com", "person@example.org"} < set(recipients(post))


def test_a_refusal_for_now_does_not_use_up_the_day_of_its_own_invitation(post: Post) -> None:
    failures = iter(range(3))

    def busy(step: str, _message: MailMessage) -> None:
        if step == "offer" and next(failures, None) is not None:
            raise RelayRefused("recipient", permanent=False, code=451)

    enrol(post, *tagged(5))
    worker = post.worker(connections=1, fault=busy)
    for _ in range(40):
        worker.turn()
        post.clock.advance(600)
    assert Counter(post.states()) == {"sent": 5}


def test_a_stream_of_new_tags_does_not_take_the_places_of_those_that_wait(post: Post) -> None:
    enrol(post, *tagged(7))
    worker = post.worker()
    worker.turn()
    enrol(post, *tagged(7, first=8))
    worker.turn()
    post.clock.advance(DAY.total_seconds())
    enrol(post, *tagged(3, first=15))
    while worker.turn():
        pass
    assert sorted(recipients(post)) == sorted(tagged(10))


def test_two_workers_that_claim_at_the_same_time_share_the_last_place(post: Post) -> None:
    enrol(post, *tagged(4))
    post.worker().turn()
    other = make_customer(post.db, name="Other Health")
    enrol(post, *tagged(1, first=5))
    enrol(post.as_customer(other), *tagged(1, first=6))
    contexts = [post.worker()._context, post.worker()._context]
    claimed: list[int] = []

    def claim_second() -> None:
        with post.db.write() as tx:
            rows = claim(tx, contexts[1], now=post.clock(), count=50, find_expired=find_expired)
            claimed.append(len(rows))

    second = threading.Thread(target=claim_second)
    with post.db.write() as tx:
        # One only: that of the first account. The second worker gets the other account's.
        first = claim(tx, contexts[0], now=post.clock(), count=1, find_expired=find_expired)
        second.start()
        second.join(timeout=0.5)  # long enough to read what this transaction has not committed yet
    second.join()
    assert (len(first), claimed) == (1, [0])
    assert Counter(post.states()) == {"sent": 4, "claimed": 1, "pending": 1}


def test_what_a_killed_worker_had_claimed_counts_once(post: Post) -> None:
    enrol(post, *tagged(5))
    context = post.worker()._context
    with post.db.write() as tx:
        assert (
            len(claim(tx, context, now=post.clock(), count=50, find_expired=find_expired))
            == DAILY_LIMIT
        )
    post.clock.advance(1000)
    enrol(post, *tagged(1, first=6))
    worker = post.worker()
    while worker.turn():
        pass
    assert Counter(post.states()) == {"sent": 5, "pending": 1}


def test_an_operators_resend_counts_too(post: Post) -> None:
    enrol(post, "person+1@example.com")
    worker = post.worker()
    worker.turn()
    post.clock.advance(DAY.total_seconds() + 60)
    enrol(post, *tagged(5, first=2))
    worker.turn()
    first = post.rows()[0]
    with post.db.write() as tx:
        asked = (EVERY, first["id"], post.requester())
        resend_invitation(tx, *asked, find_addresses=find_addresses)
    worker.turn()
    row = post.rows()[0]
    assert (row["state"], row["reason"]) == (InvitationState.PENDING, "mailbox_limit")
    post.clock.advance(DAY.total_seconds())
    worker.turn()
    assert post.rows()[0]["state"] == InvitationState.SENT


def test_after_days_without_a_worker_five_leave_a_day(post: Post) -> None:
    enrol(post, *tagged(15))
    worker = post.worker()
    worker.turn()
    post.clock.advance(5 * DAY.total_seconds())
    while worker.turn():
        pass
    assert len(recipients(post)) == 10
    post.clock.advance(DAY.total_seconds() + 1)
    while worker.turn():
        pass
    assert len(recipients(post)) == 15


def test_the_sandboxs_acting_addresses_are_not_counted(post: Post) -> None:
    enrol(post, *(f"bounce+{number}@example.com" for number in range(8)))
    worker = post.worker()
    while worker.turn():
        pass
    assert len(recipients(post)) == 8


def test_no_address_can_be_read_from_the_mailbox_of_an_invitation(post: Post) -> None:
    body = member_body(1, invite_immediately=True, email="person+1@example.com")
    with post.db.write() as tx:
        enrol_members(tx, post.customer, [body], now=post.clock() + timedelta(seconds=1))
    digest = post.row()["mailbox_digest"]
    assert len(digest) == 32
    assert "person" not in digest
