"""What the sandbox keeps, and what its acting addresses bring about."""

import pytest

from frontdesk.db import Database
from frontdesk.errors import NotFound
from frontdesk.mail.model import Mailer, MailMessage
from frontdesk.mailbox import delete_messages, get_message, list_messages
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.mailbox.model import decode_message
from tests.conftest import SetClock

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
