"""The message of an invitation: its links, headers and bytes (RFC 5322). It holds nothing of the
member but the address.

The token of a link is HMAC-SHA256 over the Message-ID with FRONTDESK_LINK_SECRET, which is kept
outside the database (docs/decisions/0030). So a second copy of a message carries the same links,
though the database holds only hashes of their tokens.

The headers are written here and not by the email package: a library that parses and folds them
again can be made to take a name for a header of its own (CVE-2024-6923).
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from email.utils import quote as escape_quotes
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from email_validator import validate_email
from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from frontdesk import codes
from frontdesk.db import Tx
from frontdesk.db.sets import insert_missing
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import model
from frontdesk.invitations.store import account_settings, queries
from frontdesk.invitations.tables import invitation_links
from frontdesk.invitations.visible_names import visible_name
from frontdesk.mail.model import MailMessage
from frontdesk.text import Rejected, refuse_control_characters, stored_time


def load_message_context(
    tx: Tx, claimed: Sequence[model.ClaimedInvitation], *, link_secret: str, now: datetime
) -> model.MessageContext:
    """Store the links of the messages, read their senders and templates, in the transaction that
    claims the invitations.
    """
    message_ids = {invitation.id: invitation.message_id for invitation in claimed}
    tokens = issue_tokens(tx, message_ids, link_secret=link_secret, now=now)
    senders = account_settings.find_senders(tx, {invitation.plan_id for invitation in claimed})
    return model.MessageContext(tokens, senders, format_datetime(now.astimezone(UTC)))


def compose(
    invitation: model.ClaimedInvitation,
    context: model.MessageContext,
    *,
    base_url: str,
    mail_from: str,
) -> MailMessage:
    """The message as a relay gets it; pure, runs outside any transaction. Raises Invalid when it
    can't be written.

    The envelope's sender is `mail_from`, whatever From says: bounces come back there, for
    `frontdesk bounces read`.
    """
    tokens = context.tokens[invitation.id]
    sender = context.senders[invitation.plan_id]
    unsubscribe = f"{base_url}/unsubscribe/{tokens.unsubscribe}"
    values = TemplateValues(
        plan_name=visible_name(sender.plan_name),
        sender_name=sender.sender_name or "",
        registration_link=registration_link(
            base_url=base_url, registration_url=sender.registration_url, token=tokens.registration
        ),
        unsubscribe_link=unsubscribe,
    )
    rendered = render(sender.template, values)
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
            # By these SendGrid and Postmark name the message in their events. Postmark takes 80
            # characters.
            ("X-SMTPAPI", f'{{"unique_args": {{"message_id": "{invitation.message_id}"}}}}'),
            ("X-PM-Metadata-message-id", invitation.message_id[:80]),
        )
        content = mail_bytes(
            headers, text=rendered.text, html=rendered.html, seed=invitation.message_id
        )
        return MailMessage(mailable(mail_from), recipient, invitation.message_id, content)
    except ValueError:
        fault = Fault(
            "address", codes.operators.NOT_MAILABLE, "must be an address that a mail can carry"
        )
        raise Invalid([fault]) from None  # the library's message holds the address


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64url


def derive_tokens(link_secret: str, message_id: str) -> model.LinkTokens:
    """The tokens of the message with this Message-ID; the same each time."""
    return model.LinkTokens(
        *(
            derive_token(link_secret, purpose, message_id)
            for purpose in ("registration", "unsubscribe")
        )
    )


def derive_token(link_secret: str, purpose: str, subject: str) -> str:
    """The token of a purpose and a subject. No purpose holds a space, so no two pairs of them are
    the same text.
    """
    raw = hmac.digest(link_secret.encode(), f"{purpose} {subject}".encode(), "sha256")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def issue_tokens(
    tx: Tx, message_ids: Mapping[int, str], *, link_secret: str, now: datetime
) -> dict[int, model.LinkTokens]:
    """The tokens of these messages (Message-IDs by invitation id), with their hashes stored so that
    the links work.

    Runs in the transaction that claims the invitations, before anything leaves. Stored tokens stay
    as they are.
    """
    tokens = {
        id_: derive_tokens(link_secret, message_id) for id_, message_id in message_ids.items()
    }
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


def find_link_target(tx: Tx, purpose: model.LinkPurpose, token: str) -> model.LinkTarget | None:
    """What the link with this token belongs to; None for a token that was never issued for the
    purpose.
    """
    return queries.find_link_target(tx, purpose, digest(token)) if _TOKEN.fullmatch(token) else None


def registration_link(*, base_url: str, registration_url: str | None, token: str) -> str:
    """The account's own page with the token as `invitation`; without one, our page, which can lead
    on to it later.
    """
    if registration_url is None:
        return f"{base_url}/register/{token}"
    parts = urlsplit(registration_url)
    # What is there stays as it is; a character that no URL may hold is encoded, so that it can't
    # end the link early.
    query = "&".join(part for part in (parts.query, f"invitation={token}") if part)
    return quote(urlunsplit(parts._replace(query=query)), safe="/:?#[]@!$&'()*+,;=%-._~")


def digest(token: str) -> str:
    """The hash by which a token is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


