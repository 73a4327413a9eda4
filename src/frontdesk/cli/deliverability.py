"""`frontdesk deliverability` and `template`: whether, how fast and from which sender an account's
batched invitations go out, and what stands in them.
"""

import re
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from frontdesk import codes
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.layout import Part, field_table, heading
from frontdesk.cli.options import TEXT_LENGTH, AccountId, PlanId, given, option
from frontdesk.cli.output import FAILED, MISUSED, Output, describe, fail, opened_file, settings
from frontdesk.db import Tx
from frontdesk.eligibility.field_kinds import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import get_deliverability, get_template, model, set_deliverability
from frontdesk.invitations import message as templates
from frontdesk.invitations.dns_records import Find, check_records
from frontdesk.invitations.message import compose, derive_tokens
from frontdesk.mailbox.model import decode_message
from frontdesk.plans import get_plan
from frontdesk.reach import EVERY
from frontdesk.text import ENCODED_WORD, Rejected, parse_text, trimmed

URL_LENGTH = 2000
PARTS = ("subject", "text", "html")

deliverability = CommandGroup("deliverability")
template = CommandGroup("template")


def _number(sentence: str) -> Any:
    return option(sentence, min=1, max=2**31 - 1)  # what both databases' integers hold


@deliverability.change(
    "set", "--account 1 --enabled --batch-size 50 --hourly-limit 500", wants_option=True
)
def set_(  # noqa: PLR0913 - one parameter per option
    context: CommandContext,
    account: AccountId,
    *,
    enabled: Annotated[
        bool | None, option("Whether batched invitations go out.", "--enabled/--disabled")
    ] = None,
    batch_size: Annotated[int | None, _number("Messages in one batch.")] = None,
    batch_interval_seconds: Annotated[
        int | None, _number("Seconds from one batch to the next.")
    ] = None,
    hourly_limit: Annotated[int | None, _number("Most messages in any 60 minutes.")] = None,
    sender_name: Annotated[str | None, option("Name in From; empty text clears it.")] = None,
    sender_address: Annotated[str | None, option("Address in From; empty text clears it.")] = None,
    registration_url: Annotated[
        str | None, option("Where the invitation leads; empty text clears it.")
    ] = None,
) -> Output:
    """Change an account's deliverability settings. An option that is left out keeps its value."""
    texts = _texts(
        sender_name=sender_name, sender_address=sender_address, registration_url=registration_url
    )
    numbers = given(
        batch_size=batch_size,
        batch_interval_seconds=batch_interval_seconds,
        hourly_limit=hourly_limit,
    )
    changes = given(enabled=enabled) | numbers | texts
    changed = set_deliverability(context.tx, account, **changes)
    context.record(
        "deliverability.changed", account_id=account, subject_id=account, fields=sorted(changes)
    )
    return describe(asdict(changed))


@deliverability.query("show", "--account 1")
def show(tx: Tx, account: AccountId) -> Output:
    """Show an account's deliverability settings, or the defaults."""
    return describe(asdict(get_deliverability(tx, account)))


@deliverability.standalone("check", "--selector s1")
def check(
    selector: Annotated[str, option("Selector of your relay's DKIM key.")] = "",
    resolver: Annotated[str, option("Resolver, if not the usual one.", metavar="HOST:PORT")] = "",
) -> Output:
    """Check the DNS records of FRONTDESK_MAIL_FROM's domain: MX, SPF, DKIM, DMARC. Status 1 if
    there is a problem.
    """
    from dns.exception import DNSException

    try:
        found = check_records(_finder(resolver), settings().mail_from.rpartition("@")[2], selector)
    except (DNSException, ValueError) as error:
        fail(
            f"The resolver gives no answer ({type(error).__name__}). Name another: --resolver IPV4:PORT"
        )
    nouns = {"problems": "Problem", "warnings": "Warning"}
    lines = [
        f"{nouns[key]}: {each['what']}\nRemedy: {each['remedy']}"
        for key in nouns
        for each in found[key]
    ]
    lines = lines or ["All is well: receivers can tell that this mail is yours."]
    status = FAILED if found["problems"] else 0
    return Output({"ok": not status} | found, [field_table(found["records"]), *lines], status)


def _finder(address: str) -> Find:
    """Finds records by the resolver at the address, else by the machine's. Raises ValueError;
    `find` raises DNSException.
    """
    from dns.resolver import NXDOMAIN, Resolver

    resolver = Resolver(configure=not address)
    if address:
        host, port = f"{address}:53".split(":")[:2]
        resolver.nameservers = [host]
        resolver.port = int(port)

    def find(name: str, kind: str, start: str = "") -> list[str]:
        try:
            found = [*resolver.resolve(name, kind, raise_on_no_answer=False, search=False)]
        except NXDOMAIN:
            return []
        # TXT has several quoted parts
        texts = (re.sub(r'" "|^"|"$', "", str(each)) for each in found)
        return [text for text in texts if text.lower().startswith(start)]

    return find


def _texts(**sent: str | None) -> dict[str, str | None]:
    """The texts that were given, in their stored form; a blank one is None. Raises Invalid with
    every fault.
    """
    parsers = {"sender_name": _name, "sender_address": parse_email, "registration_url": _url}
    texts = {}
    faults = []
    for field, text in given(**sent).items():
        try:
            texts[field] = parsers[field](text) if trimmed(text) else None
        except Rejected as rejected:
            faults.append(Fault(field, rejected.code, rejected.message))
    if faults:
        raise Invalid(faults)
    return texts


