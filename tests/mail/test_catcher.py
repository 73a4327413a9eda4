"""The sandbox's relay: catches everything, and some addresses act."""

import pytest

from frontdesk.mail.catcher import SLOW_SECONDS, CaughtOutcome, MailCatcher, outcome_for
from frontdesk.mail.model import MailMessage, RelayRefused


class Kept:
    """A mailbox in memory."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, CaughtOutcome]] = []

    def keep(self, message: MailMessage, outcome: CaughtOutcome) -> None:
        self.kept.append((message.message_id, outcome))

    def has_seen(self, message_id: str) -> bool:
        return any(seen == message_id for seen, _ in self.kept)


def message(recipient: str, message_id: str = "a@mail.example.com") -> MailMessage:
    return MailMessage("mail@example.com", recipient, message_id, b"Subject: x\r\n\r\nx\r\n")


@pytest.mark.parametrize(
    ("recipient", "outcome"),
    [("robin@example.com", CaughtOutcome.CAUGHT), ("bounce@example.com", CaughtOutcome.BOUNCED),
     ("Bounce+7@example.org", CaughtOutcome.BOUNCED), ("complaint@example.com", CaughtOutcome.COMPLAINED),
     ("slow@example.com", CaughtOutcome.SLOW), ("greylist@example.com", CaughtOutcome.GREYLISTED),
     ("bounces@example.com", CaughtOutcome.CAUGHT), ("robin@bounce.example.com", CaughtOutcome.CAUGHT)],
)  # fmt: skip
def test_some_addresses_act_in_any_domain(recipient: str, outcome: CaughtOutcome) -> None:
    assert outcome_for(recipient) is outcome


def test_every_message_is_kept_and_nothing_is_sent() -> None:
    mailbox, pauses = Kept(), list[float]()
    session = MailCatcher(mailbox, pauses.append).open()
    for name in ("robin", "bounce", "complaint", "slow"):
        session.offer(message(f"{name}@example.com", name))
        assert session.finish() == 250
    session.close()
    assert mailbox.kept == [
        ("robin", CaughtOutcome.CAUGHT),
        ("bounce", CaughtOutcome.BOUNCED),
        ("complaint", CaughtOutcome.COMPLAINED),
        ("slow", CaughtOutcome.SLOW),
    ]
    assert pauses == [SLOW_SECONDS]


def test_a_greylisted_address_is_put_off_once_and_taken_the_next_time() -> None:
    mailbox = Kept()
    session = MailCatcher(mailbox).open()
    with pytest.raises(RelayRefused) as caught:
        session.offer(message("greylist@example.com"))
    assert (caught.value.stage, caught.value.permanent, caught.value.code) == ("recipient", False, 451)
    session.offer(message("greylist@example.com"))
    assert session.finish() == 250
    assert [outcome for _, outcome in mailbox.kept] == [CaughtOutcome.GREYLISTED, CaughtOutcome.CAUGHT]


def test_a_message_that_was_taken_back_is_not_kept() -> None:
    mailbox = Kept()
    session = MailCatcher(mailbox).open()
    session.offer(message("robin@example.com"))
    session.abandon()
    with pytest.raises(RelayRefused):
        session.finish()
    assert mailbox.kept == []
