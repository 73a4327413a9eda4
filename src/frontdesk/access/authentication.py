"""Authenticates API clients by their secrets, and slows down guessing.

All processes count failures in the database over the last five minutes: per client at one address, and per address over all
clients. A limited caller is refused with the right secret too, else the limit would tell a good guess from a bad one. Refused
attempts don't count, so the limit always ends.

There is no count per client over all addresses: a stranger that keeps failing from many places would lock the customer out,
and the count would hinder only the guessing of 256 random bits. An IPv6 address counts as its /64, the range of one caller.
"""

import hmac
import math
from datetime import datetime, timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address

from frontdesk.access import limits_store, store
from frontdesk.access.accounts import find_client
from frontdesk.access.model import ApiClient, digest
from frontdesk.db import Tx
from frontdesk.errors import RateLimited

WINDOW_SECONDS = 300
FAILURES_PER_CLIENT_AND_ADDRESS = 10
FAILURES_PER_ADDRESS = 30

_WINDOW = timedelta(seconds=WINDOW_SECONDS)
_NO_CLIENT = 0  # no row has this id
_NO_SECRET = digest("")


def authenticate_client(
    tx: Tx, *, client_id: str, client_secret: str, address: str, now: datetime
) -> ApiClient | None:
    """The client, or None for a wrong pair: then commit the transaction, which records the failure. Raises RateLimited."""
    client_at_address, at_address = _limits(client_id, address)
    # Guesses that arrive together are counted one after the other, else all of them would pass below the limit.
    limits_store.lock_failures(tx, at_address)
    refuse_if_limited(tx, client_id=client_id, address=address, now=now)
    client = find_client(tx, client_id)
    if client is not None and client.revoked_at is not None:
        client = None
    secrets = store.live_secrets(tx, client.id if client else _NO_CLIENT, now)
    offered = digest(client_secret)
    # Every live secret is compared, and one even when there is none, so that the time tells nothing.
    hmac.compare_digest(offered, _NO_SECRET)
    matches = [secret for secret in secrets if hmac.compare_digest(offered, secret.secret_hash)]
    if client is not None and matches:
        today = now.date().isoformat()
        if matches[0].last_used_on != today:
            store.note_use(tx, matches[0].id, today)
        return client
    limits_store.add_failures(tx, (client_at_address, at_address), now=now, window=_counted(now))
    return None


def refuse_if_limited(tx: Tx, *, client_id: str, address: str, now: datetime) -> None:
    """Raises RateLimited while there are too many failures. Writes nothing, so a caller can ask before it opens a writing
    transaction."""
    limits = _limits(client_id, address)
    waits = [_wait_seconds(tx, subject, limit=limit, now=now) for subject, limit in limits.items()]
    if any(waits):
        raise RateLimited("Too many failed attempts.", retry_after_seconds=max(waits))


def _wait_seconds(tx: Tx, subject: bytes, *, limit: int, now: datetime) -> int:
    """Seconds until the subject has fewer than `limit` failures in the window; 0 if it has fewer now."""
    failures = limits_store.failures_within(tx, subject, window=_counted(now), limit=limit)
    if len(failures) < limit:
        return 0
    wait = (failures[-1] + _WINDOW - now).total_seconds()
    return min(max(1, math.ceil(wait)), WINDOW_SECONDS)


def _counted(now: datetime) -> tuple[datetime, datetime]:
    """The span of times in which a failure counts. It reaches a window into the future for clocks that differ. A failure
    farther ahead comes from a clock that has been set back since, and must not lock anybody out."""
    return now - _WINDOW, now + _WINDOW


def _limits(client_id: str, address: str) -> dict[bytes, int]:
    """The limits of the client's count at the address and of the address's, by hashed names: an address can be a person's."""
    network = network_of(address)
    return {
        digest(f"client:{network} {client_id}"): FAILURES_PER_CLIENT_AND_ADDRESS,
        digest(f"address:{network}"): FAILURES_PER_ADDRESS,
    }


def network_of(address: str) -> str:
    """The range of addresses that counts as one caller."""
    try:
        ip = ip_address(address)
    except ValueError:  # a socket of the machine's own, for instance
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Network((int(ip), 64), strict=False))
