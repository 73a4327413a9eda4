"""The sandbox's relay: catches everything, and some addresses act."""

import pytest

from frontdesk.mail import Letter, Refused
from frontdesk.mail.catcher import SLOW_SECONDS, Catcher, Outcome, outcome_for


class Kept:
    """A mailbox in memory."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Outcome]] = []

    def keep(self, letter: Letter, outcome: Outcome) -> None:
        self.kept.append((letter.message_id, outcome))

    def has_seen(self, message_id: str) -> bool:
        return any(seen == message_id for seen, _ in self.kept)


def letter(recipient: str, message_id: str = "a@mail.example.com") -> Letter:
    return Letter("mail@example.com", recipient, message_id, b"Subject: x\r\n\r\nx\r\n")


@pytest.mark.parametrize(
    ("recipient", "outcome"),
    [("robin@example.com", Outcome.CAUGHT), ("bounce@example.com", Outcome.BOUNCED),
     ("Bounce+7@example.org", Outcome.BOUNCED), ("complaint@example.com", Outcome.COMPLAINED),
     ("slow@example.com", Outcome.SLOW), ("greylist@example.com", Outcome.GREYLISTED),
     ("bounces@example.com", Outcome.CAUGHT), ("robin@bounce.example.com", Outcome.CAUGHT)],
)  # fmt: skip
def test_some_addresses_act_in_any_domain(recipient: str, outcome: Outcome) -> None:
    assert outcome_for(recipient) is outcome


def test_every_letter_is_kept_and_nothing_is_sent() -> None:
    mailbox, pauses = Kept(), list[float]()
    conversation = Catcher(mailbox, pauses.append).open()
    for name in ("robin", "bounce", "complaint", "slow"):
        conversation.offer(letter(f"{name}@example.com", name))
        assert conversation.finish() == 250
    conversation.close()
    assert mailbox.kept == [
        ("robin", Outcome.CAUGHT),
        ("bounce", Outcome.BOUNCED),
        ("complaint", Outcome.COMPLAINED),
        ("slow", Outcome.SLOW),
    ]
    assert pauses == [SLOW_SECONDS]


def test_a_greylisted_address_is_put_off_once_and_taken_the_next_time() -> None:
    mailbox = Kept()
    conversation = Catcher(mailbox).open()
    with pytest.raises(Refused) as caught:
        conversation.offer(letter("greylist@example.com"))
    assert (caught.value.stage, caught.value.permanent, caught.value.code) == ("recipient", False, 451)
    conversation.offer(letter("greylist@example.com"))
    assert conversation.finish() == 250
    assert [outcome for _, outcome in mailbox.kept] == [Outcome.GREYLISTED, Outcome.CAUGHT]


def test_a_letter_that_was_taken_back_is_not_kept() -> None:
    mailbox = Kept()
    conversation = Catcher(mailbox).open()
    conversation.offer(letter("robin@example.com"))
    conversation.abandon()
    with pytest.raises(Refused):
        conversation.finish()
    assert mailbox.kept == []
