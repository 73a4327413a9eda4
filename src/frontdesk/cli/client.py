"""`frontdesk client`: the API clients of accounts and of operators. Each secret is shown once."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from frontdesk.access import list_clients
from frontdesk.access.accounts import (
    create_client,
    get_client,
    list_secrets,
    revoke_client,
    revoke_secret,
    revoke_tokens,
    rotate_secret,
)
from frontdesk.access.model import ApiClient, NewClient, Scope
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import OnlyAccount, id_argument, id_option, read_text
from frontdesk.cli.output import Output, describe, listing, picked
from frontdesk.db import Tx

LARGEST_REQUESTS_PER_MINUTE = 1_000_000
LONGEST_EXPIRY_DAYS = 3650

commands = CommandGroup()

ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The client's public client_id.")]
OwnAccount = Annotated[
    int | None,
    id_option("--account", "Id of its account (see `account list`); an operator's client has none."),
]
Scopes = Annotated[
    list[Scope] | None,
    typer.Option(
        help="A right of the client; repeat for several. Default: customer, the whole of /v2. An operator's client has operator "
        "alone, and no account."
    ),
]
RequestsPerMinute = Annotated[
    int | None,
    typer.Option(
        min=1, max=LARGEST_REQUESTS_PER_MINUTE, help="Its own limit of requests. Default: the installation's."
    ),
]
ExpiresInDays = Annotated[
    int | None,
    typer.Option(min=1, max=LONGEST_EXPIRY_DAYS, help="The secret ends after so many days. Default: never."),
]
SecretId = Annotated[int, id_argument("SECRET_ID", "Id of the secret (see `client secrets`).")]
ONCE = "\nKeep the client_secret: it can't be shown again."
_ROTATE_AGAIN = "Rotate once more to end the secret before it."


@commands.change("create")
def create(
    context: CommandContext,
    *,
    name: Annotated[str, typer.Option(help="The purpose of the client.")],
    account: OwnAccount = None,
    scope: Scopes = None,
    requests_per_minute: RequestsPerMinute = None,
    expires_in_days: ExpiresInDays = None,
) -> Output:
    """Create an API client. Its client_secret is printed now and never again.

    A client of operators belongs to no account: frontdesk client create --name "Monitoring" --scope operator

    Example: frontdesk client create --account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write
    """
    scopes, end = set(scope or [Scope.CUSTOMER]), _end(context, expires_in_days)
    new = NewClient(account, read_text("name", name), scopes, requests_per_minute, end)
    made, secret = create_client(context.tx, new, now=context.now)
    _record(context, "client.created", made, scopes=sorted(made.scopes))
    return describe(_item(made, secret), ONCE)


@commands.query("list")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List API clients, the revoked ones too. Secrets are never shown.

    Example: frontdesk client list --account 1
    """
    items = [_item(each) for each in list_clients(tx, account)]
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    return listing(items, "id account_id client_id name scopes revoked_at", nothing=nothing)


@commands.change("rotate")
def rotate(
    context: CommandContext,
    client_id: ClientId,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="After a leak: end the other secrets and every token, too.")
    ] = False,
    expires_in_days: ExpiresInDays = None,
) -> Output:
    """Give a client a new secret, printed now and never again. The secret before it still works; older ones end.

    Example: frontdesk client rotate 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e --now
    """
    name, end = read_text("CLIENT_ID", client_id), _end(context, expires_in_days)
    secret = rotate_secret(context.tx, name, now=context.now, leaked=now, expires_at=end)
    rotated = get_client(context.tx, name)
    _record(context, "client.rotated", rotated, leaked=now)
    before = "The other secrets and all tokens end within 5 s." if now else _ROTATE_AGAIN
    return describe(_item(rotated, secret), f"{ONCE} {before}")


@commands.query("secrets")
def secrets(tx: Tx, client_id: ClientId) -> Output:
    """List a client's secrets, newest first, with the day of their last use. Their texts are never shown.

    Example: frontdesk client secrets 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    items = [asdict(each) for each in list_secrets(tx, read_text("CLIENT_ID", client_id))]
    columns = "id created_at expires_at revoked_at last_used_on"
    return listing(items, columns, nothing="The client has no secret.")


@commands.change("revoke-secret")
def end_secret(context: CommandContext, client_id: ClientId, secret_id: SecretId) -> Output:
    """End one secret of a client. Tokens that it got go on: see `revoke-tokens`.

    Example: frontdesk client revoke-secret 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e 2
    """
    of = revoke_secret(context.tx, read_text("CLIENT_ID", client_id), secret_id, now=context.now)
    _record(context, "client.secret_revoked", of, secret_id=secret_id)
    return Output({"client_id": of.client_id, "secret_id": secret_id}, [f"Secret {secret_id} has ended."])


@commands.change("revoke-tokens")
def end_tokens(context: CommandContext, client_id: ClientId) -> Output:
    """End every token of a client within 5 seconds. It can get new ones with its secrets.

    Example: frontdesk client revoke-tokens 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    of, count = revoke_tokens(context.tx, read_text("CLIENT_ID", client_id), now=context.now)
    _record(context, "client.tokens_revoked", of, tokens=count)
    noun = "token" if count == 1 else "tokens"
    return Output({"client_id": of.client_id, "tokens": count}, [f"{count} {noun} revoked."])


@commands.change("revoke")
def revoke(context: CommandContext, client_id: ClientId) -> Output:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5 seconds.

    Example: frontdesk client revoke 0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e
    """
    revoked = get_client(context.tx, read_text("CLIENT_ID", client_id))
    if revoked.revoked_at is None:
        revoked = revoke_client(context.tx, revoked.client_id, now=context.now)
        _record(context, "client.revoked", revoked)
    return describe(_item(revoked))


def _end(context: CommandContext, days: int | None) -> datetime | None:
    return None if days is None else context.now + timedelta(days=days)


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