LINE_LENGTH = 78
_WORD_BYTES = 39  # of text in one encoded word, so that a line has at most 76 characters (RFC 2047)

_PRINTABLE = re.compile(r"[ -~]+")
_SPECIALS = frozenset(' <>(),;:\\"[]')


def mail_bytes(
    headers: Sequence[tuple[str, str]], *, text: str, html: str | None, seed: str
) -> bytes:
    """The mail, with CRLF line ends. The same arguments give the same bytes: `seed` determines the
    boundary of the parts.

    Raises ValueError for a header that holds a control character.
    """
    head = "".join(f"{name}: {_checked(value)}\r\n" for name, value in headers)
    return head.encode() + b"MIME-Version: 1.0\r\n" + _body(text, html, seed)


def mailbox(name: str | None, address: str) -> str:
    """Name and address for a header. The name is quoted, or encoded when it has more than ASCII or
    looks encoded itself.
    """
    if not name:
        return mailable(address)
    phrase = f'"{escape_quotes(name)}"' if _is_plain(name) else _encoded_words(name)
    space = " " if len(phrase) + len(address) < LINE_LENGTH - 10 else "\r\n "
    return f"{phrase}{space}<{mailable(address)}>"


def unstructured(text: str) -> str:
    """Free text of a header, folded where it has to be."""
    return text if _is_plain(text) else _encoded_words(text)


def mailable(address: str) -> str:
    """The address for SMTP: the domain in ASCII, the local part unchanged; it may need SMTPUTF8 of
    the relay.

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
    return (
        head
        + b"".join(b"--%s\r\n%s" % (boundary, part) for part in parts)
        + b"--%s--\r\n" % boundary
    )


def _part(content_type: str, content: str) -> bytes:
    lines = content.strip("\r\n").replace("\r\n", "\n").replace("\r", "\n")
    encoded = binascii.b2a_qp(lines.encode("utf-8", "replace"), istext=True).replace(b"\n", b"\r\n")
    head = f"Content-Type: {content_type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable"
    return head.encode() + b"\r\n\r\n" + encoded + b"\r\n"


def _is_plain(text: str) -> bool:
    """Whether the text fits one header line as it is and does not look like encoded words."""
    return (
        len(text) <= LINE_LENGTH - 10
        and _PRINTABLE.fullmatch(text) is not None
        and "=?" not in text
    )


def _encoded_words(text: str) -> str:
    """Encoded words of whole characters (RFC 2047), a line each."""
    chunks = []
    chunk = b""
    for character in text:
        encoded = character.encode("utf-8", "replace")
        if len(chunk) + len(encoded) > _WORD_BYTES:
            chunks.append(chunk)
            chunk = b""
        chunk += encoded
    return "\r\n ".join(
        f"=?utf-8?b?{base64.b64encode(chunk).decode()}?=" for chunk in (*chunks, chunk)
    )


def _checked(value: str) -> str:
    """The last check before the wire: no line end or control character except our own folding."""
    if not value.replace("\r\n ", "").isprintable():
        raise ValueError("a header with a control character")
    return value


SUBJECT_LENGTH = 255
PART_LENGTH = 100_000
_LINE_END_OR_TAB = re.compile(r"\r?\n|\t")

FILTERS = ("capitalize", "e", "escape", "lower", "title", "trim", "upper")
_NODES = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Not, nodes.And, nodes.Or,
)  # fmt: skip


class TemplateValues(NamedTuple):
    """All that a template may name. Nothing of the member is here, so no template can reveal it."""

    plan_name: str
    sender_name: str
    registration_link: str
    unsubscribe_link: str


class RenderedMessage(NamedTuple):
    subject: str
    text: str
    html: str | None


SAMPLE_VALUES = TemplateValues(
    plan_name="Gold",
    sender_name="Example Health",
    registration_link="https://join.example.com/start?invitation=sample",
    unsubscribe_link="https://api.example.com/unsubscribe/sample",
)

NAMES = TemplateValues._fields
_USABLE = f"the names {', '.join(NAMES)} and the filters {', '.join(FILTERS)}"

_plain = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_markup = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=True)
for _environment in (_plain, _markup):
    # range, lipsum and the like: no template may call them, and each mail would pay for them.
    _environment.globals.clear()


def render(template: model.MessageTemplate, values: TemplateValues) -> RenderedMessage:
    """The message's three texts. `template` must have been checked when it was set."""
    names = values._asdict()
    subject = _compiled(template.subject or default_part("subject"), markup=False).render(names)
    text = _compiled(template.text or default_part("text"), markup=False).render(names)
    source = template.html or (default_part("html") if template.text is None else None)
    html = None if source is None else _compiled(source, markup=True).render(names)
    return RenderedMessage(" ".join(subject.split())[:SUBJECT_LENGTH], text, html)


