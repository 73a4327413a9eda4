"""The mail as it leaves, byte for byte: who changes the words sees here what readers will see."""

from email.utils import format_datetime
from pathlib import Path

from frontdesk.invitations.message import compose, derive_tokens
from frontdesk.invitations.model import ClaimedInvitation, MessageContext, SenderProfile
from tests.factories import NOW

SNAPSHOT = Path(__file__).parent / "invitation.eml"


def written() -> bytes:
    invitation = ClaimedInvitation(
        id=1,
        account_id=1,
        plan_id=1,
        member_id=1,
        delivery="immediate",
        address="robin@example.com",
        message_id="4711@mail.example.com",
    )
    sender = SenderProfile(
        plan_name="Gold & Silver – 2027",  # noqa: RUF001 - names have such letters
        sender_name="Example Health",
        sender_address="care@example.com",
        registration_url="https://join.example.com/start?from=mail",
    )
    context = MessageContext(
        {1: derive_tokens("s" * 32, invitation.message_id)}, {1: sender}, {}, format_datetime(NOW)
    )
    sent = compose(invitation, context, base_url="https://api.example.com", mail_from="mail@example.com")
    return sent.content


def test_the_mail_is_the_one_in_the_file() -> None:
    assert written() == SNAPSHOT.read_bytes()
