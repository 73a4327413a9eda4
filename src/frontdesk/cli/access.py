"""`frontdesk account` and `frontdesk client`: the customers, and the API clients of customers and
of operators.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from frontdesk import codes
from frontdesk.access import accounts, create_account, list_accounts, list_clients
from frontdesk.access.model import AccountState, ApiClient, NewClient, Scope
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.layout import picked
from frontdesk.cli.options import (
    OnlyAccount,
    argument,
    given,
    id_argument,
    id_option,
    option,
    reach_of,
    read_text,
)
from frontdesk.cli.output import MISUSED, Output, describe, fail, listing
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.eligibility import list_holders
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import delivery
from frontdesk.reach import EVERY
from frontdesk.usage import change_quota, find_quota, list_quotas, list_usage
from frontdesk.usage.model import GIB, AccountUsage, Quota, Usage
from frontdesk.users import clients, end_sessions_of_account

AccountArgument = Annotated[int, id_argument("ID", "Id of the account (see `account list`).")]
ClientId = Annotated[str, argument("CLIENT_ID", "The client's public client_id.")]
ExpiresInDays = Annotated[
    int | None, option("The secret ends after so many days. Default: never.", min=1, max=3650)
]
COLLISIONS_SHOWN = 1000
MOST_IMMEDIATE = 100_000
ONCE = "\nKeep the client_secret: it can't be shown again."
_ROTATE_AGAIN = "Rotate once more to end the secret before it."

account = CommandGroup("account")
client = CommandGroup("client")


@account.change("create", '--name "Example Health" --time-zone America/New_York')
def create_one(
    context: CommandContext,
    name: Annotated[str, option("Name of the account.")],
    *,
    time_zone: Annotated[
        str | None,
        option("Where its members' days begin and end (see `account time-zone`).", metavar="ZONE"),
    ] = None,
) -> Output:
    """Create an account and print it with its id."""
    made = create_account(context.tx, name=read_text("name", name), now=context.now)
    if time_zone is not None:
        made = accounts.set_time_zone(context.tx, made.id, time_zone)
    context.record("account.created", account_id=made.id, subject_id=made.id)
    return describe(asdict(made))


@account.change("time-zone", "1 America/New_York")
def time_zone(
    context: CommandContext,
    account_id: AccountArgument,
    zone: Annotated[
        str | None, argument("ZONE", "Name of the time zone, such as America/New_York.")
    ] = None,
    *,
    clear: Annotated[bool, option("The account has no time zone any more.", "--clear")] = False,
) -> Output:
    """Show or change where the days of an account's members begin and end: their first and last day
    of access, and today for birth dates. Without a time zone a day lasts from its beginning in UTC
    to its end in Honolulu. Requests follow within 5 seconds.
    """
    if clear and zone is not None:
        fail("Give either ZONE or --clear.", status=MISUSED)
    if clear or zone is not None:
        chosen = None if clear else zone
        accounts.set_time_zone(context.tx, account_id, chosen)
        context.record(
            "account.time_zone_changed",
            account_id=account_id,
            subject_id=account_id,
            time_zone=chosen,
        )
    return describe(asdict(accounts.get_account(context.tx, account_id)))


@account.query("list", "--usage")
def list_all(
    tx: Tx,
    *,
    usage: Annotated[
        bool, option("With the bytes that each account has added, and its quotas.", "--usage")
    ] = False,
) -> Output:
    """List all accounts, with the immediate invitations of the last 60 minutes and their limit;
    with --usage the bytes of history, stored answers and files, today (UTC) and in the last 400
    days. A running server's last 5 seconds are missing.
    """
    if usage:
        return _with_usage(tx, [asdict(each) for each in list_accounts(tx, EVERY)])
    used = delivery.count_immediate(tx, now=system_clock())
    items = [
        asdict(each) | {"immediate_this_hour": used.get(each.id, 0)}
        for each in list_accounts(tx, EVERY)
    ]
    nothing = "There is no account yet. Make one: frontdesk account create --name NAME"
    return listing(
        items,
        "id name state time_zone created_at immediate_this_hour immediate_hourly_limit",
        nothing=nothing,
    )


@account.change("limit", "1 --immediate-per-hour 5000")
def limit(
    context: CommandContext,
    account_id: AccountArgument,
    immediate_per_hour: Annotated[
        int, option("Most immediate invitations in any 60 minutes.", min=1, max=MOST_IMMEDIATE)
    ],
) -> Output:
    """Change how many immediate invitations an account may send in any 60 minutes. Those above it
    wait, and none is lost. Workers see the change within 5 seconds.
    """
    changed = accounts.set_immediate_limit(context.tx, account_id, immediate_per_hour)
    context.record(
        "account.limited",
        account_id=account_id,
        subject_id=account_id,
        immediate=immediate_per_hour,
    )
    return describe(asdict(changed))


@account.query("collisions", "--account 1")
def collisions(tx: Tx, account: OnlyAccount = None) -> Output:
    """List whose identifiers and addresses accounts have sent: where these are unique over the
    service, the holder keeps them.

    A row has the last day (UTC) with such records of the account, the holder's id and the number of
    records. With --account, rows in which it sent or holds them.
    """
    found = list_holders(tx, reach_of(account), limit=COLLISIONS_SHOWN)
    items = [
        {
            "day": each["day"],
            "account_id": each["account_id"],
            "holder_id": each["holder_id"],
            "records": each["taken"],
        }
        for each in found
    ]
    nothing = "No account has sent a value of another one."
    return listing(items, "day account_id holder_id records", nothing=nothing)


def _with_usage(tx: Tx, accounts_: list[dict[str, Any]]) -> Output:
    today = system_clock().astimezone(UTC).date().isoformat()
    found = list_usage(tx, today)
    quotas = list_quotas(tx)
    items = []
    for each in accounts_:
        own = found.get(each["id"]) or AccountUsage(each["id"], Usage(), Usage())
        quota = asdict(quotas.get(each["id"]) or Quota(each["id"]))
        del quota["account_id"]
        item = _named(each) | {
            "today": own.today._asdict(),
            "kept": own.kept._asdict(),
            "quota": quota,
        }
        items.append(item)
    columns = (
        "id name today.history_bytes today.answer_bytes today.file_bytes "
        "kept.history_bytes kept.answer_bytes kept.file_bytes"
    )
    return listing(items, columns, nothing="There is no account yet.")


def _named(account: dict[str, Any]) -> dict[str, Any]:
    return {name: account[name] for name in ("id", "name", "state")}


@account.change("quota", "1 --stored-gib 32")
def quota(
    context: CommandContext,
    account_id: AccountArgument,
    *,
    stored_gib: Annotated[
        int | None,
        option(
            "History and stored answers that the account may add in a day.", min=1, max=1_000_000
        ),
    ] = None,
    files_gib: Annotated[
        int | None, option("Files that the account may send in a day.", min=1, max=1_000_000)
    ] = None,
) -> Output:
    """Show or change the bytes that an account may add in a day (UTC). A running server follows
    within seconds.
    """
    accounts.get_account(context.tx, account_id)
    changes = {
        name: count * GIB
        for name, count in (("stored_bytes_per_day", stored_gib), ("file_bytes_per_day", files_gib))
        if count is not None
    }
    if changes:
        change_quota(context.tx, account_id, **changes)
        context.record(
            "account.quota_changed", account_id=account_id, subject_id=account_id, **changes
        )
    return describe(asdict(find_quota(context.tx, account_id)))


@account.change("suspend", "1")
def suspend(context: CommandContext, account_id: AccountArgument) -> Output:
    """Refuse an account's tokens (403), issue no new ones, and let its files and mails wait. Every
    process does so within 5 seconds.
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
    """Close an account for good: its clients and tokens end, its files and mails never go on. Its
    records stay.
    """
    if confirm != accounts.get_account(context.tx, account_id).name:
        raise Invalid([Fault("confirm", codes.rows.DIFFERS, "must be the name of the account")])
    return _set_state(context, account_id, AccountState.CLOSED)


