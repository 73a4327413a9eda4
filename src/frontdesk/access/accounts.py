"""Accounts and their API clients. The server makes each secret, shows it once, and keeps at most two alive for rotation."""

import re
import secrets
from collections.abc import Collection
from datetime import datetime

from frontdesk.access import store
from frontdesk.access.model import Account, ApiClient, Scope, digest, new_secret, scope_text
from frontdesk.db import Tx
from frontdesk.errors import NotFound

LIVE_SECRETS = 2

# An id of any other form can't be one of ours, and a database may not even take it (U+0000).
_CLIENT_ID = re.compile(r"[!-~]{1,64}")


def get_account(tx: Tx, account_id: int) -> Account:
    """Raises NotFound."""
    for account in store.list_accounts(tx, account_id):
        return account
    raise NotFound("account")


def create_client(
    tx: Tx,
    *,
    account_id: int,
    name: str,
    scopes: Collection[Scope],
    requests_per_minute: int | None,
    now: datetime,
) -> tuple[ApiClient, str]:
    """The new client and its secret, which can't be read again. Raises NotFound for an unknown account."""
    get_account(tx, account_id)
    client = store.insert_client(
        tx,
        account_id=account_id,
        client_id=secrets.token_hex(16),
        name=name,
        scopes=scope_text(scopes),
        requests_per_minute=requests_per_minute,
        created_at=now,
        revoked_at=None,
    )
    return client, _add_secret(tx, client, now=now)


def find_client(tx: Tx, client_id: str) -> ApiClient | None:
    found = store.list_clients(tx, client_id=client_id) if _CLIENT_ID.fullmatch(client_id) else []
    return found[0] if found else None


def get_client(tx: Tx, client_id: str) -> ApiClient:
    """Raises NotFound."""
    client = find_client(tx, client_id)
    if client is None:
        raise NotFound("API client")
    return client


def rotate_secret(tx: Tx, client_id: str, *, now: datetime) -> str:
    """A second secret beside the newest one; older secrets stop working now. Raises NotFound."""
    # Without the lock, rotations at the same time would leave more than two secrets alive.
    store.lock_client(tx, get_client(tx, client_id).id)
    client = get_client(tx, client_id)
    if client.revoked_at is not None:
        raise NotFound("API client")
    store.revoke_secrets(tx, client.id, keep_newest=LIVE_SECRETS - 1, now=now)
    return _add_secret(tx, client, now=now)


def revoke_client(tx: Tx, client_id: str, *, now: datetime) -> ApiClient:
    """End the client, its secrets and its tokens; in force in every process within 5 s. Raises NotFound."""
    client = get_client(tx, client_id)
    store.revoke_client(tx, client.id, now=now)
    return get_client(tx, client_id)


def _add_secret(tx: Tx, client: ApiClient, *, now: datetime) -> str:
    secret = new_secret()
    store.insert_secret(tx, client.id, secret_hash=digest(secret), now=now)
    return secret
