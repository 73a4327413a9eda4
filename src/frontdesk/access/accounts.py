"""Accounts and their API clients. The server makes each secret, shows it once, and keeps at most
two alive for rotation.

A revocation takes effect in every process within 5 s, the time for which tokens are cached.
"""

import re
import secrets
from collections.abc import Collection
from datetime import datetime

from frontdesk import codes
from frontdesk.access import store
from frontdesk.access.callers import digest, new_secret
from frontdesk.access.model import Account, AccountState, ApiClient, ClientSecret, NewClient, Scope
from frontdesk.clock import find_time_zone
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, NotFound, Suspended
from frontdesk.reach import Reach

LIVE_SECRETS = 2
MOST_CLIENTS = 100  # of an account, that are not revoked

# A text of any other form is no client_id, and a database may refuse it (U+0000).
_CLIENT_ID = re.compile(r"[!-~]{1,64}")


def get_account(tx: Tx, account_id: int) -> Account:
    """Raises NotFound."""
    for account in store.list_accounts(tx, Reach.of(account_id)):
        return account
    raise NotFound("account")


def set_state(tx: Tx, account_id: int, state: AccountState, *, now: datetime) -> Account:
    """Suspend, resume or close an account; its clients end when it is closed, its records stay.

    While it is suspended, its tokens are refused, none is issued, and its files and mails wait.
    Raises NotFound; Suspended for an account that is closed already: it stays so for good.
    """
    if store.lock_account(tx, account_id).state is AccountState.CLOSED:
        raise Suspended("The account is closed for good.")
    store.change_account(tx, account_id, state=state)
    if state is AccountState.CLOSED:
        for client in store.list_clients(tx, Reach.of(account_id)):
            store.revoke_client(tx, client.id, now=now)
    return get_account(tx, account_id)


def set_immediate_limit(tx: Tx, account_id: int, limit: int) -> Account:
    """Change how many immediate invitations the account may send in any 60 minutes. Raises
    NotFound.
    """
    store.lock_account(tx, account_id)
    store.change_account(tx, account_id, immediate_hourly_limit=limit)
    return get_account(tx, account_id)


def set_time_zone(tx: Tx, account_id: int, time_zone: str | None) -> Account:
    """Change where the days of the account's members begin and end. Raises Invalid for a name that
    is in no database of time zones, NotFound.
    """
    if time_zone is not None and find_time_zone(time_zone) is None:
        rule = "must be a time zone by its name, such as America/New_York"
        raise Invalid([Fault("time_zone", codes.operators.UNKNOWN_TIME_ZONE, rule)])
    store.lock_account(tx, account_id)
    store.change_account(tx, account_id, time_zone=time_zone)
    return get_account(tx, account_id)


def set_reopens_absent(tx: Tx, account_id: int, *, reopens_absent: bool) -> Account:
    """Change whether members that a full file ended are reopened by a later record. Raises
    NotFound.
    """
    store.lock_account(tx, account_id)
    store.change_account(tx, account_id, reopens_absent=reopens_absent)
    return get_account(tx, account_id)


def refuse_unless_active(tx: Tx, account_id: int) -> None:
    """Raises NotFound, Suspended."""
    if (state := get_account(tx, account_id).state) is not AccountState.ACTIVE:
        raise Suspended(f"The account is {state}.")


def create_client(tx: Tx, new: NewClient, *, now: datetime) -> tuple[ApiClient, str]:
    """The new client and its secret, which can't be read again. Raises Invalid for scopes that
    don't fit the owner, and for one client of the account too many; NotFound for an unknown
    account; Suspended for a closed one.
    """
    _check_owner(new)
    if new.account_id is not None:
        if store.lock_account(tx, new.account_id).state is AccountState.CLOSED:
            raise Suspended("The account is closed for good.")
        if store.count_live_clients(tx, new.account_id) >= MOST_CLIENTS:
            rule = f"must be one of the account's {MOST_CLIENTS} clients: revoke some"
            raise Invalid([Fault("name", codes.operators.TOO_MANY, rule)])
    client = store.insert_client(tx, new, client_id=secrets.token_hex(16), now=now)
    return client, _add_secret(tx, client, new.expires_at, now=now)


