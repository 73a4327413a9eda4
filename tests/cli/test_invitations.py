"""What operators see of invitations and decide about them."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness, read_config
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.invitations import set_deliverability
from frontdesk.invitations.tables import invitations
from frontdesk.mail.model import AnswerLost, MailMessage
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.cli.conftest import CommandLine
from tests.factories import Customer, make_customer, member_body
from tests.mail.memory import MemoryMailer


class InvitationsDesk:
    """A command line on an account whose members have been invited."""

    def __init__(self, cli: CommandLine) -> None:
        self.cli = cli
        self.db = cli.open()
        self.customer: Customer = make_customer(self.db, now=system_clock())
        self.lose = False
        self.mailer = MemoryMailer(self._verdict)

    def invite(self, count: int, *, immediate: bool = True) -> None:
        now = system_clock()
        with self.db.write() as tx:
            set_deliverability(tx, self.customer.account_id, enabled=True, hourly_limit=100, batch_size=60)
            submissions = [
                Submission(
                    self.customer.account_id,
                    self.customer.plan_ids[0],
                    parse_member(
                        member_body(number, invite_immediately=immediate), today=now.date().isoformat()
                    ),
                    "client",
                    "request",
                )
                for number in range(count)
            ]
            enrol(tx, submissions, now=now, uniqueness=Uniqueness.SERVICE)

    def deliver(self) -> int:
        config = read_config({"FRONTDESK_DATABASE_URL": self.cli.database_url})
        worker = DeliveryWorker(
            config, self.db, self.mailer, WorkerOptions(connections=2, poll_seconds=0.02, idle_seconds=0.02)
        )
        count = worker.turn()
        worker.close()
        return count

    def _verdict(self, step: str, _letter: MailMessage) -> None:
        if self.lose and step == "finish":
            raise AnswerLost


@pytest.fixture
def desk(cli: CommandLine) -> Any:
    made = InvitationsDesk(cli)
    yield made
    made.db.close()


def test_the_timeline_has_every_step_and_its_reason(desk: InvitationsDesk) -> None:
    desk.invite(1)
    desk.deliver()
    item = desk.cli.json("invitations", "show", "1")
    assert [(step["from"], step["to"]) for step in item["timeline"]] == [
        ("pending", "claimed"),
        ("claimed", "offered"),
        ("offered", "sent"),
    ]
    assert item["relay_code"] == 250
    said = desk.cli.text("invitations", "show", "1")
    assert "The relay has taken the message." in said
    assert "robin" not in said


def test_a_cancelled_invitation_is_not_sent_and_can_be_resent(desk: InvitationsDesk) -> None:
    desk.invite(1)
    assert desk.cli.json("invitations", "cancel", "1")["state"] == "cancelled"
    assert desk.deliver() == 0
    assert "only these can be cancelled: claimed, pending" in desk.cli.refused("invitations", "cancel", "1")
    assert desk.cli.json("invitations", "resend", "1")["state"] == "pending"
    assert desk.deliver() == 1
    assert [entry["action"] for entry in desk.cli.audit_trail()[-2:]] == [
        "invitation.cancelled",
        "invitation.resent",
    ]


def test_an_address_is_not_mailed_again_within_a_day(desk: InvitationsDesk) -> None:
    desk.invite(1)
    desk.deliver()
    assert "less than 24 hours ago" in desk.cli.refused("invitations", "resend", "1")


def test_the_day_counts_per_address_over_all_invitations(desk: InvitationsDesk) -> None:
    desk.invite(2)
    desk.cli.json("invitations", "cancel", "2")
    desk.deliver()
    with desk.db.write() as tx:  # another member has the address now, in capitals
        tx.exec_driver_sql(
            "UPDATE invitations SET address = (SELECT upper(address) FROM invitations WHERE id = 1) WHERE id = 2"
        )
    assert "less than 24 hours ago" in desk.cli.refused("invitations", "resend", "2")
    with desk.db.write() as tx:
        tx.execute(
            update(invitations)
            .values(offered_at=system_clock() - timedelta(hours=25))
            .where(invitations.c.id == 1)
        )
    desk.cli.json("invitations", "resend", "1")
    assert "in line already" in desk.cli.refused("invitations", "resend", "2")
    desk.deliver()
    assert len(desk.mailer.messages) == 2


def test_an_ambiguous_one_is_shown_and_settled(desk: InvitationsDesk) -> None:
    desk.invite(1)
    desk.lose = True
    desk.deliver()
    [listed] = desk.cli.json("invitations", "list", "--state", "ambiguous")
    assert listed["id"] == 1
    assert desk.cli.json("invitations", "settle", "1", "--as", "sent")["state"] == "sent"
    assert "only these can be settled: ambiguous" in desk.cli.refused(
        "invitations", "settle", "1", "--as", "failed"
    )


def test_held_delivery_sends_nothing_until_released(desk: InvitationsDesk) -> None:
    desk.invite(2)
    assert desk.cli.json("invitations", "hold") == {"held": True}
    assert desk.deliver() == 0
    released = desk.cli.json("invitations", "release", "--keep-back")
    assert released == {"held": False, "kept_back": 2}
    assert desk.deliver() == 0
    assert len(desk.cli.json("invitations", "list", "--state", "ambiguous")) == 2


def test_the_forecast_has_backlog_window_and_end(desk: InvitationsDesk) -> None:
    desk.invite(130, immediate=False)
    account = str(desk.customer.account_id)
    before = desk.cli.json("invitations", "forecast", "--account", account)
    assert (before["backlog"], before["sent_this_hour"], before["hourly_limit"]) == (130, 0, 100)
    desk.deliver()
    after = desk.cli.json("invitations", "forecast", "--account", account)
    assert after["backlog"] + after["sent_this_hour"] == 130
    assert after["sent_this_hour"] > 0
    assert after["last_at"] is not None


def test_an_unknown_invitation_is_reported(desk: InvitationsDesk) -> None:
    for words in (("show",), ("cancel",), ("resend",)):
        assert "There is no such invitation." in desk.cli.refused("invitations", *words, "77")
