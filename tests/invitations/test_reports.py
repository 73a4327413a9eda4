"""What a delivery report brings about, once, whichever way it comes."""

from contextlib import ExitStack

import pytest

from frontdesk.db import Database
from frontdesk.db.sets import insert_missing
from frontdesk.invitations.delivery import get_invitation
from frontdesk.invitations.model import DeliveryReport, InvitationState, ReportEffect, ReportEvent
from frontdesk.invitations.reports import is_hard_bounce, receive_report
from frontdesk.invitations.store.queries import lock_by_message_id
from frontdesk.invitations.tables import invitation_links
from frontdesk.reach import EVERY
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.invitations.mails import MailedInvitation, mailed, state_of, suppressed


def report(db: Database, mail: MailedInvitation, event: ReportEvent) -> ReportEffect:
    with db.write() as tx:
        return receive_report(tx, DeliveryReport(mail.message_id, event), now=NOW)


CASES: list[tuple[InvitationState, int, ReportEvent, InvitationState, str | None]] = [
    (InvitationState.AMBIGUOUS, 1, ReportEvent.DELIVERED, InvitationState.SENT, None),
    (InvitationState.AMBIGUOUS, 1, ReportEvent.BOUNCED, InvitationState.FAILED, "hard_bounce"),
    (InvitationState.AMBIGUOUS, 1, ReportEvent.COMPLAINED, InvitationState.SENT, "complaint"),
    (InvitationState.AMBIGUOUS, 1, ReportEvent.DELAYED, InvitationState.AMBIGUOUS, None),
    # Its hold is over and it is in line once more: the report comes in time to spare the person a
    # second copy.
    (InvitationState.PENDING, 1, ReportEvent.DELIVERED, InvitationState.SENT, None),
    (InvitationState.CLAIMED, 1, ReportEvent.BOUNCED, InvitationState.FAILED, "hard_bounce"),
    # A worker has just asked the relay: its answer decides.
    (InvitationState.OFFERED, 0, ReportEvent.DELIVERED, InvitationState.OFFERED, None),
    (InvitationState.OFFERED, 1, ReportEvent.COMPLAINED, InvitationState.OFFERED, "complaint"),
    (InvitationState.SENT, 0, ReportEvent.DELIVERED, InvitationState.SENT, None),
    (InvitationState.SENT, 0, ReportEvent.BOUNCED, InvitationState.FAILED, "hard_bounce"),
    (InvitationState.SENT, 0, ReportEvent.COMPLAINED, InvitationState.SENT, "complaint"),
    (InvitationState.FAILED, 0, ReportEvent.DELIVERED, InvitationState.FAILED, None),
    (InvitationState.CANCELLED, 0, ReportEvent.BOUNCED, InvitationState.CANCELLED, "hard_bounce"),
    # Never lost, so nothing of it has left by our own knowledge: a report about it is none that
    # settles.
    (InvitationState.PENDING, 0, ReportEvent.DELIVERED, InvitationState.PENDING, None),
]


def test_a_report_settles_what_is_unclear_and_suppresses_who_must_not_be_mailed(
    api: Api, db: Database, customer: Customer
) -> None:
    for number, (state, losses, event, becomes, reason) in enumerate(CASES):
        mail = mailed(api, db, customer, number=number, state=state, losses=losses)
        expected = ReportEffect.NO_NEWS if event is ReportEvent.DELAYED else ReportEffect.APPLIED
        assert report(db, mail, event) == expected
        assert state_of(db, mail) is becomes
        assert suppressed(db).get(mail.address) == reason


@pytest.mark.parametrize(
    ("status", "hard"),
    [("5.1.1", True), ("5.1.2", True), ("5.2.1", True), ("5.0.0", True), ("5.4.4", True), (None, True),
     ("5.2.2", False), ("5.7.1", False), ("5.1.8", False), ("5.3.4", False),
     ("5.6.1", False), ("4.4.7", False), ("4.2.2", False)],
)  # fmt: skip
def test_only_failures_of_the_address_itself_suppress_it(status: str | None, *, hard: bool) -> None:
    assert is_hard_bounce(DeliveryReport("a@b", ReportEvent.BOUNCED, status)) is hard


def test_a_complaint_stands_on_the_invitations_timeline(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    for _ in range(2):
        report(db, mail, ReportEvent.COMPLAINED)
    with db.read() as tx:
        _, timeline = get_invitation(tx, EVERY, mail.id)
    assert [(step.to_state, step.reason) for step in timeline] == [("sent", "complained")]


def test_a_report_in_hand_holds_up_no_use_of_a_link(
    api: Api, db: Database, customer: Customer
) -> None:
    """SQLite has one writer at a time and no such locks: there the second one comes after the
    first.
    """
    mail = mailed(api, db, customer)
    row = {"invitation_id": mail.id, "message_id": "other@mail.example.com", "created_at": NOW}
    row |= {"registration_hash": "r" * 64, "unsubscribe_hash": "u" * 64}
    with ExitStack() as first:
        tx = first.enter_context(db.write())
        assert lock_by_message_id(tx, mail.message_id) is not None
        if db.is_sqlite:
            first.close()
        with db.write(wait_seconds=0.5) as other:
            insert_missing(other, invitation_links, [row])
