"""Proving to be an API client with its secret, and slowing down those who guess.

Failures are counted in the database, so that all processes share the count, in a sliding window of five minutes: per
client AND address (a stranger elsewhere can't lock a customer out), and per address over all clients. While a caller is
limited even the right secret is refused, or the limit would tell a good guess from a bad one.
"""

import hmac
from datetime import datetime, timedelta

from frontdesk.access import store
from frontdesk.access.clients import ApiClient, find_client
from frontdesk.access.secrets import digest
from frontdesk.db import Tx
from frontdesk.errors import RateLimited

WINDOW_SECONDS = 300
FAILURES_PER_CLIENT_AND_ADDRESS = 10
FAILURES_PER_ADDRESS = 50

_NO_SECRET = digest("")


def authenticate_client(
    tx: Tx, *, client_id: str, client_secret: str, address: str, now: datetime
) -> ApiClient | None:
    """The client, or None for a wrong pair, in which case the failure is recorded: commit it. Raises RateLimited."""
    pair, alone = digest(f"pair:{client_id}:{address}"), digest(f"address:{address}")
    since = now - timedelta(seconds=WINDOW_SECONDS)
    for subject, limit in ((pair, FAILURES_PER_CLIENT_AND_ADDRESS), (alone, FAILURES_PER_ADDRESS)):
        failures = store.failures_since(tx, subject, since, limit)
        if len(failures) >= limit:
            wait = failures[-1] + timedelta(seconds=WINDOW_SECONDS) - now
            raise RateLimited(
                "Too many failed attempts.", retry_after_seconds=max(1, int(wait.total_seconds()) + 1)
            )
    client = find_client(tx, client_id)
    hashes = store.live_secret_hashes(tx, client.id) if client and client.revoked_at is None else []
    offered = digest(client_secret)
    # Every live secret is compared, and one is compared even when there is none, so that time tells nothing.
    matches = [hmac.compare_digest(offered, known) for known in [*hashes, _NO_SECRET]]
    if client is not None and any(matches[:-1]):
        return client
    store.delete_failures_before(tx, since)
    store.insert_failures(tx, (pair, alone), now)
    return None