@lru_cache(maxsize=3)
def default_part(part: str) -> str:
    """The product's own template of a part: subject, text or html."""
    name = {"subject": "subject.txt", "text": "invitation.txt", "html": "invitation.html"}[part]
    return files("frontdesk.invitations").joinpath("templates", name).read_text(encoding="utf-8")


def set_template(
    tx: Tx, account_id: int, *, now: datetime, **changes: str | None
) -> model.MessageTemplate:
    """Change the parts named in `changes` (None: back to the product's template). Raises Invalid
    with every fault.
    """
    template = replace(account_settings.get_template(tx, account_id), **changes)
    given = {part: source for part, source in asdict(template).items() if source}
    faults = [fault for part in given for fault in find_template_faults(part, given[part])]
    if template.html is not None and template.text is None:
        faults.append(
            Fault(
                "text",
                codes.faults.REQUIRED,
                "must be given when html is: some people read only text",
            )
        )
    if faults:
        raise Invalid(faults)
    account_settings.save_template(tx, account_id, template, now=now)
    return template


def find_template_faults(part: str, source: str) -> Iterator[Fault]:
    """Why the source can't be this part's template. A later fault may follow from an earlier one."""
    limit = SUBJECT_LENGTH if part == "subject" else PART_LENGTH
    if len(source) > limit:
        yield Fault(part, codes.faults.TOO_LONG, f"must have at most {limit} characters")
        return
    try:
        refuse_control_characters(
            source if part == "subject" else _LINE_END_OR_TAB.sub(" ", source)
        )
        refusal = next(filter(None, map(_refusal, _plain.parse(source).find_all(nodes.Node))), None)
        sample = SAMPLE_VALUES._asdict()
        rendered = "" if refusal else _compiled(source, markup=part == "html").render(sample)
    except Rejected as rejected:
        yield Fault(part, rejected.code, rejected.message)
    except TemplateSyntaxError as error:
        yield Fault(
            part,
            codes.operators.MALFORMED_TEMPLATE,
            f"must be a Jinja template; line {error.lineno} can't be read",
        )
    except (RecursionError, SyntaxError):
        yield Fault(part, codes.operators.MALFORMED_TEMPLATE, "must not be nested so deeply")
    else:
        yield from (
            [Fault(part, codes.faults.NOT_ALLOWED, refusal)]
            if refusal
            else _missing(part, rendered)
        )


def _refusal(node: nodes.Node) -> str | None:
    """Why the node is refused: loops, calls, attributes, arithmetic, comparisons that can fail,
    other names and filters.
    """
    match node:
        case nodes.Name():
            allowed = node.name in NAMES
        case nodes.Filter():
            plain = not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
            allowed = node.name in FILTERS and plain and node.node is not None
        case nodes.Const():
            allowed = type(node.value) is str
        case nodes.Operand():
            allowed = node.op in ("eq", "ne", "in", "notin")
        case _:
            allowed = isinstance(node, _NODES)
    return None if allowed else f"line {node.lineno} must have only text, conditions, {_USABLE}"


def _missing(part: str, rendered: str) -> Iterator[Fault]:
    if part == "subject":
        if not rendered.strip():
            yield Fault(part, codes.faults.REQUIRED, "must not be blank")
        return
    for name in ("registration_link", "unsubscribe_link"):
        if getattr(SAMPLE_VALUES, name) not in rendered:
            yield Fault(part, codes.operators.LINK_MISSING, f"must show {{{{ {name} }}}}")


@lru_cache(maxsize=512)
def _compiled(source: str, *, markup: bool) -> Template:
    return (_markup if markup else _plain).from_string(source)