def _set_state(context: CommandContext, account_id: int, state: AccountState) -> Output:
    """Change the state and record it, unless it is so already."""
    found = accounts.get_account(context.tx, account_id)
    if found.state is not state:
        found = accounts.set_state(context.tx, account_id, state, now=context.now)
        if state is not AccountState.ACTIVE:
            end_sessions_of_account(context.tx, account_id)
        action = "resumed" if state is AccountState.ACTIVE else state.value
        context.record(f"account.{action}", account_id=account_id, subject_id=account_id)
    return describe(asdict(found))


@client.change(
    "create", '--account 1 --name "Nightly upload" --scope plans:read --scope eligibility:write'
)
def create(
    context: CommandContext,
    *,
    name: Annotated[str, option("The purpose of the client.")],
    account: Annotated[
        int | None,
        id_option(
            "--account", "Id of its account (see `account list`); an operator's client has none."
        ),
    ] = None,
    scope: Annotated[
        list[Scope] | None,
        option(
            "A right of the client; repeat for several. Default: customer, the whole of /v2. "
            "An operator's client has operator alone, and no account."
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        option("Its own limit of requests. Default: the installation's.", min=1, max=1_000_000),
    ] = None,
    expires_in_days: ExpiresInDays = None,
) -> Output:
    """Create an API client. Its client_secret is printed now and never again.

    A client of operators belongs to no account: frontdesk client create --name "Monitoring" --scope
    operator
    """
    scopes = set(scope or [Scope.CUSTOMER])
    end = _end(context, expires_in_days)
    new = NewClient(account, read_text("name", name), scopes, requests_per_minute, end)
    made = clients.create(context.tx, new, context.requester)
    return describe(_item(made.client, made.secret), ONCE)


@client.query("list", "--account 1")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List API clients, revoked clients included. Secrets are never shown."""
    items = [_item(each) for each in list_clients(tx, reach_of(account))]
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
    """Give a client a new secret, printed now and never again. The previous secret still works;
    older secrets end.
    """
    name = read_text("CLIENT_ID", client_id)
    end = _end(context, expires_in_days)
    made = clients.rotate(context.tx, EVERY, name, context.requester, leaked=now, expires_at=end)
    before = "The other secrets and all tokens end within 5 s." if now else _ROTATE_AGAIN
    return describe(_item(made.client, made.secret), f"{ONCE} {before}")


@client.query("secrets", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def secrets(tx: Tx, client_id: ClientId) -> Output:
    """List a client's secrets, newest first, with the day of their last use. Their texts are never
    shown.
    """
    name = read_text("CLIENT_ID", client_id)
    items = [asdict(each) for each in accounts.list_secrets(tx, EVERY, name)]
    columns = "id created_at expires_at revoked_at last_used_on"
    return listing(items, columns, nothing="The client has no secret.")


@client.change("revoke-secret", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e 2")
def end_secret(
    context: CommandContext,
    client_id: ClientId,
    secret_id: Annotated[int, id_argument("SECRET_ID", "Id of the secret (see `client secrets`).")],
) -> Output:
    """End one secret of a client. Its tokens stay valid: see `revoke-tokens`."""
    name = read_text("CLIENT_ID", client_id)
    of = clients.end_secret(context.tx, EVERY, name, secret_id, context.requester)
    return Output(
        {"client_id": of.client_id, "secret_id": secret_id}, [f"Secret {secret_id} has ended."]
    )


@client.change("revoke-tokens", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def end_tokens(context: CommandContext, client_id: ClientId) -> Output:
    """End every token of a client within 5 seconds. It can get new ones with its secrets."""
    name = read_text("CLIENT_ID", client_id)
    of, count = clients.end_tokens(context.tx, EVERY, name, context.requester)
    noun = "token" if count == 1 else "tokens"
    return Output({"client_id": of.client_id, "tokens": count}, [f"{count} {noun} revoked."])


@client.change("revoke", "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e")
def revoke(context: CommandContext, client_id: ClientId) -> Output:
    """End a client, its secrets and its tokens for good. Every process refuses them within 5
    seconds.
    """
    name = read_text("CLIENT_ID", client_id)
    return describe(_item(clients.revoke(context.tx, EVERY, name, context.requester)))


def _end(context: CommandContext, days: int | None) -> datetime | None:
    return None if days is None else context.now + timedelta(days=days)


def _item(of: ApiClient, secret: str | None = None) -> dict[str, Any]:
    item = picked(of, "id account_id client_id name requests_per_minute created_at revoked_at")
    return item | {"scopes": sorted(of.scopes)} | given(client_secret=secret)
