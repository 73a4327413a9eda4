"""What a worker takes next: fairly, within the agreements, and nothing that must not be sent any more."""

from collections import Counter

import pytest
from sqlalchemy import update

from frontdesk.invitations import suppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.invitations.tables import invitations
from tests.factories import close_plan, make_customer
from tests.worker.conftest import Post


def recipients(post: Post) -> list[str]:
    return [message.recipient for message in post.mailer.messages]


def test_one_accounts_thousand_do_not_hold_up_another_ones_three(post: Post) -> None:
    post.enrol(100)
    other = make_customer(post.db, name="Small Health")
    post.as_customer(other).enrol(3)
    worker = post.worker(connections=2)
    worker.turn()
    assert Counter(row["account_id"] for row in post.rows() if row["state"] == "sent")[other.account_id] == 3


def test_batched_ones_wait_until_the_account_has_switched_them_on(post: Post) -> None:
    post.batches()
    post.enrol(2, immediate=False)
    for enabled, sent in ((False, 0), (True, 2)):
        post.batches(enabled=enabled)
        assert post.worker().turn() == sent


def test_batches_have_their_size_and_interval(post: Post) -> None:
    post.batches(batch_size=2, batch_interval_seconds=60)
    post.enrol(5, immediate=False)
    worker = post.worker()
    assert [worker.turn(), worker.turn()] == [2, 0]
    for _ in range(13):
        post.clock.advance(5)
        worker.turn()
    assert Counter(post.states()) == {"sent": 4, "pending": 1}


def test_a_plan_that_accepts_no_patients_holds_back_its_batched_ones_and_no_immediate_ones(
    post: Post,
) -> None:
    post.batches()
    first, second = post.customer.plan_ids
    for immediate, plan in ((False, first), (True, first), (False, second)):
        post.enrol(1, immediate=immediate, plan=plan)
    close_plan(post.db, first)
    post.worker().turn()
    assert post.states() == ["pending", "sent", "sent"]


def test_immediate_ones_ignore_the_accounts_limits(post: Post) -> None:
    post.batches(hourly_limit=1, batch_size=1)
    post.enrol(2, immediate=False)
    post.enrol(5)
    post.worker().turn()
    assert Counter(post.states()) == {"sent": 6, "pending": 1}


@pytest.mark.parametrize("stored", ["robin.1@example.com", "robin.1@\u24d4xample.com"])
def test_an_address_that_was_suppressed_since_gets_nothing_in_any_spelling(post: Post, stored: str) -> None:
    post.enrol()
    with post.db.write() as tx:
        tx.execute(update(invitations).values(address=stored))
        suppress(tx, "Robin.1@example.com", SuppressionReason.BY_HAND, now=post.clock())
    post.worker().turn()
    assert (post.row()["state"], post.row()["reason"], recipients(post)) == ("cancelled", "suppressed", [])


def test_a_member_whose_access_has_expired_meanwhile_gets_nothing(post: Post) -> None:
    post.enrol(expiry_date="2026-11-25")
    post.clock.advance(6 * 86_400)
    post.worker().turn()
    assert (post.row()["state"], post.row()["reason"], recipients(post)) == ("cancelled", "expired", [])


def test_the_message_is_in_the_accounts_name(post: Post) -> None:
    post.batches(sender_name="Example Health", sender_address="care@health.example")
    post.enrol()
    post.worker().turn()
    assert b"Example Health" in post.mailer.messages[0].content
    assert b"care@health.example" in post.mailer.messages[0].content
