"""`frontdesk account` and `frontdesk client`: the customers, and their API clients. Each secret is shown once."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from frontdesk.access import create_account, list_accounts, list_clients
from frontdesk.access.accounts import create_client, get_client, revoke_client, rotate_secret
from frontdesk.access.model import ApiClient, Scope
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import AccountId, OnlyAccount, read_text
from frontdesk.cli.output import Output, describe, listing, picked
from frontdesk.db import Tx

LARGEST_REQUESTS_PER_MINUTE = 1_000_000

account = CommandGroup()
client = CommandGroup()

ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The client's public client_id.")]
Scopes = Annotated[
    list[Scope] | None,
    typer.Option(help="A right of the client; repeat for several. Default: customer, the whole of /v2."),
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=1, max=LARGEST_REQUESTS_PER_MINUTE, help="Its limit of requests. Default: no limit."),
]
ONCE = "\nKeep the client_secret: it can't be shown again."


@account.change("create")
def account_create(
    context: CommandContext, name: Annotated[str, typer.Option(help="Name of the account.")]
) -> Output:
    """Create an account and print it with its id.

    Example: frontdesk account create --name "Example Health"
    """
    made = create_account(context.tx, name=read_text("name", name), now=context.now)
    context.record("account.created", account_id=made.id, subject_id=made.id)
    return describe(asdict(made))


@account.query("list")
def account_list(tx: Tx) -> Output:
    """List all accounts.

    Example: frontdesk account list --json
    """
    items = [asdict(each) for each in list_accounts(tx)]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    return listing(items, "id name created_at", nothing=nothing)


@client.change("create")
def client_create(
    context: CommandContext,
    account: AccountId,
    name: Annotated[str, typer.Option(help="The purpose of the client.")],
    scope: Scopes = None,
    requests_per_minute: RequestsPerMinute = None,
) -> Output:
    """Create an API client. Its client_secret is printed now and never again.

    Example: frontdesk client create --account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write
    """
    made, secret = create_client(
        context.tx,
        account_id=account,
        name=read_text("name", name),
        scopes=set(scope or [Scope.CUSTOMER]),
        requests_per_minute=requests_per_minute,
        now=context.now,
    )
    _record(context, "client.created", made, scopes=sorted(made.scopes))
    return describe(_item(made, secret), ONCE)


@client.query("list")
def client_list(tx: Tx, account: OnlyAccount = None) -> Output:
    """List API clients, the revoked ones too. Secrets are never shown.

    Example: frontdesk client list --account 1
    """
    items = [_item(each) for each in list_clients(tx, account)]
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    return listing(items, "id account_id client_id name scopes revoked_at", nothing=nothing)


@client.change("rotate")
def client_rotate(context: CommandContext, client_id: ClientId) -> Output:
    """Give a client a new secret, printed now and never again. The secret before it still works; older ones end.

    Example: frontdesk client rotate 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    name = read_text("CLIENT_ID", client_id)
    secret = rotate_secret(context.tx, name, now=context.now)
    rotated = get_client(context.tx, name)
    _record(context, "client.rotated", rotated)
    return describe(_item(rotated, secret), f"{ONCE} Rotate once more to end the secret before it.")


@client.change("revoke")
def client_revoke(context: CommandContext, client_id: ClientId) -> Output:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5 seconds.

    Example: frontdesk client revoke 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    revoked = get_client(context.tx, read_text("CLIENT_ID", client_id))
    if revoked.revoked_at is None:
        revoked = revoke_client(context.tx, revoked.client_id, now=context.now)
        _record(context, "client.revoked", revoked)
    return describe(_item(revoked))


def _record(context: CommandContext, action: str, of: ApiClient, **detail: object) -> None:
    context.record(action, account_id=of.account_id, subject_id=of.id, client_id=of.client_id, **detail)


def _item(of: ApiClient, secret: str | None = None) -> dict[str, Any]:
    return {
        **picked(of, "id account_id client_id"),
        **({} if secret is None else {"client_secret": secret}),
        "name": of.name,
        "scopes": sorted(of.scopes),
        **picked(of, "requests_per_minute created_at revoked_at"),
    }
