"""What a worker takes next: fairly, within the agreements, and nothing that must not be sent any
more.
"""

import threading
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import update

from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.eligibility import find_addresses
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.undo import UndoRequest, restore
from frontdesk.errors import FrontdeskError, Suspended
from frontdesk.invitations import delivery, suppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.invitations.resend import resend_invitation
from frontdesk.invitations.tables import invitations
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, close_plan, make_customer, member_body
from tests.files.loading import Desk, csv_of, row
from tests.invitations.mails import enrol_members, links_of, suppressed, text_of
from tests.worker.conftest import Post


def test_one_accounts_thousand_do_not_hold_up_another_ones_three(post: Post) -> None:
    post.enrol(100)
    other = make_customer(post.db, name="Small Health")
    post.as_customer(other).enrol(3)
    post.worker(connections=2).turn()
    assert (
        Counter(row["account_id"] for row in post.rows() if row["state"] == "sent")[
            other.account_id
        ]
        == 3
    )


def test_batched_invitations_wait_until_they_are_switched_on(post: Post) -> None:
    post.batches(batch_size=2, batch_interval_seconds=60)
    post.enrol(5, immediate=False)
    post.batches(enabled=False)
    worker = post.worker()
    assert worker.turn() == 0
    post.batches()
    assert [worker.turn(), worker.turn()] == [2, 0]
    for _ in range(13):
        post.clock.advance(5)
        worker.turn()
    assert Counter(post.states()) == {"sent": 4, "pending": 1}
    post.enrol(5)  # immediate ones ignore the limits
    assert worker.turn() == 5


@pytest.mark.parametrize("stored", ["robin.1@example.com", "robin.1@\u24d4xample.com"])
def test_an_address_that_was_suppressed_since_gets_nothing_in_any_spelling(
    post: Post, stored: str
) -> None:
    post.enrol()
    with post.db.write() as tx:
        tx.execute(update(invitations).values(address=stored))
        suppress(tx, "Robin.1@example.com", SuppressionReason.BY_HAND, now=post.clock())
    post.worker().turn()
    assert (post.row()["state"], post.row()["reason"]) == ("cancelled", "suppressed")
    assert post.mailer.messages == []


def test_a_member_whose_access_has_expired_meanwhile_gets_nothing(post: Post) -> None:
    post.enrol(expiry_date="2026-11-25")
    post.clock.advance(6 * 86_400)
    post.worker().turn()
    assert (post.row()["state"], post.row()["reason"]) == ("cancelled", "expired")
    assert post.mailer.messages == []


def move(post: Post, number: int, *plans: int, file_id: int | None = None) -> None:
    """The member as `post.enrol` made it, under these plans one after the other."""
    for plan in plans:
        with post.db.write() as tx:
            body = member_body(number)
            enrol_members(tx, post.customer, [body], now=post.clock(), plan=plan, file_id=file_id)


def test_a_closed_plan_holds_back_its_batched_invitations(post: Post) -> None:
    post.batches()
    first, second = post.customer.plan_ids
    for immediate, plan in ((False, first), (True, first), (False, second)):
        post.enrol(1, immediate=immediate, plan=plan)
    close_plan(post.db, first)
    post.worker().turn()
    assert post.states() == ["pending", "sent", "sent"]
    move(post, 1, second, first)
    assert post.worker().turn() == 0
    move(post, 1, second)
    assert post.worker().turn() == 1


def test_a_mail_has_the_accounts_name_and_links_of_the_members_plan(post: Post, api: Api) -> None:
    first, second = post.customer.plan_ids
    post.batches(sender_name="Example Health", sender_address="care@health.example")
    body = member_body(1, invite_immediately=True)
    answers = [api.post(f"/v2/plans/{plan}/eligibility", json=body) for plan in (first, second)]
    assert [answer.headers["Eligibility-Outcome"] for answer in answers] == ["created", "moved"]
    post.worker().turn()
    [message] = post.mailer.messages
    assert "Example Health Plan 1" in text_of(message)
    assert "Plan 0" not in text_of(message)
    assert b'From: "Example Health" <care@health.example>' in message.content
    move(post, 1, first)
    register, unsubscribe = links_of(message)
    assert "Example Health Plan 0" in api.as_(None).get(register).text
    assert api.as_(None).request("POST", unsubscribe).status_code == 200
    assert suppressed(post.db) == {message.recipient: "unsubscribe"}


