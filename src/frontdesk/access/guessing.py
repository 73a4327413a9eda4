"""Counts failed attempts over all processes, and slows down guessing of secrets and passwords.

A subject of a count is a hash: a client at an address, an address, a user. A failure counts within
the window of its limit. Above a limit attempts are refused without being recorded, so guesses fill
no table, and the limit always ends.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from frontdesk.access import store
from frontdesk.db import Tx
from frontdesk.errors import RateLimited

LONGEST_WINDOW = timedelta(hours=1)


class FailureLimit(NamedTuple):
    """The most failures of a subject in any span of `window`, LONGEST_WINDOW at most."""

    most: int
    window: timedelta


FailureLimits = Mapping[bytes, FailureLimit]  # by the hash of the subject


def count_failure(tx: Tx, limits: FailureLimits, *, now: datetime) -> list[int]:
    """Count a failure of each subject; returns its ids, for `forgive`. Raises RateLimited where one
    has reached its limit.
    """
    # Concurrent guesses are counted one after the other; otherwise all of them would pass below
    # the limit. All transactions lock in the same order.
    for subject in sorted(limits):
        store.lock_failures(tx, subject)
    if wait := seconds_limited(tx, limits, now=now):
        raise RateLimited("Too many failed attempts.", retry_after_seconds=wait)
    return store.add_failures(tx, limits, now=now, window=_counted(now, LONGEST_WINDOW))


def forgive(tx: Tx, failures: Sequence[int]) -> None:
    """Take back failures: the attempt that was counted first has succeeded."""
    store.delete_failures(tx, failures)


def seconds_limited(tx: Tx, limits: FailureLimits, *, now: datetime) -> int:
    """Seconds until each subject is below its limit; 0 if all of them are now."""
    return max(_wait_seconds(tx, subject, limit, now) for subject, limit in limits.items())


def _wait_seconds(tx: Tx, subject: bytes, limit: FailureLimit, now: datetime) -> int:
    window = _counted(now, limit.window)
    failures = store.failures_within(tx, subject, window=window, limit=limit.most)
    if len(failures) < limit.most:
        return 0
    wait = (failures[-1] + limit.window - now).total_seconds()
    return min(max(1, math.ceil(wait)), int(limit.window.total_seconds()))


def _counted(now: datetime, window: timedelta) -> tuple[datetime, datetime]:
    """The span of times in which a failure counts. It reaches a window into the future, because
    clocks differ. A later failure was recorded before a clock was set back, and must not lock a
    caller out.
    """
    return now - window, now + window


def network_of(address: str) -> str:
    """The range of addresses that counts as one caller: an IPv6 address counts as its /64."""
    try:
        ip = ip_address(address)
    except ValueError:  # a socket of the machine's own, for instance
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Network((int(ip), 64), strict=False))
