"""API clients as people change them, at the command line and in the console: each change has its entry
in the audit trail, with the database id of the client as its subject.
"""

from datetime import datetime
from typing import Any

from frontdesk import audit
from frontdesk.access import accounts
from frontdesk.access.model import ApiClient, MadeSecret, NewClient
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.reach import Reach


def create(tx: Tx, new: NewClient, requester: Requester) -> MadeSecret:
    """A new client and its secret. Raises as `accounts.create_client`."""
    client, secret = accounts.create_client(tx, new, now=requester.now)
    _record(tx, requester, "client.created", client, scopes=sorted(client.scopes))
    return MadeSecret(client, secret)


def rotate(
    tx: Tx,
    reach: Reach,
    client_id: str,
    requester: Requester,
    *,
    leaked: bool = False,
    expires_at: datetime | None = None,
) -> MadeSecret:
    """A new secret of the client, as `accounts.rotate_secret` makes it. Raises NotFound."""
    secret = accounts.rotate_secret(
        tx, reach, client_id, now=requester.now, leaked=leaked, expires_at=expires_at
    )
    client = accounts.get_client(tx, reach, client_id)
    _record(tx, requester, "client.rotated", client, leaked=leaked)
    return MadeSecret(client, secret)


def end_secret(
    tx: Tx, reach: Reach, client_id: str, secret: int, requester: Requester
) -> ApiClient:
    """End one secret of the client, not its tokens. Raises NotFound, also for a revoked secret."""
    client = accounts.revoke_secret(tx, reach, client_id, secret, now=requester.now)
    _record(tx, requester, "client.secret_revoked", client, secret_id=secret)
    return client


def end_tokens(tx: Tx, reach: Reach, client_id: str, requester: Requester) -> tuple[ApiClient, int]:
    """End every token of the client; returns their number. Raises NotFound."""
    client, count = accounts.revoke_tokens(tx, reach, client_id, now=requester.now)
    _record(tx, requester, "client.tokens_revoked", client, tokens=count)
    return client, count


def revoke(tx: Tx, reach: Reach, client_id: str, requester: Requester) -> ApiClient:
    """End the client, its secrets and its tokens for good; a revoked one stays as it is. Raises
    NotFound.
    """
    client = accounts.get_client(tx, reach, client_id)
    if client.revoked_at is not None:
        return client
    revoked = accounts.revoke_client(tx, reach, client_id, now=requester.now)
    _record(tx, requester, "client.revoked", revoked)
    return revoked


def _record(tx: Tx, requester: Requester, action: str, client: ApiClient, **detail: Any) -> None:
    detail["client_id"] = client.client_id
    audit.record_action(tx, requester, action, client.account_id, client.id, **detail)
