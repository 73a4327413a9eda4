"""`frontdesk account`: the customers that own plans and members."""

from dataclasses import asdict
from typing import Annotated

import typer

from frontdesk.access import create_account, list_accounts
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx

commands = CommandGroup()


@commands.change("create")
def create(
    context: CommandContext, name: Annotated[str, typer.Option(help="Name of the account.")]
) -> Output:
    """Create an account and print it with its id.

    Example: frontdesk account create --name "Example Health"
    """
    account = create_account(context.tx, name=read_text("name", name), now=context.now)
    context.record("account.created", account_id=account.id, subject_id=account.id)
    return describe(asdict(account))


@commands.query("list")
def list_(tx: Tx) -> Output:
    """List all accounts.

    Example: frontdesk account list --json
    """
    items = [asdict(account) for account in list_accounts(tx)]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    return listing(items, "id name created_at", nothing=nothing)