def _check_owner(new: NewClient) -> None:
    """A client with the scope `operator` belongs to the installation, any other client to an
    account.
    """
    is_operators = Scope.OPERATOR in new.scopes
    if is_operators and len(set(new.scopes)) > 1:
        raise Invalid(
            [
                Fault(
                    "scope",
                    codes.operators.NOT_ALONE,
                    "must be operator alone: other scopes are of customers",
                )
            ]
        )
    if is_operators and new.account_id is not None:
        raise Invalid(
            [
                Fault(
                    "account",
                    codes.faults.NOT_ALLOWED,
                    "must be left out where the scope is operator",
                )
            ]
        )
    if not is_operators and new.account_id is None:
        raise Invalid(
            [Fault("account", codes.faults.REQUIRED, "must be given, unless the scope is operator")]
        )


def find_client(tx: Tx, reach: Reach, client_id: str) -> ApiClient | None:
    """The client with this public id; None for an unknown one, and for one out of reach."""
    if not _CLIENT_ID.fullmatch(client_id):
        return None
    return next(iter(store.list_clients(tx, reach, client_id=client_id)), None)


def get_client(tx: Tx, reach: Reach, client_id: str) -> ApiClient:
    """The client with this public id. Raises NotFound, also for one out of reach."""
    client = find_client(tx, reach, client_id)
    if client is None:
        raise NotFound("API client")
    return client


def rotate_secret(
    tx: Tx,
    reach: Reach,
    client_id: str,
    *,
    now: datetime,
    leaked: bool = False,
    expires_at: datetime | None = None,
) -> str:
    """A new secret beside the newest; older secrets stop working now. The new secret ends at
    `expires_at`.

    `leaked` ends every other secret and every token of the client, too. Raises NotFound.
    """
    # Without the lock, rotations at the same time would leave more than two secrets alive.
    store.lock_client(tx, get_client(tx, reach, client_id).id)
    client = get_client(tx, reach, client_id)
    if client.revoked_at is not None:
        raise NotFound("API client")
    store.revoke_secrets(tx, client.id, keep_newest=0 if leaked else LIVE_SECRETS - 1, now=now)
    if leaked:
        store.revoke_tokens(tx, client.id, now)
    return _add_secret(tx, client, expires_at, now=now)


def list_secrets(tx: Tx, reach: Reach, client_id: str) -> list[ClientSecret]:
    """The client's secrets, the newest first, without their texts. Raises NotFound."""
    return store.list_secrets(tx, get_client(tx, reach, client_id).id)


def last_uses(tx: Tx, clients: Collection[ApiClient]) -> dict[str, str]:
    """The UTC day (YYYY-MM-DD) on which each client last got a token, by its public client_id; a
    client that never did is missing.
    """
    days = store.last_uses(tx, [each.id for each in clients])
    return {each.client_id: days[each.id] for each in clients if each.id in days}


def revoke_secret(tx: Tx, reach: Reach, client_id: str, secret: int, *, now: datetime) -> ApiClient:
    """End one secret of the client, not its tokens. Raises NotFound, also for a revoked secret."""
    client = get_client(tx, reach, client_id)
    if not store.revoke_secret(tx, client.id, secret, now=now):
        raise NotFound("secret", "The client has no such secret, or it has been revoked.")
    return client


def revoke_tokens(tx: Tx, reach: Reach, client_id: str, *, now: datetime) -> tuple[ApiClient, int]:
    """End every token of the client; returns their number. Its secrets stay valid. Raises NotFound."""
    client = get_client(tx, reach, client_id)
    return client, store.revoke_tokens(tx, client.id, now)


def revoke_client(tx: Tx, reach: Reach, client_id: str, *, now: datetime) -> ApiClient:
    """End the client, its secrets and its tokens. Raises NotFound."""
    client = get_client(tx, reach, client_id)
    store.revoke_client(tx, client.id, now=now)
    return get_client(tx, reach, client_id)


def _add_secret(tx: Tx, client: ApiClient, expires_at: datetime | None, *, now: datetime) -> str:
    secret = new_secret()
    store.insert_secret(
        tx, client.id, secret_hash=digest(secret), created_at=now, expires_at=expires_at
    )
    return secret
