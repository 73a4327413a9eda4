"""A customer's immediate mails: at most its limit in any 60 minutes, the rest later, each once,
with or without batches.
"""

import math
from collections import Counter

import pytest
from sqlalchemy import select

from frontdesk.access.accounts import set_immediate_limit
from frontdesk.db import Database
from frontdesk.invitations import delivery
from frontdesk.invitations.tables import deliverability, invitations
from frontdesk.worker.delivery import DeliveryWorker
from tests.conftest import Api
from tests.factories import Customer, make_customer, member_body
from tests.worker.conftest import Post

HOUR = 3600


def limited(post: Post, limit: int) -> None:
    with post.db.write() as tx:
        set_immediate_limit(tx, post.customer.account_id, limit)


def advance(post: Post, worker: DeliveryWorker, seconds: int) -> None:
    """Time passes; each minute, and at the end, the worker delivers what it may."""
    for _ in range(math.ceil(seconds / 60)):
        post.clock.advance(min(60, seconds))
        worker.turn()


def test_over_the_limit_the_rest_waits_for_the_hour_and_all_leave_once_oldest_first(
    post: Post,
) -> None:
    limited(post, 4)
    post.enrol(10)
    worker = post.worker(connections=1)
    sent = [worker.turn() for _ in range(3)]
    assert sum(sent) == 4
    assert Counter(post.states()) == {"sent": 4, "pending": 6}
    advance(post, worker, 2 * HOUR + 600)
    assert Counter(post.states()) == {"sent": 10}
    recipients = [message.recipient for message in post.mailer.messages]
    assert recipients == sorted(recipients, key=lambda each: int(each.split(".")[1].split("@")[0]))
    assert len(set(recipients)) == 10


def test_the_rest_of_an_account_without_batches_leaves_too(post: Post) -> None:
    limited(post, 1)
    post.enrol(2)
    worker = post.worker()
    worker.turn()
    with post.db.read() as tx:
        assert tx.execute(select(deliverability.c.account_id)).all() == []
    advance(post, worker, HOUR + 120)
    assert post.states() == ["sent", "sent"]


def test_another_accounts_mails_start_at_once_meanwhile(post: Post) -> None:
    limited(post, 2)
    post.enrol(50)
    worker = post.worker()
    worker.turn()
    other = make_customer(post.db, name="Small Health")
    post.as_customer(other).enrol(3)
    worker.turn()
    assert (
        Counter(row["account_id"] for row in post.rows() if row["state"] == "sent")[
            other.account_id
        ]
        == 3
    )


def test_a_raised_limit_is_used_within_seconds(post: Post) -> None:
    limited(post, 2)
    post.enrol(6)
    worker = post.worker()
    worker.turn()
    limited(post, 5)
    advance(post, worker, 10)
    assert Counter(post.states()) == {"sent": 5, "pending": 1}


def test_an_account_at_its_limit_is_shown_and_raises_no_alarm_of_late_mail(post: Post) -> None:
    limited(post, 2)
    post.enrol(3)
    post.worker().turn()
    post.clock.advance(600)
    with post.db.read() as tx:
        found = delivery.read_statistics(tx, now=post.clock())
        outlook = delivery.forecast(tx, post.customer.account_id, now=post.clock())
    assert (found.immediate_at_limit, found.oldest_due_seconds) == (1, 0)
    assert found.immediate_shares == {post.customer.account_id: 1.0}
    assert (outlook.immediate_this_hour, outlook.immediate_limit, outlook.immediate) == (2, 2, 1)
    assert outlook.last_at is not None
    assert (outlook.last_at - post.clock()).total_seconds() == pytest.approx(HOUR - 600, abs=60)


def test_the_answer_says_that_an_invitation_waits_for_the_limit(
    api: Api, db: Database, customer: Customer
) -> None:
    with db.write() as tx:
        set_immediate_limit(tx, customer.account_id, 3)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    answers = [
        api.post(path, member_body(number, invite_immediately=True)) for number in range(1, 5)
    ]
    assert [each.headers["Invitation"] for each in answers] == [
        "immediate",
        "immediate",
        "immediate",
        "queued; reason=immediate_limit",
    ]
    batch = [member_body(number, invite_immediately=True) for number in range(5, 8)]
    results = api.post(f"{path}/batch", batch).json()["data"]
    assert {each["invitation"] for each in results} == {"queued; reason=immediate_limit"}
    with db.read() as tx:
        rows = tx.execute(
            select(invitations.c.delivery, invitations.c.reason).order_by(invitations.c.id)
        )
        stored = [tuple(row) for row in rows]
    assert stored == [("immediate", None)] * 3 + [("immediate", "immediate_limit")] * 4


def test_three_batches_of_a_thousand_are_a_thousand_mails_in_any_hour(post: Post) -> None:
    for _ in range(3):
        post.enrol(1000)
    worker = post.worker(connections=8)
    left: list[tuple[int, int]] = []
    for minute in range(4 * 60):
        before = len(post.mailer.messages)
        while worker.turn():
            pass
        left.append((minute, len(post.mailer.messages) - before))
        post.clock.advance(60)
    assert left[0] == (0, 1000)
    for minute, _ in left:
        assert sum(count for at, count in left if minute <= at <= minute + 60) <= 1000
    assert Counter(post.states()) == {"sent": 3000}
    assert (
        len({message.recipient for message in post.mailer.messages})
        == 3000
        == len(post.mailer.messages)
    )
