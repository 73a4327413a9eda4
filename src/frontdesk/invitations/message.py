"""The message of an invitation: its links, headers and bytes (RFC 5322). It holds nothing of the member but the address.

The token of a link is HMAC-SHA256 over the Message-ID with FRONTDESK_LINK_SECRET, which is kept outside the database
(docs/decisions/0035). So a second copy of a message carries the same links, though the database holds only hashes of their
tokens.

The headers are written here and not by the email package: a library that parses and folds them again can be made to take a
name for a header of its own (CVE-2024-6923).
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from email.utils import quote as escape_quotes
from urllib.parse import quote, urlsplit, urlunsplit

from email_validator import validate_email

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import insert_missing
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import store
from frontdesk.invitations.model import (
    ClaimedInvitation,
    LinkPurpose,
    LinkTarget,
    LinkTokens,
    MessageContext,
    MessageTemplate,
)
from frontdesk.invitations.tables import invitation_links
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


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64url


def derive_tokens(link_secret: str, message_id: str) -> LinkTokens:
    """The tokens of the message with this Message-ID; the same each time."""
    # No purpose holds a space, so no two pairs of purpose and Message-ID are the same text.
    digests = (
        hmac.digest(link_secret.encode(), f"{purpose} {message_id}".encode(), "sha256")
        for purpose in ("registration", "unsubscribe")
    )
    return LinkTokens(*(base64.urlsafe_b64encode(raw).rstrip(b"=").decode() for raw in digests))


def issue_tokens(
    tx: Tx, message_ids: Mapping[int, str], *, link_secret: str, now: datetime
) -> dict[int, LinkTokens]:
    """The tokens of these messages (Message-IDs by invitation id), with their hashes stored so that the links work.

    Runs in the transaction that claims the invitations, before anything leaves. Stored tokens stay as they are.
    """
    tokens = {id_: derive_tokens(link_secret, message_id) for id_, message_id in message_ids.items()}
    at = stored_time(now)
    rows = [
        {
            "registration_hash": digest(pair.registration),
            "unsubscribe_hash": digest(pair.unsubscribe),
            "message_id": message_ids[id_],
            "invitation_id": id_,
            "created_at": at,
        }
        for id_, pair in tokens.items()
    ]
    insert_missing(tx, invitation_links, rows)
    return tokens


def find_link_target(tx: Tx, purpose: LinkPurpose, token: str) -> LinkTarget | None:
    """What the link with this token belongs to; None for a token that was never issued for the purpose."""
    return store.find_link_target(tx, purpose, digest(token)) if _TOKEN.fullmatch(token) else None


def registration_link(*, base_url: str, registration_url: str | None, token: str) -> str:
    """The account's own page with the token as `invitation`; without one, our page, which can lead on to it later."""
    if registration_url is None:
        return f"{base_url}/register/{token}"
    parts = urlsplit(registration_url)
    # What is there stays as it is; a character that no URL may hold is encoded, so that it can't end the link early.
    query = "&".join(part for part in (parts.query, f"invitation={token}") if part)
    return quote(urlunsplit(parts._replace(query=query)), safe="/:?#[]@!$&'()*+,;=%-._~")


def digest(token: str) -> str:
    """The hash by which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


LINE_LENGTH = 78
_WORD_BYTES = 39  # of text in one encoded word, so that a line has at most 76 characters (RFC 2047)

_PRINTABLE = re.compile(r"[ -~]+")
_SPECIALS = frozenset(' <>(),;:\\"[]')


def mail_bytes(headers: Sequence[tuple[str, str]], *, text: str, html: str | None, seed: str) -> bytes:
    """The mail, with CRLF line ends. The same arguments give the same bytes: `seed` determines the boundary of the parts.

    Raises ValueError for a header that holds a control character.
    """
    head = "".join(f"{name}: {_checked(value)}\r\n" for name, value in headers)
    return head.encode() + b"MIME-Version: 1.0\r\n" + _body(text, html, seed)


def mailbox(name: str | None, address: str) -> str:
    """Name and address for a header. The name is quoted, or encoded when it has more than ASCII or looks encoded itself."""
    if not name:
        return mailable(address)
    phrase = f'"{escape_quotes(name)}"' if _is_plain(name) else _encoded_words(name)
    space = " " if len(phrase) + len(address) < LINE_LENGTH - 10 else "\r\n "
    return f"{phrase}{space}<{mailable(address)}>"


def unstructured(text: str) -> str:
    """Free text of a header, folded where it has to be."""
    return text if _is_plain(text) else _encoded_words(text)


def mailable(address: str) -> str:
    """The address for SMTP: the domain in ASCII, the local part unchanged; it may need SMTPUTF8 of the relay.

    Raises ValueError (email-validator's error is one) for anything else.
    """
    if address.isascii():
        if not _PRINTABLE.fullmatch(address) or _SPECIALS & set(address) or address.count("@") != 1:
            raise ValueError("not an address that can be mailed")
        return address
    found = validate_email(address, check_deliverability=False, globally_deliverable=False)
    return found.ascii_email or f"{found.local_part}@{found.ascii_domain}"


def _body(text: str, html: str | None, seed: str) -> bytes:
    if html is None:
        return _part("text/plain", text)
    # No line of a quoted-printable part can hold "=_", so the boundary stands nowhere else.
    boundary = b"=_" + hashlib.sha256(seed.encode()).hexdigest()[:24].encode()
    parts = (_part("text/plain", text), _part("text/html", html))
    head = b'Content-Type: multipart/alternative; boundary="%s"\r\n\r\n' % boundary
    return head + b"".join(b"--%s\r\n%s" % (boundary, part) for part in parts) + b"--%s--\r\n" % boundary


def _part(content_type: str, content: str) -> bytes:
    lines = content.strip("\r\n").replace("\r\n", "\n").replace("\r", "\n")
    encoded = binascii.b2a_qp(lines.encode("utf-8", "replace"), istext=True).replace(b"\n", b"\r\n")
    head = f"Content-Type: {content_type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable"
    return head.encode() + b"\r\n\r\n" + encoded + b"\r\n"


def _is_plain(text: str) -> bool:
    """Whether the text fits one header line as it is and does not look like encoded words."""
    return len(text) <= LINE_LENGTH - 10 and _PRINTABLE.fullmatch(text) is not None and "=?" not in text


def _encoded_words(text: str) -> str:
    """Encoded words of whole characters (RFC 2047), a line each."""
    chunks, chunk = [], b""
    for character in text:
        encoded = character.encode("utf-8", "replace")
        if len(chunk) + len(encoded) > _WORD_BYTES:
            chunks.append(chunk)
            chunk = b""
        chunk += encoded
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(chunk).decode()}?=" for chunk in (*chunks, chunk))


def _checked(value: str) -> str:
    """The last check before the wire: no line end or control character except our own folding."""
    if not value.replace("\r\n ", "").isprintable():
        raise ValueError("a header with a control character")
    return value
