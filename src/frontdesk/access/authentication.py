"""Authenticates API clients by their secrets, and slows down guessing.

All processes count failures over the last five minutes (`guessing`): per client at one address, and
per address over all clients. Above the limit wrong pairs are refused. The right secret is accepted
after a pause (PAUSE_SECONDS): callers that share an address, behind a proxy or a company's gateway,
must not lock each other out, and secrets of 256 random bits can't be guessed.

Failures are not counted per client over all addresses: a stranger that fails from many addresses
would lock the customer out.
"""

import hmac
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk.access import guessing, store
from frontdesk.access.accounts import find_client
from frontdesk.access.callers import digest
from frontdesk.access.guessing import FailureLimit, FailureLimits, network_of
from frontdesk.access.model import ApiClient
from frontdesk.db import Tx
from frontdesk.reach import EVERY

WINDOW_SECONDS = 300
FAILURES_PER_CLIENT_AND_ADDRESS = 10
FAILURES_PER_ADDRESS = 30
PAUSE_SECONDS = 1.0  # of the right secret from a limited address

PER_NAME_AND_ADDRESS = FailureLimit(
    FAILURES_PER_CLIENT_AND_ADDRESS, timedelta(seconds=WINDOW_SECONDS)
)
PER_ADDRESS = FailureLimit(FAILURES_PER_ADDRESS, timedelta(seconds=WINDOW_SECONDS))
_NO_CLIENT = 0  # no row has this id
_NO_SECRET = digest("")


class Recognised(NamedTuple):
    """A client with one of its live secrets. `is_first_today`: the secret's day of last use has to
    be stored.
    """

    client: ApiClient
    secret: int
    is_first_today: bool


def recognise_client(
    tx: Tx, *, client_id: str, client_secret: str, now: datetime
) -> Recognised | None:
    """The client behind the pair; None for a wrong one. Reads only, so the right secret never waits
    for the writer.
    """
    # Whose client it is, the pair shows: no reach is known before.
    client = find_client(tx, EVERY, client_id)
    if client is not None and client.revoked_at is not None:
        client = None
    secrets = store.live_secrets(tx, client.id if client else _NO_CLIENT, now)
    offered = digest(client_secret)
    # Every live secret is compared, and a dummy if there is none, so that the time reveals nothing.
    hmac.compare_digest(offered, _NO_SECRET)
    matches = [secret for secret in secrets if hmac.compare_digest(offered, secret.secret_hash)]
    if client is None or not matches:
        return None
    return Recognised(client, matches[0].id, matches[0].last_used_on != now.date().isoformat())


def note_use(tx: Tx, recognised: Recognised, *, now: datetime) -> None:
    store.note_use(tx, recognised.secret, now.date().isoformat())


def record_failure(tx: Tx, *, client_id: str, address: str, now: datetime) -> bool:
    """Record a wrong pair; True if it was the last before the limit. Raises RateLimited above the
    limit.
    """
    limits = _limits(client_id, address)
    guessing.count_failure(tx, limits, now=now)
    return guessing.seconds_limited(tx, limits, now=now) > 0


def seconds_limited(tx: Tx, *, client_id: str, address: str, now: datetime) -> int:
    """Seconds until a wrong pair is checked again; 0 below the limit."""
    return guessing.seconds_limited(tx, _limits(client_id, address), now=now)


def _limits(client_id: str, address: str) -> FailureLimits:
    """The limits of the client's count at the address and of the address's, by hashed names: an
    address can be a person's.
    """
    network = network_of(address)
    return {
        digest(f"client:{network} {client_id}"): PER_NAME_AND_ADDRESS,
        address_subject(address): PER_ADDRESS,
    }


def address_subject(address: str) -> bytes:
    """The count of an address, over all clients and users."""
    return digest(f"address:{network_of(address)}")
