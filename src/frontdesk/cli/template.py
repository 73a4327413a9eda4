"""`frontdesk template`: the words of an account's invitations, and a look at them before anybody gets one."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from frontdesk.access import get_account
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, Json, PlanId
from frontdesk.cli.output import MISUSED, fail, print_heading, print_json, say, settings
from frontdesk.db import Tx
from frontdesk.invitations import get_deliverability
from frontdesk.invitations.message import compose, derive_tokens
from frontdesk.invitations.model import InvitationMessage, MessageContext, MessageTemplate
from frontdesk.invitations.template import NAMES, default_part, get_template, set_template
from frontdesk.mailbox import decode_message
from frontdesk.plans import get_plan

PARTS = ("subject", "text", "html")

commands = typer.Typer(no_args_is_help=True, help="The words of invitations.")


@commands.command("show")
def show(account: AccountId, as_json: Json = False) -> None:
    """Show the templates of an account's invitations, its own or the product's.

    Example: frontdesk template show --account 1
    """

    def question(tx: Tx) -> MessageTemplate:
        get_account(tx, account)
        return get_template(tx, account)

    _show(ask(question), as_json=as_json)


@commands.command("set")
def set_(
    account: AccountId,
    *,
    subject: Annotated[str | None, typer.Option(help="Subject, as a template.")] = None,
    text: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the text part.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the HTML part.")] = None,
    own_words: Annotated[
        bool, typer.Option("--default", help="First go back to the product's own words, in all parts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change the words of an account's invitations; what is not given stays. A text without HTML is sent as text alone.

    Templates hold text, {{ plan_name }}, {{ sender_name }}, {{ registration_link }}, {{ unsubscribe_link }} and {% if %}.

    Example: frontdesk template set --account 1 --subject "Welcome to {{ plan_name }}" --text welcome.txt --html welcome.html
    """
    given = {"subject": subject, "text": _content(text), "html": _content(html)}
    changes: dict[str, str | None] = {name: value for name, value in given.items() if value is not None}
    if own_words:
        changes = dict.fromkeys(PARTS) | changes
    if not changes:
        fail("Nothing to set: give at least one option (see frontdesk template set --help).", status=MISUSED)

    def work(deed: CommandContext) -> MessageTemplate:
        get_account(deed.tx, account)
        wording = set_template(deed.tx, account, now=deed.now, **changes)
        deed.record("template.changed", account_id=account, subject_id=account, fields=sorted(changes))
        return wording

    _show(change(work), as_json=as_json)


@commands.command("preview")
def preview(
    plan: PlanId,
    *,
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write it: .html, .txt, or .eml for the whole mail.")
    ],
    as_json: Json = False,
) -> None:
    """Write an invitation to a plan to a file, as it would be sent; its links lead nowhere.

    Example: frontdesk template preview --plan 1 --output preview.html
    """
    config = settings()
    content = ask(lambda tx: _sample(tx, plan, config.base_url))
    reading = decode_message(content)
    shown = {".html": reading.html, ".txt": reading.text, ".eml": content}.get(output.suffix)
    if output.suffix not in (".html", ".txt", ".eml"):
        fail("--output must end in .html, .txt or .eml.", status=MISUSED)
    if shown is None:
        fail("These invitations have no HTML part. Use a file that ends in .txt or .eml.")
    try:
        output.write_bytes(shown if isinstance(shown, bytes) else shown.encode())
    except OSError as error:
        fail(f"{output} can't be written: {error.strerror}.")
    if as_json:
        print_json({"path": str(output), "subject": reading.subject})
    else:
        say(f"“{reading.subject}” is in {output}.")


def _sample(tx: Tx, plan_id: int, base_url: str) -> bytes:
    plan = get_plan(tx, None, plan_id)
    sender = get_deliverability(tx, plan.account_id)
    letter = InvitationMessage(
        invitation_id=0,
        account_id=plan.account_id,
        plan_id=plan.id,
        address="somebody@example.com",
        message_id="preview@example.com",
        plan_name=plan.name,
        sender_name=sender.sender_name,
        sender_address=sender.sender_address,
        registration_url=sender.registration_url,
    )
    gathered = MessageContext(
        {0: derive_tokens("", letter.message_id)},
        {plan.account_id: get_template(tx, plan.account_id)},
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    return compose(letter, gathered, base_url=base_url, mail_from="invitations@example.com").content


def _content(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        fail(f"{path} can't be read: {reason}.")


def _show(wording: MessageTemplate, *, as_json: bool) -> None:
    own = asdict(wording)
    sends_html = wording.html is not None or wording.text is None
    parts: dict[str, Any] = {part: own[part] or default_part(part) for part in PARTS}
    if not sends_html:
        parts["html"] = None
    if as_json:
        print_json(parts | {"own": [part for part in PARTS if own[part] is not None]})
        return
    for part, source in parts.items():
        whose = "the account's own" if own[part] is not None else "the product's"
        print_heading(f"{part} ({whose if source is not None else 'none: the mail is text alone'})")
        say(f"{source.strip()}\n" if source else "")
    say("Names: " + ", ".join(NAMES) + ".")
