"""`frontdesk account`: the customers that own plans and members."""

from typing import Annotated, Any

import typer

from frontdesk.access import create_account, list_accounts
from frontdesk.access.model import Account
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, read_text
from frontdesk.cli.output import show_list, show_one
from frontdesk.clock import wire_time

commands = typer.Typer(no_args_is_help=True, help="Accounts: the customers that own plans and members.")


@commands.command("create")
def create(name: Annotated[str, typer.Option(help="Name of the account.")], as_json: Json = False) -> None:
    """Create an account and print it with its id.

    Example: frontdesk account create --name "Example Health"
    """

    def work(context: CommandContext) -> Account:
        account = create_account(context.tx, name=read_text("name", name), now=context.now)
        context.record("account.created", account_id=account.id, subject_id=account.id)
        return account

    show_one(_item(change(work)), as_json=as_json)


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List all accounts.

    Example: frontdesk account list --json
    """
    items = [_item(account) for account in ask(list_accounts)]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    show_list(items, columns=("id", "name", "created_at"), as_json=as_json, nothing=nothing)


def _item(account: Account) -> dict[str, Any]:
    return {"id": account.id, "name": account.name, "created_at": wire_time(account.created_at)}
