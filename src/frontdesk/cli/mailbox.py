"""`frontdesk mailbox`: the mails that a sandbox caught instead of sending them."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import id_argument, limit_option
from frontdesk.cli.output import Output, fail, field_table, listing, opened_file, picked, settings
from frontdesk.config import Environment
from frontdesk.db import Tx
from frontdesk.mailbox import delete_messages, get_message, list_messages
from frontdesk.mailbox.model import decode_message

MessageId = Annotated[int, id_argument("ID", "Id of the message (see `mailbox list`).")]

FIELDS = "id sender recipient subject message_id outcome caught_at"

commands = CommandGroup()


@commands.callback()
def group() -> None:
    if settings().environment is not Environment.SANDBOX:
        fail("Only a sandbox catches mail; here FRONTDESK_ENVIRONMENT is production.")


@commands.query("list")
def list_(
    tx: Tx,
    limit: Annotated[int, limit_option(10_000, "Most mails to list, the newest first.")] = 100,
) -> Output:
    """List the caught mails, newest first.

    Example: frontdesk mailbox list --limit 20
    """
    items = [picked(message, FIELDS) for message in list_messages(tx, limit=limit)]
    return listing(items, "id recipient subject outcome caught_at", nothing="Nothing has been caught yet.")


@commands.query("show")
def show(tx: Tx, message_id: MessageId) -> Output:
    """Show one mail: its headers and its text.

    Example: frontdesk mailbox show 1
    """
    message = get_message(tx, message_id)
    decoded = decode_message(message.content)
    headers = dict(decoded.headers)
    item = picked(message, FIELDS) | {"headers": headers, "text": decoded.text, "html": decoded.html}
    return Output(item, [field_table(headers), "", decoded.text])


@commands.query("open")
def open_(
    tx: Tx,
    message_id: MessageId,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there and don't open a browser.")
    ] = None,
) -> Output:
    """Open one mail in the browser, as its reader would see it.

    Example: frontdesk mailbox open 1 --output invitation.html
    """
    decoded = decode_message(get_message(tx, message_id).content)
    ending = "html" if decoded.html else "txt"
    path = output or Path(tempfile.mkdtemp(prefix="frontdesk-mail-")) / f"{message_id}.{ending}"
    with opened_file(path, "wb", f"{path} can't be written: {{}}.") as file:
        file.write((decoded.html or decoded.text).encode())
    opened = output is None and typer.launch(str(path)) == 0
    outcome = {"id": message_id, "path": str(path), "opened": opened}
    return Output(outcome, [f"Message {message_id} is in {path}."])


@commands.change("clear")
def clear(context: CommandContext) -> Output:
    """Delete all caught mails.

    Example: frontdesk mailbox clear
    """
    count = delete_messages(context.tx)
    context.record("mailbox.cleared", count=count)
    return Output({"deleted": count}, [f"{count} messages were deleted."])