def _name(text: str) -> str:
    name = parse_text(text, limit=TEXT_LENGTH)
    if ENCODED_WORD in name:
        raise Rejected(codes.faults.NOT_ALLOWED, f"must not contain {ENCODED_WORD}")
    return name


def _url(text: str) -> str:
    url = parse_text(text, limit=URL_LENGTH)
    try:
        parts = urlsplit(url)
        is_web_address = (
            parts.scheme == "https"
            and bool(parts.hostname)
            and " " not in url
            and "@" not in parts.netloc
        )
    except ValueError:  # such as an unclosed [ around an IPv6 address
        is_web_address = False
    if not is_web_address:
        message = (
            "must be an absolute https address without a user, such as https://join.example.com"
        )
        raise Rejected(codes.operators.MALFORMED_URL, message)
    return url


@template.query("show", "--account 1")
def show_template(tx: Tx, account: AccountId) -> Output:
    """Show the templates of an account's invitations, its own or the product's."""
    return _described(get_template(tx, account))


@template.change(
    "set",
    '--account 1 --subject "Welcome to {{ plan_name }}" --text welcome.txt --html welcome.html',
    wants_option=True,
)
def change_template(
    context: CommandContext,
    account: AccountId,
    subject: Annotated[str | None, option("Subject, as a template.")] = None,
    text: Annotated[Path | None, option("File with the text part.", metavar="FILE")] = None,
    html: Annotated[Path | None, option("File with the HTML part.", metavar="FILE")] = None,
    *,
    reset: Annotated[
        bool, option("First go back to the product's templates, in all parts.", "--default")
    ] = False,
) -> Output:
    """Change the templates of an account's invitations. A part that is left out stays; text without
    HTML is sent alone.

    Templates hold text, {{ plan_name }}, {{ sender_name }}, {{ registration_link }}, {{
    unsubscribe_link }} and {% if %}.
    """
    changes: dict[str, str | None] = dict.fromkeys(PARTS) if reset else {}
    changes |= given(subject=subject, text=_content(text), html=_content(html))
    changed = templates.set_template(context.tx, account, now=context.now, **changes)
    context.record(
        "template.changed", account_id=account, subject_id=account, fields=sorted(changes)
    )
    return _described(changed)


@template.query("preview", "--plan 1 --output preview.html")
def preview(
    tx: Tx,
    plan: PlanId,
    output: Annotated[
        Path, option("Where to write it: .html, .txt, or .eml for the whole mail.", metavar="FILE")
    ],
) -> Output:
    """Write an invitation to a plan to a file, as it would be sent; its links lead nowhere."""
    content = _sample(tx, plan, settings().base_url)
    decoded = decode_message(content)
    parts = {".html": decoded.html, ".txt": decoded.text, ".eml": content}
    if output.suffix not in parts:
        fail("--output must end in .html, .txt or .eml.", status=MISUSED)
    part = parts[output.suffix]
    if part is None:
        fail("These invitations have no HTML part. Use a file that ends in .txt or .eml.")
    with opened_file(output, "wb", f"{output} can't be written: {{}}.") as file:
        file.write(part if isinstance(part, bytes) else part.encode())
    outcome = {"path": str(output), "subject": decoded.subject}
    return Output(outcome, [f"“{decoded.subject}” is in {output}."])


def _sample(tx: Tx, plan_id: int, base_url: str) -> bytes:
    plan = get_plan(tx, EVERY, plan_id)
    own = get_deliverability(tx, plan.account_id)
    sender = (own.sender_name, own.sender_address, own.registration_url)
    invitation = model.ClaimedInvitation(
        id=0,
        account_id=plan.account_id,
        plan_id=plan_id,
        member_id=0,
        delivery=model.Delivery.IMMEDIATE,
        address="somebody@example.com",
        message_id="preview@example.com",
    )
    context = model.MessageContext(
        {0: derive_tokens("", invitation.message_id)},
        {plan_id: model.SenderProfile(plan.name, *sender, get_template(tx, plan.account_id))},
        format_datetime(datetime(2026, 1, 1, tzinfo=UTC)),
    )
    return compose(
        invitation, context, base_url=base_url, mail_from="invitations@example.com"
    ).content


def _content(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        fail(f"{path} can't be read: {reason}.")


def _described(template: model.MessageTemplate) -> Output:
    own = {part: source for part, source in asdict(template).items() if source is not None}
    parts = {part: own.get(part) or templates.default_part(part) for part in PARTS}
    sends_html = "html" in own or "text" not in own
    lines: list[Part] = []
    for part, source in parts.items():
        origin = "the account's own" if part in own else "the product's"
        sent = part != "html" or sends_html
        lines.append(heading(f"{part} ({origin if sent else 'none: the mail is text alone'})"))
        lines.append(f"{source.strip()}\n" if sent else "")
    lines.append("Names: " + ", ".join(templates.NAMES) + ".")
    return Output(parts | ({} if sends_html else {"html": None}) | {"own": list(own)}, lines)
