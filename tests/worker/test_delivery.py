"""What becomes of a mail: it is sent once, put off, refused or lost; and what reports, links and
the sandbox make of it.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Unavailable
from frontdesk.invitations.delivery import get_invitation
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.tables import delivery_reports, invitations
from frontdesk.mail.model import AnswerLost, MailMessage, RelayRefused
from frontdesk.mailbox import list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.reach import EVERY
from frontdesk.worker import delivery
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.invitations.mails import links_of, suppressed
from tests.mail.memory import failing
from tests.worker.conftest import Post

SETTLED = [
    (ReportEvent.DELIVERED, "sent"),
    (ReportEvent.BOUNCED, "failed"),
    (ReportEvent.COMPLAINED, "sent"),
]


def test_a_refusal_for_now_is_tried_again_later_with_the_same_message_id(post: Post) -> None:
    post.enrol()
    worker = post.worker(
        fault=failing("offer", RelayRefused("recipient", permanent=False, code=451))
    )
    worker.turn()
    before = post.row()
    assert (before["state"], before["attempts"], before["relay_code"]) == ("pending", 1, 451)
    assert worker.turn() == 0
    post.mailer.fault = None
    post.clock.advance(80)
    worker.turn()
    assert post.states() == ["sent"]
    assert post.mailer.messages[0].message_id == before["message_id"]


@pytest.mark.parametrize(
    ("refusal", "told", "attempts"),
    [
        (RelayRefused("content", permanent=True, code=554), ("refused", 554), 0),
        (RelayRefused("content", permanent=False, code=450), ("too_many_attempts", 450), 3),
    ],
    ids=["for good", "for now, again and again"],
)
def test_a_refusal_is_final_at_once_or_in_the_end(
    post: Post, refusal: RelayRefused, told: tuple[str, int], attempts: int
) -> None:
    post.enrol()
    worker = post.worker(fault=failing("finish", refusal), max_attempts=3)
    for _ in range(5):
        worker.turn()
        post.clock.advance(90_000)
    row = post.row()
    assert (row["state"], row["reason"], row["relay_code"], row["attempts"]) == (
        "failed",
        *told,
        attempts,
    )


def test_a_mail_with_a_lost_answer_is_sent_once_more_after_a_day(post: Post) -> None:
    taken = []

    def lost(step: str, message: MailMessage) -> None:
        if step == "finish":
            taken.append(message)
            raise AnswerLost

    post.enrol()
    worker = post.worker(fault=lost)
    for seconds, sent, losses in ((0, 1, 1), (86_000, 0, 1), (500, 1, 2), (1_000_000, 0, 2)):
        post.clock.advance(seconds)
        assert worker.turn() == sent
        assert (post.row()["state"], post.row()["losses"]) == ("ambiguous", losses)
    first, second = taken
    assert (first.message_id, links_of(first)) == (second.message_id, links_of(second))


def test_commits_whose_answer_is_lost_keep_back_no_mail(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = []

    def commit_unheard(db: Database, work: Callable[[Tx], Any]) -> Any:
        """Each commit is stored; the answers of the offer and of the outcome are lost."""
        result = write_alone(db, work)
        commits.append(work)
        if len(commits) in (2, 4):
            raise Unavailable("The connection was lost.", outcome_unknown=True)
        return result

    monkeypatch.setattr(delivery, "write_alone", commit_unheard)
    monkeypatch.setattr(delivery, "DATABASE_RETRY_SECONDS", 0.0)
    post.enrol()
    post.worker().turn()
    assert len(commits) == 5  # the claim, and the offer and the outcome twice each
    assert post.states() == ["sent"]
    assert len(post.mailer.messages) == 1
    _, steps = write_alone(post.db, lambda tx: get_invitation(tx, EVERY, post.row()["id"]))
    assert [step.to_state for step in steps] == ["claimed", "offered", "sent"]


def report(post: Post, event: ReportEvent) -> ReportEffect:
    told = DeliveryReport(str(post.row()["message_id"]), event)
    return write_alone(post.db, lambda tx: receive_report(tx, told, now=post.clock()))


def note_early(post: Post, event: ReportEvent) -> None:
    """The report as it stands when it was taken note of while its mail was still offered."""
    row = post.row()
    known = {"message_id": row["message_id"], "kind": event.value, "invitation_id": row["id"]}
    with post.db.write() as tx:
        tx.execute(insert(delivery_reports).values(known | {"received_at": post.clock()}))


def leave_offered(post: Post) -> None:
    """What a worker leaves that is killed while the relay is about to answer."""
    post.enrol()
    post.worker(fault=failing("finish", AnswerLost())).turn()
    post.mailer.fault = None
    values = {"state": "offered", "losses": 0, "due_at": post.clock() + timedelta(seconds=60)}
    write_alone(post.db, lambda tx: tx.execute(update(invitations).values(values)))


def lapse(post: Post) -> None:
    post.clock.advance(2_000)
    post.worker().turn()
    assert post.states() == ["ambiguous"]


def work_for_days(post: Post) -> None:
    worker = post.worker()
    for _ in range(3):
        post.clock.advance(90_000)
        worker.turn()


@pytest.mark.parametrize(("event", "becomes"), SETTLED)
@pytest.mark.parametrize("when", ["before the lease lapses", "again", "never again"])
def test_an_early_report_settles_the_mail_later(
    post: Post, event: ReportEvent, becomes: str, when: str
) -> None:
    leave_offered(post)
    if when == "before the lease lapses":
        assert (report(post, event), post.states()) == (ReportEffect.APPLIED, ["offered"])
    else:
        lapse(post)
        note_early(post, event)
    if when == "again":
        assert [report(post, event), report(post, event)] == [
            ReportEffect.APPLIED,
            ReportEffect.KNOWN,
        ]
    else:
        work_for_days(post)
    assert (post.states(), post.row()["reason"], post.mailer.messages) == (
        [becomes],
        "by_report",
        [],
    )


def test_a_report_that_comes_while_the_second_copy_is_refused_for_now_spares_it(post: Post) -> None:
    def refused(step: str, _message: MailMessage) -> None:
        if step == "finish":
            report(post, ReportEvent.DELIVERED)
            raise RelayRefused("content", permanent=False, code=451)

    leave_offered(post)
    lapse(post)
    post.clock.advance(90_000)
    post.worker(fault=refused).turn()
    post.mailer.fault = None
    work_for_days(post)
    assert (post.states(), post.row()["reason"], post.mailer.messages) == (
        ["sent"],
        "by_report",
        [],
    )


def test_the_sandboxs_addresses_act(post: Post) -> None:
    for name in ("robin", "bounce", "complaint", "greylist", "full", "refuse"):
        post.enrol(email=f"{name}@example.com")
    options = WorkerOptions(
        connections=2, poll_seconds=0.02, idle_seconds=0.02, read_time=lambda _tx: post.clock()
    )
    for greylisted in ("pending", "sent"):  # the second time by another process
        worker = DeliveryWorker(post.config, post.db, MailCatcher(post.db, post.clock), options)
        worker.turn()
        worker.close()
        assert post.states() == ["sent", "failed", "sent", greylisted, "failed", "failed"]
        post.clock.advance(80)
    assert suppressed(post.db) == {
        "bounce@example.com": "hard_bounce",
        "complaint@example.com": "complaint",
    }
    outcomes = Counter(caught.outcome for caught in post.db.ask(list_messages))
    assert outcomes == dict.fromkeys(
        ("bounced", "full", "complained", "greylisted", "refused"), 1
    ) | {"caught": 2}
