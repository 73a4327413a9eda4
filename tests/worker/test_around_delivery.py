"""Delivery and what stands around it, together: messages, links, reports, suppression, the sandbox's mailbox."""

import email
import email.policy
import re

from frontdesk.db.engine import write_alone
from frontdesk.invitations import suppress
from frontdesk.invitations.model import DeliveryReport, ReportEvent, SuppressionReason
from frontdesk.invitations.reports import receive_report
from frontdesk.mail.model import AnswerLost, MailMessage
from frontdesk.mailbox import list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.conftest import Api
from tests.invitations.mails import suppressed
from tests.worker.conftest import Post


def text_of(message: MailMessage) -> str:
    part = email.message_from_bytes(message.content, policy=email.policy.default).get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def links_of(message: MailMessage) -> list[str]:
    """The registration link and the unsubscribe link, without our base URL."""
    found = re.findall(r"https://\S+", text_of(message))
    return [link.removeprefix("https://api.example.com") for link in found]


class LosesTheFirst:
    """A relay that takes every message and loses the first answer: it has lost one, and a worker goes on a day later."""

    def __init__(self, post: Post) -> None:
        self.taken: list[MailMessage] = []
        self.post = post
        self.worker = post.worker(fault=self._fault)
        post.enrol()
        self.worker.turn()

    def a_day_later(self) -> None:
        self.post.clock.advance(90_000)
        self.worker.turn()

    def _fault(self, step: str, message: MailMessage) -> None:
        if step == "finish":
            self.taken.append(message)
            if len(self.taken) == 1:
                raise AnswerLost


def test_the_links_of_a_delivered_mail_work(post: Post, api: Api) -> None:
    post.enrol()
    post.worker().turn()
    [message] = post.mailer.messages
    register, unsubscribe = links_of(message)
    anybody = api.as_(None)
    assert "Example Health Plan 0" in anybody.get(register).text
    assert anybody.request("POST", unsubscribe).status_code == 200
    assert suppressed(post.db) == {message.recipient: "unsubscribe"}


def test_a_copy_after_a_lost_answer_has_the_same_message_id_and_links(post: Post) -> None:
    relay = LosesTheFirst(post)
    relay.a_day_later()
    assert post.states() == ["sent"]
    first, second = relay.taken
    assert (first.message_id, links_of(first)) == (second.message_id, links_of(second))


def test_who_unsubscribed_meanwhile_gets_no_second_copy(post: Post) -> None:
    relay = LosesTheFirst(post)
    with post.db.write() as tx:
        suppress(tx, relay.taken[0].recipient.upper(), SuppressionReason.UNSUBSCRIBE, now=post.clock())
    relay.a_day_later()
    assert (post.row()["state"], post.row()["reason"], len(relay.taken)) == ("cancelled", "suppressed", 1)


def test_a_bounce_that_overtakes_the_relays_answer_counts(post: Post) -> None:
    def bounces_at_once(step: str, message: MailMessage) -> None:
        if step == "finish":
            bounced = DeliveryReport(message.message_id, ReportEvent.BOUNCED, "5.1.1")
            write_alone(post.db, lambda tx: receive_report(tx, bounced, now=post.clock()))

    post.enrol()
    post.worker(fault=bounces_at_once).turn()
    assert (post.row()["state"], post.row()["reason"]) == ("failed", "by_report")
    assert suppressed(post.db) == {"robin.1@example.com": "hard_bounce"}


def test_the_sandboxs_addresses_act(post: Post) -> None:
    for name in ("robin", "bounce", "complaint", "greylist"):
        post.enrol(email=f"{name}@example.com")
    options = WorkerOptions(
        connections=2, poll_seconds=0.02, idle_seconds=0.02, read_time=lambda _tx: post.clock()
    )
    worker = DeliveryWorker(post.config, post.db, MailCatcher(post.db, post.clock), options)
    worker.turn()
    assert post.states() == ["sent", "failed", "sent", "pending"]
    post.clock.advance(80)
    worker.turn()
    worker.close()
    assert post.states() == ["sent", "failed", "sent", "sent"]
    assert suppressed(post.db) == {"bounce@example.com": "hard_bounce", "complaint@example.com": "complaint"}
    with post.db.read() as tx:
        outcomes = sorted((message.recipient, message.outcome) for message in list_messages(tx))
    assert outcomes == [
        ("bounce@example.com", "bounced"),
        ("complaint@example.com", "complained"),
        ("greylist@example.com", "caught"),
        ("greylist@example.com", "greylisted"),
        ("robin@example.com", "caught"),
    ]
