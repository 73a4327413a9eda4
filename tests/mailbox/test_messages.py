"""What the sandbox keeps, and what its acting addresses bring about."""

import pytest

from frontdesk.db import Database
from frontdesk.errors import NotFound
from frontdesk.invitations.model import InvitationState
from frontdesk.mail.model import Mailer, MailMessage, RelayRefused
from frontdesk.mailbox import delete_messages, get_message, list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.mailbox.model import decode_message
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer
from tests.invitations.mails import mailed, state_of, suppressed

CONTENT = b"From: care@example.com\r\nSubject: =?utf-8?b?w7x4?=\r\n\r\nHello\r\n"


def send(mailer: Mailer, recipient: str, message_id: str = "a@mail.example.com") -> int:
    conversation = mailer.open()
    conversation.offer(MailMessage("mail@example.com", recipient, message_id, CONTENT))
    return conversation.finish()


def test_a_caught_mail_is_kept_as_it_would_have_left(db: Database, clock: SetClock) -> None:
    for number in range(3):
        assert (
            send(MailCatcher(db, clock), f"robin.{number}@example.com", f"{number}@mail.example.com") == 250
        )
    with db.read() as tx:
        newest, *older = list_messages(tx)
        assert [message.id for message in older] == [2, 1]
        assert list_messages(tx, before_id=2) == [get_message(tx, 1)]
        assert list_messages(tx, limit=1) == [newest]
        with pytest.raises(NotFound):
            get_message(tx, 4)
    assert (newest.recipient, newest.message_id) == ("robin.2@example.com", "2@mail.example.com")
    assert (newest.sender, newest.outcome) == ("mail@example.com", "caught")
    assert (newest.content, newest.caught_at) == (CONTENT, clock())
    with db.write() as tx:
        assert delete_messages(tx) == 3
        assert list_messages(tx) == []


def test_a_mail_is_read_with_its_headers_decoded() -> None:
    reading = decode_message(CONTENT)
    assert (reading.subject, reading.text.strip(), reading.html) == ("üx", "Hello", None)
    assert reading.headers[0] == ("From", "care@example.com")
    assert decode_message(b"").subject == ""


@pytest.mark.parametrize(
    ("name", "becomes", "reason"),
    [("bounce", InvitationState.FAILED, "hard_bounce"), ("complaint", InvitationState.SENT, "complaint")],
)
def test_an_acting_address_is_reported_and_suppressed(
    api: Api, db: Database, customer: Customer, name: str, becomes: InvitationState, reason: str
) -> None:
    mail = mailed(api, db, customer)
    send(MailCatcher(db, lambda: NOW), f"{name}@example.com", mail.message_id)
    assert (state_of(db, mail), suppressed(db)) == (becomes, {mail.address: reason})


def test_greylisting_is_remembered_over_processes(db: Database, clock: SetClock) -> None:
    with pytest.raises(RelayRefused):
        send(MailCatcher(db, clock), "greylist@example.com")
    with pytest.raises(RelayRefused):
        send(MailCatcher(db, clock), "greylist@example.com", "b@mail.example.com")
    assert send(MailCatcher(db, clock), "greylist@example.com") == 250
    with db.read() as tx:
        assert [message.outcome for message in list_messages(tx)] == ["caught", "greylisted", "greylisted"]
