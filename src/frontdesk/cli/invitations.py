"""`frontdesk invitations`: in what state invitations are. Addresses are masked: whose they are, `member show` tells."""

from typing import Annotated, Any

import typer

from frontdesk.access import get_account
from frontdesk.cli.installation import ask
from frontdesk.cli.options import Json, OnlyAccount
from frontdesk.cli.output import show_list
from frontdesk.clock import wire_time
from frontdesk.db import Tx
from frontdesk.invitations import State, list_invitations

LARGEST_LIMIT = 10_000

commands = typer.Typer(no_args_is_help=True, help="Invitations of new members.")


@commands.callback()
def group() -> None:
    """Invitations of new members."""


@commands.command("list")
def list_(
    account: OnlyAccount = None,
    *,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="At most so many, the newest first.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List invitations, newest first.

    Example: frontdesk invitations list --account 1 --state pending --limit 20
    """

    def question(tx: Tx) -> list[dict[str, Any]]:
        if account is not None:
            get_account(tx, account)
        return list_invitations(tx, account_id=account, state=state, limit=limit)

    items = [_item(row) for row in ask(question)]
    columns = (
        "id",
        "account_id",
        "plan_id",
        "member_id",
        "delivery",
        "state",
        "address_masked",
        "created_at",
    )
    show_list(items, columns=columns, as_json=as_json, nothing="There is no such invitation.")


def _item(row: dict[str, Any]) -> dict[str, Any]:
    names = ("id", "account_id", "plan_id", "member_id", "kind", "delivery", "state")
    times = {name: wire_time(row[name]) for name in ("created_at", "updated_at")}
    return {name: row[name] for name in names} | {"address_masked": masked(row["address"])} | times


def masked(address: str) -> str:
    """Enough to recognise an address that one knows, too little to learn it: `r***@e***.com`."""
    local, _, domain = address.rpartition("@")
    name, dot, ending = domain.rpartition(".")
    return f"{local[:1]}***@{name[:1]}***{dot}{ending}"
