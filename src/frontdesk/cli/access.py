"""`frontdesk account` and `frontdesk client`: the customers, and the API clients of customers and of operators."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

from frontdesk.access import accounts, create_account, list_accounts, list_clients
from frontdesk.access.model import AccountState, ApiClient, NewClient, Scope
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.layout import picked
from frontdesk.cli.options import OnlyAccount, argument, given, id_argument, id_option, option, read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid

AccountArgument = Annotated[int, id_argument("ID", "Id of the account (see `account list`).")]
ClientId = Annotated[str, argument("CLIENT_ID", "The client's public client_id.")]
ExpiresInDays = Annotated[
    int | None, option("The secret ends after so many days. Default: never.", min=1, max=3650)
]
ONCE = "\nKeep the client_secret: it can't be shown again."
_ROTATE_AGAIN = "Rotate once more to end the secret before it."

account = CommandGroup("account")
client = CommandGroup("client")


@account.change("create", '--name "Example Health"')
def create_one(context: CommandContext, name: Annotated[str, option("Name of the account.")]) -> Output:
    """Create an account and print it with its id."""
    made = create_account(context.tx, name=read_text("name", name), now=context.now)
    context.record("account.created", account_id=made.id, subject_id=made.id)
    return describe(asdict(made))


@account.query("list", "--json")
def list_all(tx: Tx) -> Output:
    """List all accounts."""
    items = [asdict(each) for each in list_accounts(tx)]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    return listing(items, "id name state created_at", nothing=nothing)


@account.change("suspend", "1")
def suspend(context: CommandContext, account_id: AccountArgument) -> Output:
    """Refuse an account's tokens (403), issue no new ones, and let its files and mails wait. Every process does so
    within 5 seconds.
    """
    return _set_state(context, account_id, AccountState.SUSPENDED)


@account.change("resume", "1")
def resume(context: CommandContext, account_id: AccountArgument) -> Output:
    """End the suspension of an account: its tokens are good again, its files and mails go on."""
    return _set_state(context, account_id, AccountState.ACTIVE)


@account.change("close", '1 --confirm "Example Health"')
def close(
    context: CommandContext,
    account_id: AccountArgument,
    confirm: Annotated[str, option("The name of the account, since this can't be undone.")],
) -> Output:
    """Close an account for good: its clients and tokens end, its files and mails never go on. Its records stay."""
    if confirm != accounts.get_account(context.tx, account_id).name:
        raise Invalid([Fault("confirm", "differs", "must be the name of the account")])
    return _set_state(context, account_id, AccountState.CLOSED)


def _set_state(context: CommandContext, account_id: int, state: AccountState) -> Output:
    """Change the state and record it, unless it is so already."""
    found = accounts.get_account(context.tx, account_id)
    if found.state is not state:
        found = accounts.set_state(context.tx, account_id, state, now=context.now)
        action = "resumed" if state is AccountState.ACTIVE else state.value
        context.record(f"account.{action}", account_id=account_id, subject_id=account_id)
    return describe(asdict(found))


@client.change("create", '--account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write')
def create(
    context: CommandContext,
    *,
    name: Annotated[str, option("The purpose of the client.")],
    account: Annotated[
        int | None,
        id_option("--account", "Id of its account (see `account list`); an operator's client has none."),
    ] = None,
    scope: Annotated[
        list[Scope] | None,
        option(
            "A right of the client; repeat for several. Default: customer, the whole of /v2. An operator's client has "
            "operator alone, and no account."
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None, option("Its own limit of requests. Default: the installation's.", min=1, max=1_000_000)
    ] = None,
    expires_in_days: ExpiresInDays = None,
) -> Output:
    """Create an API client. Its client_secret is printed now and never again.

    A client of operators belongs to no account: frontdesk client create --name "Monitoring" --scope operator
    """
    scopes, end = set(scope or [Scope.CUSTOMER]), _end(context, expires_in_days)
    new = NewClient(account, read_text("name", name), scopes, requests_per_minute, end)
    made, secret = accounts.create_client(context.tx, new, now=context.now)
    _record(context, "client.created", made, scopes=sorted(made.scopes))
    return describe(_item(made, secret), ONCE)


@client.query("list", "--account 1")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List API clients, revoked clients included. Secrets are never shown."""
    items = [_item(each) for each in list_clients(tx, account)]
    nothing = "There is no API client. Make one: frontdesk client create --account ID --name NAME"
    return listing(items, "id account_id client_id name scopes revoked_at", nothing=nothing)


