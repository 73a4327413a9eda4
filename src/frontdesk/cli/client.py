"""`frontdesk client`: the API clients of an account and their secrets, which are shown once."""

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
    typer.Option(help="What it may do; repeat for several. Default: customer, the whole of /v2."),
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(min=1, max=LARGEST_REQUESTS_PER_MINUTE, help="How much it may ask. Default: no limit."),
]
ONCE = "\nKeep the client_secret: it can't be shown again."


@commands.command("create")
def create(
    account: AccountId,
    *,
    name: Annotated[str, typer.Option(help="What the client is for.")],
    scope: Scopes = None,
    requests_per_minute: RequestsPerMinute = None,
    as_json: Json = False,
) -> None:
    """Create an API client; its client_secret is printed now and never again.

    Example: frontdesk client create --account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write
    """

    def work(deed: CommandContext) -> tuple[ApiClient, str]:
        client, secret = create_client(
            deed.tx,
            account_id=account,
            name=read_text("name", name),
            scopes=set(scope or [Scope.CUSTOMER]),
            requests_per_minute=requests_per_minute,
            now=deed.now,
        )
        about: dict[str, Any] = {"client_id": client.client_id, "scopes": sorted(client.scopes)}
        deed.record("client.created", account_id=account, subject_id=client.id, **about)
        return client, secret

    show_one(_item(*change(work)), as_json=as_json, note=ONCE)


@commands.command("list")
def list_(account: OnlyAccount = None, as_json: Json = False) -> None:
    """List API clients, the revoked ones too; never a secret.

    Example: frontdesk client list --account 1
    """
    items = [_item(client) for client in ask(lambda tx: list_clients(tx, account), account=account)]
    columns = ("id", "account_id", "client_id", "name", "scopes", "revoked_at")
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    show_list(items, columns=columns, as_json=as_json, nothing=nothing)


@commands.command("rotate")
def rotate(client_id: ClientId, as_json: Json = False) -> None:
    """Give a client a new secret, printed now and never again; the newest earlier one works on, older ones end.

    Example: frontdesk client rotate 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """

    def work(deed: CommandContext) -> tuple[ApiClient, str]:
        secret = rotate_secret(deed.tx, read_text("CLIENT_ID", client_id), now=deed.now)
        client = get_client(deed.tx, read_text("CLIENT_ID", client_id))
        deed.record(
            "client.rotated", account_id=client.account_id, subject_id=client.id, client_id=client.client_id
        )
        return client, secret

    note = f"{ONCE} Rotate once more to end the secret before it."
    show_one(_item(*change(work)), as_json=as_json, note=note)


@commands.command("revoke")
def revoke(client_id: ClientId, as_json: Json = False) -> None:
    """End a client, its secrets and its tokens for good; in force everywhere within 5 seconds.

    Example: frontdesk client revoke 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """

    def work(deed: CommandContext) -> ApiClient:
        before = get_client(deed.tx, read_text("CLIENT_ID", client_id))
        if before.revoked_at is not None:
            return before
        client = revoke_client(deed.tx, before.client_id, now=deed.now)
        deed.record(
            "client.revoked", account_id=client.account_id, subject_id=client.id, client_id=client.client_id
        )
        return client

    show_one(_item(change(work)), as_json=as_json)


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
