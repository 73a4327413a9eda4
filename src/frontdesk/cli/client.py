"""`frontdesk client`: the API clients of an account. Each secret is shown once."""

from typing import Annotated, Any

import typer

from frontdesk.access import create_client, get_client, list_clients, revoke_client, rotate_secret
from frontdesk.access.model import ApiClient, Scope
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, ClientId, Json, OnlyAccount, read_text
from frontdesk.cli.output import show_list, show_one
from frontdesk.clock import wire_time

LARGEST_REQUESTS_PER_MINUTE = 1_000_000

commands = typer.Typer(no_args_is_help=True, help="API clients of an account and their secrets.")


Scopes = Annotated[
    list[Scope] | None,
    typer.Option(help="A right of the client; repeat for several. Default: customer, the whole of /v2."),
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=1, max=LARGEST_REQUESTS_PER_MINUTE, help="Its limit of requests. Default: no limit."),
]
ONCE = "\nKeep the client_secret: it can't be shown again."


@commands.command("create")
def create(
    account: AccountId,
    *,
    name: Annotated[str, typer.Option(help="The purpose of the client.")],
    scope: Scopes = None,
    requests_per_minute: RequestsPerMinute = None,
    as_json: Json = False,
) -> None:
    """Create an API client. Its client_secret is printed now and never again.

    Example: frontdesk client create --account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write
    """

    def work(context: CommandContext) -> tuple[ApiClient, str]:
        client, secret = create_client(
            context.tx,
            account_id=account,
            name=read_text("name", name),
            scopes=set(scope or [Scope.CUSTOMER]),
            requests_per_minute=requests_per_minute,
            now=context.now,
        )
        _record(context, "client.created", client, scopes=sorted(client.scopes))
        return client, secret

    show_one(_item(*change(work)), as_json=as_json, note=ONCE)


@commands.command("list")
def list_(account: OnlyAccount = None, as_json: Json = False) -> None:
    """List API clients, the revoked ones too. Secrets are never shown.

    Example: frontdesk client list --account 1
    """
    items = [_item(client) for client in ask(lambda tx: list_clients(tx, account), account=account)]
    columns = ("id", "account_id", "client_id", "name", "scopes", "revoked_at")
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    show_list(items, columns=columns, as_json=as_json, nothing=nothing)


@commands.command("rotate")
def rotate(client_id: ClientId, as_json: Json = False) -> None:
    """Give a client a new secret, printed now and never again. The secret before it still works; older ones end.

    Example: frontdesk client rotate 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """

    def work(context: CommandContext) -> tuple[ApiClient, str]:
        secret = rotate_secret(context.tx, read_text("CLIENT_ID", client_id), now=context.now)
        client = get_client(context.tx, read_text("CLIENT_ID", client_id))
        _record(context, "client.rotated", client)
        return client, secret

    note = f"{ONCE} Rotate once more to end the secret before it."
    show_one(_item(*change(work)), as_json=as_json, note=note)


@commands.command("revoke")
def revoke(client_id: ClientId, as_json: Json = False) -> None:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5 seconds.

    Example: frontdesk client revoke 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """

    def work(context: CommandContext) -> ApiClient:
        before = get_client(context.tx, read_text("CLIENT_ID", client_id))
        if before.revoked_at is not None:
            return before
        client = revoke_client(context.tx, before.client_id, now=context.now)
        _record(context, "client.revoked", client)
        return client

    show_one(_item(change(work)), as_json=as_json)


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
        "created_at": wire_time(client.created_at),
        "revoked_at": None if client.revoked_at is None else wire_time(client.revoked_at),
    }
