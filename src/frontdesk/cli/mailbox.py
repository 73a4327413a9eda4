"""`frontdesk mailbox`: the mails that a sandbox caught instead of sending them."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, checked_id
from frontdesk.cli.output import fail, print_heading, print_json, say, settings, show_list, show_one
from frontdesk.clock import wire_time
from frontdesk.config import Environment
from frontdesk.mailbox import delete_messages, get_message, list_messages
from frontdesk.mailbox.model import CaughtMessage, DecodedMessage, decode_message

MessageId = Annotated[
    int, typer.Argument(metavar="ID", callback=checked_id, help="Id of the message (see `mailbox list`).")
]

commands = typer.Typer(no_args_is_help=True, help="Mails that the sandbox caught.")


@commands.callback()
def group() -> None:
    """Mails that the sandbox caught instead of sending."""
    if settings().environment is not Environment.SANDBOX:
        fail("Only a sandbox catches mail; here FRONTDESK_ENVIRONMENT is production.")


@commands.command("list")
def list_(
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Most mails to list, the newest first.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List the caught mails, newest first.

    Example: frontdesk mailbox list --limit 20
    """
    items = [_item(message) for message in ask(lambda tx: list_messages(tx, limit=limit))]
    columns = ("id", "recipient", "subject", "outcome", "caught_at")
    show_list(items, columns=columns, as_json=as_json, nothing="Nothing has been caught yet.")


@commands.command("show")
def show(message_id: MessageId, as_json: Json = False) -> None:
    """Show one mail: its headers and its text.

    Example: frontdesk mailbox show 1
    """
    message, decoded = _read(message_id)
    headers = dict(decoded.headers)
    if as_json:
        print_json(_item(message) | {"headers": headers, "text": decoded.text, "html": decoded.html})
        return
    show_one(headers, as_json=False)
    print_heading("")
    say(decoded.text)


@commands.command("open")
def open_(
    message_id: MessageId,
    *,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there and don't open a browser.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Open one mail in the browser, as its reader would see it.

    Example: frontdesk mailbox open 1 --output invitation.html
    """
    message, decoded = _read(message_id)
    ending = "html" if decoded.html else "txt"
    path = output or Path(tempfile.mkdtemp(prefix="frontdesk-mail-")) / f"{message.id}.{ending}"
    try:
        path.write_text(decoded.html or decoded.text, encoding="utf-8")
    except OSError as error:
        fail(f"{path} can't be written: {error.strerror}.")
    opened = output is None and typer.launch(str(path)) == 0
    if as_json:
        print_json({"id": message.id, "path": str(path), "opened": opened})
    else:
        say(f"Message {message.id} is in {path}.")


@commands.command("clear")
def clear(as_json: Json = False) -> None:
    """Delete all caught mails.

    Example: frontdesk mailbox clear
    """

    def work(context: CommandContext) -> int:
        count = delete_messages(context.tx)
        context.record("mailbox.cleared", count=count)
        return count

    count = change(work)
    if as_json:
        print_json({"deleted": count})
    else:
        say(f"{count} messages were deleted.")


def _read(message_id: int) -> tuple[CaughtMessage, DecodedMessage]:
    message = ask(lambda tx: get_message(tx, message_id))
    return message, decode_message(message.content)


def _item(message: CaughtMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "sender": message.sender,
        "recipient": message.recipient,
        "subject": decode_message(message.content).subject,
        "message_id": message.message_id,
        "outcome": message.outcome,
        "caught_at": wire_time(message.caught_at),
    }
