"""Authenticates API clients by their secrets, and slows down guessing.

All processes count failures in the database over the last five minutes: per client at one address,
and per address over all clients. Above the limit wrong pairs are refused without being recorded, so
guesses fill no table, and the limit always ends. The right secret is accepted after a pause
(PAUSE_SECONDS): callers that share an address, behind a proxy or a company's gateway, must not lock
each other out, and secrets of 256 random bits can't be guessed.

Failures are not counted per client over all addresses: a stranger that fails from many addresses
would lock the customer out. An IPv6 address counts as its /64, the range of one caller.
"""

import hmac
import math
from datetime import datetime, timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from frontdesk.access import store
from frontdesk.access.accounts import find_client
from frontdesk.access.callers import digest
from frontdesk.access.model import ApiClient
from frontdesk.db import Tx
from frontdesk.errors import RateLimited
from frontdesk.reach import EVERY

WINDOW_SECONDS = 300
FAILURES_PER_CLIENT_AND_ADDRESS = 10
FAILURES_PER_ADDRESS = 30
PAUSE_SECONDS = 1.0  # of the right secret from a limited address

_WINDOW = timedelta(seconds=WINDOW_SECONDS)
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
    client_at_address, at_address = _limits(client_id, address)
    # Concurrent guesses are counted one after the other; otherwise all of them would pass below the
    # limit.
    store.lock_failures(tx, at_address)
    if wait := seconds_limited(tx, client_id=client_id, address=address, now=now):
        raise RateLimited("Too many failed attempts.", retry_after_seconds=wait)
    store.add_failures(tx, (client_at_address, at_address), now=now, window=_counted(now))
    return seconds_limited(tx, client_id=client_id, address=address, now=now) > 0


def seconds_limited(tx: Tx, *, client_id: str, address: str, now: datetime) -> int:
    """Seconds until a wrong pair is checked again; 0 below the limit."""
    limits = _limits(client_id, address)
    return max(
        _wait_seconds(tx, subject, limit=limit, now=now) for subject, limit in limits.items()
    )


def _wait_seconds(tx: Tx, subject: bytes, *, limit: int, now: datetime) -> int:
    """Seconds until the subject has fewer than `limit` failures in the window; 0 if it has fewer
    now.
    """
    failures = store.failures_within(tx, subject, window=_counted(now), limit=limit)
    if len(failures) < limit:
        return 0
    wait = (failures[-1] + _WINDOW - now).total_seconds()
    return min(max(1, math.ceil(wait)), WINDOW_SECONDS)


def _counted(now: datetime) -> tuple[datetime, datetime]:
    """The span of times in which a failure counts. It reaches a window into the future, because
    clocks differ. A later failure was recorded before a clock was set back, and must not lock a
    caller out.
    """
    return now - _WINDOW, now + _WINDOW


def _limits(client_id: str, address: str) -> dict[bytes, int]:
    """The limits of the client's count at the address and of the address's, by hashed names: an
    address can be a person's.
    """
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
