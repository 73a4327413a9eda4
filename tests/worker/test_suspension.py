"""The mails and files of a suspended account wait; those of others go on."""

import pytest

from frontdesk.access.accounts import resume_account, suspend_account
from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.errors import Suspended
from tests.conftest import SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import Desk, csv_of, row
from tests.worker.conftest import Post


@pytest.mark.parametrize("immediate", [True, False])
def test_mails_wait_until_the_account_is_resumed(post: Post, db: Database, immediate: bool) -> None:
    other = post.as_customer(make_customer(db, name="Other"))
    for each in (post, other):
        each.batches()
        each.enrol(immediate=immediate)
    with db.write() as tx:
        suspend_account(tx, post.customer.account_id)
    post.clock.advance(3600)
    worker = post.worker()
    assert [worker.turn(), worker.turn()] == [1, 0]
    assert [message.recipient for message in post.mailer.messages] == ["robin.1000001@example.com"]
    with db.write() as tx:
        resume_account(tx, post.customer.account_id)
    assert worker.turn() == 1
    assert post.states() == ["sent", "sent"]


def test_files_wait_until_the_account_is_resumed(db: Database, customer: Customer, clock: SetClock) -> None:
    desk = Desk(db, customer, clock)
    file = desk.hand_in(csv_of([row(1)]))
    write_alone(db, lambda tx: suspend_account(tx, customer.account_id))
    assert not desk.work_on_any()
    with pytest.raises(Suspended):
        desk.hand_in(csv_of([row(2)]))
    other = Desk(db, make_customer(db, name="Other"), clock)
    assert other.load(csv_of([row(3)])).state == "done"
    write_alone(db, lambda tx: resume_account(tx, customer.account_id))
    assert desk.work(file).state == "done"
    assert desk.count("members") == 2
