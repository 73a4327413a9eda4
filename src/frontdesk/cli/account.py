"""`frontdesk account`: the customers."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from frontdesk.access import create_account, list_accounts
from frontdesk.access.accounts import close_account, get_account, resume_account, suspend_account
from frontdesk.access.model import Account, AccountState
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import id_argument, read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid

AccountArgument = Annotated[int, id_argument("ID", "Id of the account (see `account list`).")]

commands = CommandGroup()


@commands.change("create")
def create(
    context: CommandContext, name: Annotated[str, typer.Option(help="Name of the account.")]
) -> Output:
    """Create an account and print it with its id.

    Example: frontdesk account create --name "Example Health"
    """
    made = create_account(context.tx, name=read_text("name", name), now=context.now)
    context.record("account.created", account_id=made.id, subject_id=made.id)
    return describe(asdict(made))


@commands.query("list")
def list_(tx: Tx) -> Output:
    """List all accounts.

    Example: frontdesk account list --json
    """
    items = [asdict(each) for each in list_accounts(tx)]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    return listing(items, "id name state created_at", nothing=nothing)


@commands.change("suspend")
def suspend(context: CommandContext, account_id: AccountArgument) -> Output:
    """Refuse an account's tokens (403), issue no new ones, and let its files and mails wait. Every process does so
    within 5 seconds.

    Example: frontdesk account suspend 1
    """
    return _set_state(context, account_id, AccountState.SUSPENDED, suspend_account)


@commands.change("resume")
def resume(context: CommandContext, account_id: AccountArgument) -> Output:
    """End the suspension of an account: its tokens are good again, its files and mails go on.

    Example: frontdesk account resume 1
    """
    return _set_state(context, account_id, AccountState.ACTIVE, resume_account)


@commands.change("close")
def close(
    context: CommandContext,
    account_id: AccountArgument,
    confirm: Annotated[str, typer.Option(help="The name of the account, since this can't be undone.")],
) -> Output:
    """Close an account for good: its clients and tokens end, its files and mails never go on. Its records stay.

    Example: frontdesk account close 1 --confirm "Example Health"
    """
    if confirm != get_account(context.tx, account_id).name:
        raise Invalid([Fault("confirm", "differs", "must be the name of the account")])
    return _set_state(
        context,
        account_id,
        AccountState.CLOSED,
        lambda tx, number: close_account(tx, number, now=context.now),
    )


def _set_state(
    context: CommandContext, account_id: int, state: AccountState, change: Callable[[Tx, int], Account]
) -> Output:
    """Change the state and record it, unless it is so already."""
    if get_account(context.tx, account_id).state is not state:
        change(context.tx, account_id)
        action = "resumed" if state is AccountState.ACTIVE else state.value
        context.record(f"account.{action}", account_id=account_id, subject_id=account_id)
    return describe(asdict(get_account(context.tx, account_id)))
