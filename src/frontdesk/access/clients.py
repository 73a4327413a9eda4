"""API clients of an account and their secrets: made by the server, shown once, at most two alive for rotation."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from frontdesk.access import store
from frontdesk.access.accounts import get_account
from frontdesk.access.scopes import Scope, granted, parse_scopes, scope_text
from frontdesk.access.secrets import digest, new_client_id, new_secret
from frontdesk.db import Tx
from frontdesk.errors import NotFound

LIVE_SECRETS = 2

# What can't be one of our ids is not looked up: a database may not even take it (U+0000).
_CLIENT_ID = re.compile(r"[!-~]{1,64}")


@dataclass(frozen=True, slots=True)
class ApiClient:
    """`client_id` is public. `requests_per_minute` None means no limit."""

    id: int
    account_id: int
    client_id: str
    name: str
    scopes: frozenset[Scope]
    requests_per_minute: int | None
    created_at: datetime
    revoked_at: datetime | None

    @property
    def all_scopes(self) -> frozenset[Scope]:
        """The client's scopes with what they stand for."""
        return granted(self.scopes)


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
    row = {
        "account_id": account_id,
        "client_id": new_client_id(),
        "name": name,
        "scopes": scope_text(scopes),
        "requests_per_minute": requests_per_minute,
        "created_at": now,
        "revoked_at": None,
    }
    client = _client({"id": store.insert_client(tx, row), **row})
    return client, _add_secret(tx, client, now=now)


def list_clients(tx: Tx, account_id: int | None = None) -> list[ApiClient]:
    return [_client(row) for row in store.select_clients(tx, account_id=account_id)]


def find_client(tx: Tx, client_id: str) -> ApiClient | None:
    if not _CLIENT_ID.fullmatch(client_id):
        return None
    rows = store.select_clients(tx, client_id=client_id)
    return _client(rows[0]) if rows else None


def get_client(tx: Tx, client_id: str) -> ApiClient:
    """Raises NotFound."""
    client = find_client(tx, client_id)
    if client is None:
        raise NotFound("There is no such API client.")
    return client


def rotate_secret(tx: Tx, client_id: str, *, now: datetime) -> str:
    """A second secret beside the newest one; an older one stops working now. Raises NotFound."""
    store.lock_client(
        tx, get_client(tx, client_id).id
    )  # or rotations at once would leave more than two alive
    client = get_client(tx, client_id)
    if client.revoked_at is not None:
        raise NotFound("There is no such API client.")
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


def _client(row: store.ClientRow) -> ApiClient:
    return ApiClient(
        id=row["id"],
        account_id=row["account_id"],
        client_id=row["client_id"],
        name=row["name"],
        scopes=parse_scopes(row["scopes"]) or frozenset(),
        requests_per_minute=row["requests_per_minute"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
    )
