"""The mail as it leaves, byte for byte: who changes the words sees here what readers will see."""

from email.utils import format_datetime
from pathlib import Path

from frontdesk.invitations.message import compose, derive_tokens
from frontdesk.invitations.model import ClaimedInvitation, MessageContext, SenderProfile
from tests.factories import NOW

SNAPSHOT = Path(__file__).parent / "invitation.eml"


def written() -> bytes:
    invitation = ClaimedInvitation(1, 1, 1, 1, "immediate", "robin@example.com", "4711@mail.example.com")
    page = "https://join.example.com/start?from=mail"
    name = "Gold & Silver – 2027"  # noqa: RUF001 - names have such letters
    sender = SenderProfile(name, "Example Health", "care@example.com", page)
    tokens = {1: derive_tokens("s" * 32, invitation.message_id)}
    context = MessageContext(tokens, {1: sender}, format_datetime(NOW))
    return compose(
        invitation, context, base_url="https://api.example.com", mail_from="mail@example.com"
    ).content


def test_the_mail_is_the_one_in_the_file() -> None:
    assert written() == SNAPSHOT.read_bytes()
