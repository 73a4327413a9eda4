"""The text of an invitation: from what is known of it to the bytes that a relay is given; it sends nothing.

Nothing of the member is in a mail but the address, and no two people share one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.letters import InvitationLetter
from frontdesk.invitations.links import Tokens, give_tokens, registration_link, unsubscribe_link
from frontdesk.invitations.mime import mail_bytes, mailable, mailbox, unstructured
from frontdesk.invitations.wording import OWN_WORDS, Filling, Wording, find_wordings, render
from frontdesk.mail.model import MailMessage


@dataclass(frozen=True, slots=True)
class Gathered:
    """What `compose` needs besides the letters: tokens by invitation id, own wordings by account id, and the time."""

    tokens: Mapping[int, Tokens]
    wordings: Mapping[int, Wording]
    now: datetime


def gather(tx: Tx, letters: Sequence[InvitationLetter], *, link_secret: str, now: datetime) -> Gathered:
    """Read (and store) for all the letters at once; runs in the transaction that claims them."""
    message_ids = {letter.invitation_id: letter.message_id for letter in letters}
    tokens = give_tokens(tx, message_ids, link_secret=link_secret, now=now)
    return Gathered(tokens, find_wordings(tx, {letter.account_id for letter in letters}), now)


def compose(letter: InvitationLetter, gathered: Gathered, *, base_url: str, mail_from: str) -> MailMessage:
    """The message; pure, runs outside any transaction. Raises Invalid when it can't be written.

    What can't be delivered comes back to `mail_from`, whoever the sender is: there `frontdesk bounces read` finds it.
    """
    tokens = gathered.tokens[letter.invitation_id]
    unsubscribe = unsubscribe_link(base_url=base_url, token=tokens.unsubscribe)
    filling = Filling(
        plan_name=letter.plan_name,
        sender_name=letter.sender_name or "",
        registration_link=registration_link(
            base_url=base_url, registration_url=letter.registration_url, token=tokens.registration
        ),
        unsubscribe_link=unsubscribe,
    )
    rendered = render(gathered.wordings.get(letter.account_id, OWN_WORDS), filling)
    try:
        recipient = mailable(letter.address)
        headers = (
            ("From", mailbox(letter.sender_name, letter.sender_address or mail_from)),
            ("To", recipient),
            ("Subject", unstructured(rendered.subject)),
            ("Date", _date(gathered.now)),
            ("Message-ID", f"<{letter.message_id}>"),
            ("List-Unsubscribe", f"<{unsubscribe}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("Auto-Submitted", "auto-generated"),
        )
        content = mail_bytes(headers, text=rendered.text, html=rendered.html, seed=letter.message_id)
        return MailMessage(mailable(mail_from), recipient, letter.message_id, content)
    except ValueError:
        fault = Fault("address", "not_mailable", "must be an address that a mail can carry")
        raise Invalid([fault]) from None  # the library's message holds the address


@lru_cache(maxsize=8)
def _date(now: datetime) -> str:
    """As RFC 5322 writes it; all the letters of one claim have the same."""
    return format_datetime(now.astimezone(UTC))
