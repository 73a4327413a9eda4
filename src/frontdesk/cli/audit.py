"""`frontdesk audit`: the audit trail, newest entry first. No command changes an entry."""

from typing import Annotated, Any

import typer

from frontdesk.audit import list_entries
from frontdesk.cli.installation import ask
from frontdesk.cli.options import Json, OnlyAccount
from frontdesk.cli.output import show_list
from frontdesk.clock import wire_time

LARGEST_LIMIT = 1_000_000

commands = typer.Typer(no_args_is_help=True, help="The audit trail: who did what.")


@commands.callback()
def group() -> None:
    """The audit trail: who did what, and when. It holds ids and names of fields, never values."""


@commands.command("list")
def list_(
    account: OnlyAccount = None,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="The largest number of entries.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List the audit entries, newest first: time, action, actor, subject and request.

    Example: frontdesk audit list --account 1 --limit 20
    """
    rows = ask(lambda tx: list_entries(tx, account_id=account, limit=limit), account=account)
    columns = ("at", "action", "actor", "account_id", "subject_id", "request_id", "detail")
    show_list(
        [_item(row) for row in rows], columns=columns, as_json=as_json, nothing="The audit trail is empty."
    )


def _item(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"at": wire_time(row["at"])}
