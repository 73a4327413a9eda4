"""An invitation that is sent again: to the present address, many at once after a fault of the relay,
and never twice to one member.
"""

from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from frontdesk.clock import system_clock
from frontdesk.eligibility.tables import members
from frontdesk.invitations import resend
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.tables import invitation_links
from frontdesk.mail.model import AnswerLost, RelayRefused
from tests.cli.conftest import CommandLine
from tests.factories import make_customer
from tests.mail.memory import failing
from tests.worker.conftest import Post

YESTERDAY = (system_clock() - timedelta(days=1)).date().isoformat()
FAILED = ("invitations", "resend", "--state", "failed", "--since", YESTERDAY)
REFUSED = RelayRefused("recipient", permanent=True, code=553, words="5.1.3 Bad address")


@pytest.fixture
def desk(cli: CommandLine, post: Post) -> Post:
    """A customer whose members are mailed at the time of the commands."""
    post.clock.now = system_clock()
    return post


def deliver(desk: Post) -> None:
    desk.clock.now = system_clock()
    worker = desk.worker(connections=2)
    while worker.turn():
        pass


def fail_all(desk: Post, count: int, error: Exception = REFUSED, step: str = "offer") -> None:
    """New members, whose invitations the relay refuses one by one."""
    desk.enrol(count)
    desk.mailer.fault = failing(step, error)
    deliver(desk)
    desk.mailer.fault = None


def give_address(desk: Post, address: str | None, member_id: int = 1) -> None:
    with desk.db.write() as tx:
        tx.execute(update(members).where(members.c.id == member_id).values(email=address))


def test_a_resend_goes_to_the_members_present_address(cli: CommandLine, desk: Post) -> None:
    fail_all(desk, 1)
    give_address(desk, "Robin@New.example")
    cli.json("invitations", "resend", "1")
    deliver(desk)
    assert [message.recipient for message in desk.mailer.messages] == ["Robin@New.example"]
    row = desk.row()
    assert (row["address"], row["address_folded"]) == ("Robin@New.example", "robin@new.example")


def test_links_of_a_mail_to_an_earlier_address_end(cli: CommandLine, desk: Post) -> None:
    """That mail went to somebody else; a bounce of it says nothing about the new address."""
    desk.enrol(1)
    deliver(desk)
    message_id = desk.row()["message_id"]
    give_address(desk, "robin@new.example")
    cli.json("invitations", "resend", "1")
    with desk.db.write() as tx:
        report = DeliveryReport(message_id, ReportEvent.BOUNCED, "5.1.1")
        assert receive_report(tx, report, now=desk.clock()) is ReportEffect.UNKNOWN
        assert tx.execute(select(func.count()).select_from(invitation_links)).scalar_one() == 0
    deliver(desk)
    assert [message.recipient for message in desk.mailer.messages][1:] == ["robin@new.example"]
    assert desk.row()["message_id"] != message_id


def test_a_member_without_an_address_is_sent_nothing(cli: CommandLine, desk: Post) -> None:
    fail_all(desk, 1)
    give_address(desk, None)
    assert "no e-mail address" in cli.refused("invitations", "resend", "1")
    assert cli.json(*FAILED) == {"resent": 0, "refused": {"no_address": 1}}


def test_a_refused_mail_can_be_resent_on_the_same_day(cli: CommandLine, desk: Post) -> None:
    """The relay has not taken it, so the address was not mailed."""
    fail_all(desk, 1, RelayRefused("content", permanent=True, code=554), "finish")
    assert desk.row()["offered_at"] is not None
    assert cli.json("invitations", "resend", "1")["state"] == "pending"


def test_all_that_failed_are_resent_together(cli: CommandLine, desk: Post) -> None:
    fail_all(desk, 12)
    assert cli.json(*FAILED) == {"resent": 12, "refused": {}}
    deliver(desk)
    assert Counter(message.recipient for message in desk.mailer.messages) == {
        f"robin.{number}@example.com": 1 for number in range(1, 13)
    }
    assert cli.json(*FAILED) == {"resent": 0, "refused": {}}
    [entry] = [each for each in cli.audit_trail() if each["action"] == "invitations.resent"]
    assert (entry["account_id"], entry["detail"]) == (desk.customer.account_id, {"count": 12})


def test_only_those_of_a_code_a_time_and_an_account_are_resent(
    cli: CommandLine, desk: Post
) -> None:
    other = make_customer(desk.db, name="Other")
    fail_all(desk, 2)
    fail_all(desk.as_customer(other), 3)
    tomorrow = (system_clock() + timedelta(days=1)).date().isoformat()
    nothing = {"resent": 0, "refused": {}}
    assert cli.json(*FAILED, "--code", "554") == nothing
    assert cli.json(*FAILED[:-1], tomorrow) == nothing
    theirs = cli.json(*FAILED, "--code", "553", "--account", str(other.account_id))
    assert theirs == {"resent": 3, "refused": {}}
    assert "2 of 2 failed invitations are pending again." in cli.text(*FAILED)


def test_a_run_that_was_killed_goes_on_and_mails_no_member_twice(
    cli: CommandLine, desk: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resend, "PAGE_ROWS", 4)
    fail_all(desk, 10)
    whole = resend.resend_failed
    pages: list[resend.ResentPage] = []

    def killed(*arguments: object, **more: object) -> resend.ResentPage:
        if len(pages) == 2:
            raise KeyboardInterrupt
        pages.append(whole(*arguments, **more))  # type: ignore[arg-type]
        return pages[-1]

    monkeypatch.setattr(resend, "resend_failed", killed)
    assert cli.run(*FAILED).exit_code != 0
    monkeypatch.setattr(resend, "resend_failed", whole)
    deliver(desk)
    assert len(desk.mailer.messages) == 8
    assert cli.json(*FAILED) == {"resent": 2, "refused": {}}
    deliver(desk)
    assert set(Counter(each.recipient for each in desk.mailer.messages).values()) == {1}
    assert desk.states() == ["sent"] * 10


def test_addresses_that_must_not_be_mailed_are_counted_by_reason(
    cli: CommandLine, desk: Post
) -> None:
    fail_all(desk, 4)
    cli.json("suppression", "add", "robin.1@example.com")
    give_address(desk, "robin.3@example.com", member_id=2)
    assert cli.json(*FAILED) == {"resent": 2, "refused": {"suppressed": 1, "already_pending": 1}}


def test_one_that_may_have_been_sent_counts_as_mailed(cli: CommandLine, desk: Post) -> None:
    """Its answer was lost, and an operator settled it as failed."""
    fail_all(desk, 1, AnswerLost(), "finish")
    cli.json("invitations", "settle", "1", "--as", "failed")
    assert cli.json(*FAILED) == {"resent": 0, "refused": {"mailed_recently": 1}}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--state", "failed"],
        ["--since", YESTERDAY],
        ["1", "--state", "failed", "--since", YESTERDAY],
        ["1", "--code", "554"],
    ],
)
def test_a_resend_names_one_invitation_or_what_failed_since(
    cli: CommandLine, words: list[str]
) -> None:
    assert "Give either ID, or" in cli.refused("invitations", "resend", *words, status=2)
    assert "failed" in cli.refused("invitations", "resend", "--state", "sent", status=2)