def test_a_move_that_is_undone_takes_the_invitation_back(post: Post) -> None:
    first, second = post.customer.plan_ids
    post.enrol()
    move(post, 1, second, file_id=1)
    assert post.row()["plan_id"] == second
    undoing = UndoRequest(1, 2, "c", "undo", post.clock(), Uniqueness.SERVICE)
    with post.db.write() as tx:
        restore(tx, [post.row()["member_id"]], undoing)
    assert post.row()["plan_id"] == first


@pytest.mark.parametrize("immediate", [True, False])
def test_mails_of_a_suspended_account_wait_and_those_of_others_go_on(
    post: Post, immediate: bool
) -> None:
    other = post.as_customer(make_customer(post.db, name="Other"))
    for each in (post, other):
        each.batches()
        each.enrol(immediate=immediate)
    write_alone(
        post.db, lambda tx: set_state(tx, post.customer.account_id, AccountState.SUSPENDED, now=NOW)
    )
    post.clock.advance(3600)
    worker = post.worker()
    assert [worker.turn(), worker.turn()] == [1, 0]
    assert [message.recipient for message in post.mailer.messages] == ["robin.1000001@example.com"]
    write_alone(
        post.db, lambda tx: set_state(tx, post.customer.account_id, AccountState.ACTIVE, now=NOW)
    )
    assert worker.turn() == 1


def test_files_of_a_suspended_account_wait_and_those_of_others_go_on(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    other = Desk(db, make_customer(db, name="Other"), clock)
    file = desk.hand_in(csv_of([row(1)]))
    write_alone(db, lambda tx: set_state(tx, customer.account_id, AccountState.SUSPENDED, now=NOW))
    assert not desk.work_on_any()
    with pytest.raises(Suspended):
        desk.hand_in(csv_of([row(2)]))
    assert other.load(csv_of([row(3)])).state == "done"
    write_alone(db, lambda tx: set_state(tx, customer.account_id, AccountState.ACTIVE, now=NOW))
    assert desk.work(file).state == "done"
    assert desk.count("members") == 2


def test_of_two_operators_who_resend_to_one_address_at_the_same_moment_one_does(post: Post) -> None:
    """Two members had the address, one after the other. A held ambiguous invitation is not in line."""
    post.enrol(2)
    first, second = (int(row["id"]) for row in post.rows())
    with post.db.write() as tx:
        tx.execute(update(members).values(email="one@example.com"))
        for id_ in (first, second):
            delivery.cancel_invitation(tx, EVERY, id_, post.requester())
    answers: list[str] = []

    def resend_second() -> None:
        try:
            write_alone(
                post.db,
                lambda tx: resend_invitation(
                    tx, EVERY, second, post.requester(), find_addresses=find_addresses
                ),
            )
        except FrontdeskError as error:
            answers.append(error.detail)

    other = threading.Thread(target=resend_second)
    with post.db.write() as tx:
        resend_invitation(tx, EVERY, first, post.requester(), find_addresses=find_addresses)
        other.start()
        other.join(1)  # on neither database can it be answered before this commit
    other.join()
    assert answers == ["Another invitation to the address is in line already."]
    assert post.states() == ["pending", "cancelled"]
    held = {"state": "ambiguous", "due_at": post.clock() + timedelta(hours=20)}
    with post.db.write() as tx:
        tx.execute(update(invitations).where(invitations.c.id == first).values(held))
    resend_second()
    assert post.states() == ["ambiguous", "pending"]
