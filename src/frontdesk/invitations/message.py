"""The text of an invitation: from what is known of it to the bytes that a relay is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP

from frontdesk.db import Tx
from frontdesk.invitations.letters import InvitationLetter
from frontdesk.mail import Letter


@dataclass(frozen=True, slots=True)
class Gathered:
    """What `compose` needs of the database for a set of letters."""


def gather(tx: Tx, letters: Sequence[InvitationLetter]) -> Gathered:
    """Read (and store) for all the letters at once; runs in the transaction that claims them."""
    return Gathered()


def compose(letter: InvitationLetter, gathered: Gathered, *, base_url: str, mail_from: str) -> Letter:
    """The message; pure, runs outside any transaction. Raises Invalid when it can't be written (a template at fault)."""
    message = EmailMessage(policy=SMTP)
    sender = letter.sender_address or mail_from
    message["From"] = sender
    message["To"] = letter.address
    message["Subject"] = "Your invitation"
    message["Message-ID"] = f"<{letter.message_id}>"
    message.set_content(f"You are invited to register: {letter.registration_url or base_url}\n")
    return Letter(sender, letter.address, letter.message_id, message.as_bytes())
