"""`frontdesk template`: the templates of an account's invitations, and a preview of the message."""

from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import AccountId, PlanId
from frontdesk.cli.output import MISUSED, Output, Part, fail, heading, opened_file, settings
from frontdesk.db import Tx
from frontdesk.invitations import get_deliverability
from frontdesk.invitations.message import (
    NAMES,
    compose,
    default_part,
    derive_tokens,
    get_template,
    set_template,
)
from frontdesk.invitations.model import (
    ClaimedInvitation,
    Delivery,
    MessageContext,
    MessageTemplate,
    SenderProfile,
)
from frontdesk.mailbox.model import decode_message
from frontdesk.plans import get_plan

PARTS = ("subject", "text", "html")


commands = CommandGroup()


@commands.query("show")
def show(tx: Tx, account: AccountId) -> Output:
    """Show the templates of an account's invitations, its own or the product's.

    Example: frontdesk template show --account 1
    """
    return _described(get_template(tx, account))


@commands.change("set", wants_option=True)
def set_(
    context: CommandContext,
    account: AccountId,
    subject: Annotated[str | None, typer.Option(help="Subject, as a template.")] = None,
    text: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the text part.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the HTML part.")] = None,
    *,
    reset: Annotated[
        bool, typer.Option("--default", help="First go back to the product's templates, in all parts.")
    ] = False,
) -> Output:
    """Change the templates of an account's invitations. A part that is left out stays; text without HTML is sent alone.

    Templates hold text, {{ plan_name }}, {{ sender_name }}, {{ registration_link }}, {{ unsubscribe_link }} and {% if %}.

    Example: frontdesk template set --account 1 --subject "Welcome to {{ plan_name }}" --text welcome.txt --html welcome.html
    """
    given = {"subject": subject, "text": _content(text), "html": _content(html)}
    changes: dict[str, str | None] = dict.fromkeys(PARTS) if reset else {}
    changes |= {name: value for name, value in given.items() if value is not None}
    template = set_template(context.tx, account, now=context.now, **changes)
    context.record("template.changed", account_id=account, subject_id=account, fields=sorted(changes))
    return _described(template)


@commands.query("preview")
def preview(
    tx: Tx,
    plan: PlanId,
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write it: .html, .txt, or .eml for the whole mail.")
    ],
) -> Output:
    """Write an invitation to a plan to a file, as it would be sent; its links lead nowhere.

    Example: frontdesk template preview --plan 1 --output preview.html
    """
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
    plan = get_plan(tx, None, plan_id)
    own = get_deliverability(tx, plan.account_id)
    invitation = ClaimedInvitation(
        id=0,
        account_id=plan.account_id,
        plan_id=plan_id,
        member_id=0,
        delivery=Delivery.IMMEDIATE,
        address="somebody@example.com",
        message_id="preview@example.com",
    )
    context = MessageContext(
        {0: derive_tokens("", invitation.message_id)},
        {plan_id: SenderProfile(plan.name, own.sender_name, own.sender_address, own.registration_url)},
        {plan.account_id: get_template(tx, plan.account_id)},
        format_datetime(datetime(2026, 1, 1, tzinfo=UTC)),
    )
    return compose(invitation, context, base_url=base_url, mail_from="invitations@example.com").content


def _content(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        fail(f"{path} can't be read: {reason}.")


def _described(template: MessageTemplate) -> Output:
    own = {part: source for part, source in asdict(template).items() if source is not None}
    parts = {part: own.get(part) or default_part(part) for part in PARTS}
    sends_html = "html" in own or "text" not in own
    told: list[Part] = []
    for part, source in parts.items():
        origin = "the account's own" if part in own else "the product's"
        sent = part != "html" or sends_html
        told.append(heading(f"{part} ({origin if sent else 'none: the mail is text alone'})"))
        told.append(f"{source.strip()}\n" if sent else "")
    told.append("Names: " + ", ".join(NAMES) + ".")
    return Output(parts | ({} if sends_html else {"html": None}) | {"own": list(own)}, told)
