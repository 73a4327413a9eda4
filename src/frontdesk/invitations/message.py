"""The message of an invitation. It holds nothing of the member but the address, and has one recipient."""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime

from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import store
from frontdesk.invitations.links import issue_tokens, registration_link
from frontdesk.invitations.mime import mail_bytes, mailable, mailbox, unstructured
from frontdesk.invitations.model import (
    ClaimedInvitation,
    MessageContext,
    MessageTemplate,
)
from frontdesk.invitations.template import TemplateValues, render
from frontdesk.mail.model import MailMessage


def load_message_context(
    tx: Tx, claimed: Sequence[ClaimedInvitation], *, link_secret: str, now: datetime
) -> MessageContext:
    """Store the links of the messages, read their senders and templates, in the transaction that claims the invitations."""
    message_ids = {invitation.id: invitation.message_id for invitation in claimed}
    tokens = issue_tokens(tx, message_ids, link_secret=link_secret, now=now)
    senders = store.find_senders(tx, {invitation.plan_id for invitation in claimed})
    templates = store.find_templates(tx, {invitation.account_id for invitation in claimed})
    return MessageContext(tokens, senders, templates, format_datetime(now.astimezone(UTC)))


def compose(
    invitation: ClaimedInvitation, context: MessageContext, *, base_url: str, mail_from: str
) -> MailMessage:
    """The message as a relay gets it; pure, runs outside any transaction. Raises Invalid when it can't be written.

    The envelope's sender is `mail_from`, whatever From says: bounces come back there, for `frontdesk bounces read`.
    """
    tokens, sender = context.tokens[invitation.id], context.senders[invitation.plan_id]
    unsubscribe = f"{base_url}/unsubscribe/{tokens.unsubscribe}"
    values = TemplateValues(
        plan_name=sender.plan_name,
        sender_name=sender.sender_name or "",
        registration_link=registration_link(
            base_url=base_url, registration_url=sender.registration_url, token=tokens.registration
        ),
        unsubscribe_link=unsubscribe,
    )
    rendered = render(context.templates.get(invitation.account_id, MessageTemplate()), values)
    try:
        recipient = mailable(invitation.address)
        headers = (
            ("From", mailbox(sender.sender_name, sender.sender_address or mail_from)),
            ("To", recipient),
            ("Subject", unstructured(rendered.subject)),
            ("Date", context.date),
            ("Message-ID", f"<{invitation.message_id}>"),
            ("List-Unsubscribe", f"<{unsubscribe}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("Auto-Submitted", "auto-generated"),
        )
        content = mail_bytes(headers, text=rendered.text, html=rendered.html, seed=invitation.message_id)
        return MailMessage(mailable(mail_from), recipient, invitation.message_id, content)
    except ValueError:
        fault = Fault("address", "not_mailable", "must be an address that a mail can carry")
        raise Invalid([fault]) from None  # the library's message holds the address
