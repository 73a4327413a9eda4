"""`frontdesk client`: the API clients of an account. Each secret is shown once."""

from typing import Annotated, Any

import typer

from frontdesk.access import create_client, get_client, list_clients, revoke_client, rotate_secret
from frontdesk.access.model import ApiClient, Scope
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import AccountId, OnlyAccount, read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx

LARGEST_REQUESTS_PER_MINUTE = 1_000_000

commands = CommandGroup()

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


@commands.change("create")
def create(
    context: CommandContext,
    account: AccountId,
    name: Annotated[str, typer.Option(help="The purpose of the client.")],
    scope: Scopes = None,
    requests_per_minute: RequestsPerMinute = None,
) -> Output:
    """Create an API client. Its client_secret is printed now and never again.

    Example: frontdesk client create --account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write
    """
    client, secret = create_client(
        context.tx,
        account_id=account,
        name=read_text("name", name),
        scopes=set(scope or [Scope.CUSTOMER]),
        requests_per_minute=requests_per_minute,
        now=context.now,
    )
    _record(context, "client.created", client, scopes=sorted(client.scopes))
    return describe(_item(client, secret), ONCE)


@commands.query("list")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List API clients, the revoked ones too. Secrets are never shown.

    Example: frontdesk client list --account 1
    """
    items = [_item(client) for client in list_clients(tx, account)]
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    return listing(items, "id account_id client_id name scopes revoked_at", nothing=nothing)


@commands.change("rotate")
def rotate(context: CommandContext, client_id: ClientId) -> Output:
    """Give a client a new secret, printed now and never again. The secret before it still works; older ones end.

    Example: frontdesk client rotate 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    name = read_text("CLIENT_ID", client_id)
    secret = rotate_secret(context.tx, name, now=context.now)
    client = get_client(context.tx, name)
    _record(context, "client.rotated", client)
    return describe(_item(client, secret), f"{ONCE} Rotate once more to end the secret before it.")


@commands.change("revoke")
def revoke(context: CommandContext, client_id: ClientId) -> Output:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5 seconds.

    Example: frontdesk client revoke 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    client = get_client(context.tx, read_text("CLIENT_ID", client_id))
    if client.revoked_at is None:
        client = revoke_client(context.tx, client.client_id, now=context.now)
        _record(context, "client.revoked", client)
    return describe(_item(client))


def _record(context: CommandContext, action: str, client: ApiClient, **detail: object) -> None:
    context.record(
        action, account_id=client.account_id, subject_id=client.id, client_id=client.client_id, **detail
    )


def _item(client: ApiClient, secret: str | None = None) -> dict[str, Any]:
    return {
        "id": client.id,
        "account_id": client.account_id,
        "client_id": client.client_id,
        **({} if secret is None else {"client_secret": secret}),
        "name": client.name,
        "scopes": sorted(client.scopes),
        "requests_per_minute": client.requests_per_minute,
        "created_at": client.created_at,
        "revoked_at": client.revoked_at,
    }