@client.change("rotate", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e --now")
def rotate(
    context: CommandContext,
    client_id: ClientId,
    *,
    now: Annotated[
        bool, option("After a leak: end the other secrets and every token, too.", "--now")
    ] = False,
    expires_in_days: ExpiresInDays = None,
) -> Output:
    """Give a client a new secret, printed now and never again. The previous secret still works; older secrets end."""
    name, end = read_text("CLIENT_ID", client_id), _end(context, expires_in_days)
    secret = accounts.rotate_secret(context.tx, name, now=context.now, leaked=now, expires_at=end)
    rotated = accounts.get_client(context.tx, name)
    _record(context, "client.rotated", rotated, leaked=now)
    before = "The other secrets and all tokens end within 5 s." if now else _ROTATE_AGAIN
    return describe(_item(rotated, secret), f"{ONCE} {before}")


@client.query("secrets", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def secrets(tx: Tx, client_id: ClientId) -> Output:
    """List a client's secrets, newest first, with the day of their last use. Their texts are never shown."""
    items = [asdict(each) for each in accounts.list_secrets(tx, read_text("CLIENT_ID", client_id))]
    columns = "id created_at expires_at revoked_at last_used_on"
    return listing(items, columns, nothing="The client has no secret.")


@client.change("revoke-secret", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e 2")
def end_secret(
    context: CommandContext,
    client_id: ClientId,
    secret_id: Annotated[int, id_argument("SECRET_ID", "Id of the secret (see `client secrets`).")],
) -> Output:
    """End one secret of a client. Its tokens stay valid: see `revoke-tokens`."""
    of = accounts.revoke_secret(context.tx, read_text("CLIENT_ID", client_id), secret_id, now=context.now)
    _record(context, "client.secret_revoked", of, secret_id=secret_id)
    return Output({"client_id": of.client_id, "secret_id": secret_id}, [f"Secret {secret_id} has ended."])


@client.change("revoke-tokens", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def end_tokens(context: CommandContext, client_id: ClientId) -> Output:
    """End every token of a client within 5 seconds. It can get new ones with its secrets."""
    of, count = accounts.revoke_tokens(context.tx, read_text("CLIENT_ID", client_id), now=context.now)
    _record(context, "client.tokens_revoked", of, tokens=count)
    noun = "token" if count == 1 else "tokens"
    return Output({"client_id": of.client_id, "tokens": count}, [f"{count} {noun} revoked."])


@client.change("revoke", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def revoke(context: CommandContext, client_id: ClientId) -> Output:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5 seconds."""
    revoked = accounts.get_client(context.tx, read_text("CLIENT_ID", client_id))
    if revoked.revoked_at is None:
        revoked = accounts.revoke_client(context.tx, revoked.client_id, now=context.now)
        _record(context, "client.revoked", revoked)
    return describe(_item(revoked))


def _end(context: CommandContext, days: int | None) -> datetime | None:
    return None if days is None else context.now + timedelta(days=days)


def _record(context: CommandContext, action: str, of: ApiClient, **detail: object) -> None:
    context.record(action, account_id=of.account_id, subject_id=of.id, client_id=of.client_id, **detail)


def _item(of: ApiClient, secret: str | None = None) -> dict[str, Any]:
    item = picked(of, "id account_id client_id name requests_per_minute created_at revoked_at")
    return item | {"scopes": sorted(of.scopes)} | given(client_secret=secret)
