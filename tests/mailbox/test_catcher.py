"""The sandbox's relay: catches everything, and the outcome of some addresses is scripted."""

import pytest

from frontdesk.db import Database
from frontdesk.mail.model import MailMessage, RelayRefused
from frontdesk.mailbox import get_message, list_messages
from frontdesk.mailbox.catcher import SLOW_SECONDS, MailCatcher, outcome_for
from frontdesk.mailbox.model import CaughtOutcome, decode_message
from tests.conftest import SetClock

CONTENT = b"From: care@example.com\r\nSubject: =?utf-8?b?w7x4?=\r\n\r\nHello\r\n"


def message(recipient: str, message_id: str = "a@mail.example.com") -> MailMessage:
    return MailMessage("mail@example.com", recipient, message_id, CONTENT)


@pytest.mark.parametrize(
    ("recipient", "outcome"),
    [("robin@example.com", CaughtOutcome.CAUGHT), ("bounce@example.com", CaughtOutcome.BOUNCED),
     ("Bounce+7@example.org", CaughtOutcome.BOUNCED), ("complaint@example.com", CaughtOutcome.COMPLAINED),
     ("slow@example.com", CaughtOutcome.SLOW), ("greylist@example.com", CaughtOutcome.GREYLISTED),
     ("full+1@example.com", CaughtOutcome.FULL), ("refuse@example.com", CaughtOutcome.REFUSED),
     ("bounces@example.com", CaughtOutcome.CAUGHT), ("robin@bounce.example.com", CaughtOutcome.CAUGHT)],
)  # fmt: skip
def test_some_addresses_act_in_any_domain(recipient: str, outcome: CaughtOutcome) -> None:
    assert outcome_for(recipient) is outcome


def test_every_message_is_kept_as_it_would_have_left(db: Database, clock: SetClock) -> None:
    pauses = list[float]()
    session = MailCatcher(db, clock, pauses.append).open()
    session.offer(message("taken-back@example.com"))
    session.abandon()
    with pytest.raises(RelayRefused):
        session.finish()
    for name in ("robin", "slow"):
        session.offer(message(f"{name}@example.com", name))
        assert session.finish()[0] == 250
    session.close()
    listed = reversed(db.ask(list_messages))
    assert [(each.message_id, each.outcome) for each in listed] == [
        ("robin", "caught"),
        ("slow", "slow"),
    ]
    assert pauses == [SLOW_SECONDS]
    found = db.ask(lambda tx: get_message(tx, 1))
    assert (found.sender, found.recipient) == ("mail@example.com", "robin@example.com")
    assert (found.content, found.caught_at) == (CONTENT, clock())
    reading = decode_message(found.content)
    assert (reading.subject, reading.text.strip(), reading.html) == ("üx", "Hello", None)
    assert reading.headers[0] == ("From", "care@example.com")
    assert decode_message(b"").subject == ""
