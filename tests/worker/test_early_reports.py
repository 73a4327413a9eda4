"""A report that comes while the relay is still asked: it settles the mail as soon as nobody waits for the answer any more."""

from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from frontdesk.db.engine import write_alone
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.tables import delivery_reports, invitations
from frontdesk.mail.model import AnswerLost, MailMessage, RelayRefused
from tests.mail.memory import failing
from tests.worker.conftest import Post

SETTLED = [(ReportEvent.DELIVERED, "sent"), (ReportEvent.BOUNCED, "failed"), (ReportEvent.COMPLAINED, "sent")]


def told(post: Post, event: ReportEvent) -> ReportEffect:
    report = DeliveryReport(str(post.row()["message_id"]), event)
    return write_alone(post.db, lambda tx: receive_report(tx, report, now=post.clock()))


def left_offered(post: Post) -> None:
    """What a worker leaves that is killed while the relay is about to answer."""
    post.enrol()
    post.worker(fault=failing("finish", AnswerLost())).turn()
    post.mailer.fault = None
    values = {"state": "offered", "losses": 0, "due_at": post.clock() + timedelta(seconds=60)}
    write_alone(post.db, lambda tx: tx.execute(update(invitations).values(values)))


def left_ambiguous(post: Post) -> None:
    left_offered(post)
    post.clock.advance(2_000)
    post.worker().turn()
    assert post.states() == ["ambiguous"]


def turns(post: Post) -> None:
    worker = post.worker()
    for _ in range(3):
        post.clock.advance(90_000)
        worker.turn()


@pytest.mark.parametrize(("event", "becomes"), SETTLED)
def test_a_report_that_came_before_a_killed_workers_lease_lapsed_spares_the_second_copy(
    post: Post, event: ReportEvent, becomes: str
) -> None:
    left_offered(post)
    assert told(post, event) is ReportEffect.APPLIED
    assert post.states() == ["offered"]
    turns(post)
    assert (post.states(), post.row()["reason"], post.mailer.messages) == ([becomes], "by_report", [])


def test_a_lapsed_lease_without_a_report_sends_once_more(post: Post) -> None:
    left_offered(post)
    turns(post)
    assert (post.states(), len(post.mailer.messages)) == (["sent"], 1)


def test_what_was_reported_and_not_heeded_before_a_hold_ends_is_heeded_then(post: Post) -> None:
    left_ambiguous(post)
    stored(post, ReportEvent.DELIVERED)
    turns(post)
    assert (post.states(), post.mailer.messages) == (["sent"], [])


@pytest.mark.parametrize(("event", "becomes"), SETTLED)
def test_a_repeated_report_settles_what_the_first_did_not(
    post: Post, event: ReportEvent, becomes: str
) -> None:
    left_ambiguous(post)
    stored(post, event)
    assert [told(post, event), told(post, event)] == [ReportEffect.APPLIED, ReportEffect.KNOWN]
    assert post.states() == [becomes]


def test_a_report_that_comes_while_the_second_copy_is_refused_for_now_spares_it(post: Post) -> None:
    def refused(step: str, _message: MailMessage) -> None:
        if step == "finish":
            told(post, ReportEvent.DELIVERED)
            raise RelayRefused("content", permanent=False, code=451)

    left_ambiguous(post)
    post.clock.advance(90_000)
    post.worker(fault=refused).turn()
    post.mailer.fault = None
    turns(post)
    assert (post.states(), post.row()["reason"], post.mailer.messages) == (["sent"], "by_report", [])


def stored(post: Post, event: ReportEvent) -> None:
    """The report as it stands when it was taken note of while its mail was still offered."""
    row = post.row()
    known = {"message_id": row["message_id"], "kind": event.value, "invitation_id": row["id"]}
    with post.db.write() as tx:
        tx.execute(insert(delivery_reports).values(known | {"received_at": post.clock()}))
