"""How guessing of passwords and codes is slowed down, over all processes (`access.guessing`).

An attempt counts as a failure from its beginning, and is forgiven when it succeeds: guesses that
are sent at once find no more room than one after the other. Above a limit the password is not
looked at: unlike the secret of a client it can be guessed.

Three counts: the user at the network, and the network over all users and clients, as for clients;
and the user over all networks, 20 an hour. A browser that has signed this user in before has a
count of its own in place of all three: nobody is locked out by a stranger, nor by one behind the same
gateway. An e-mail that no user
has is counted in the same way, so the limit does not say who is a user.
"""

from collections.abc import Sequence
from datetime import timedelta

from frontdesk.access import guessing
from frontdesk.access.authentication import PER_ADDRESS, PER_NAME_AND_ADDRESS, address_subject
from frontdesk.access.callers import digest
from frontdesk.access.guessing import FailureLimit, FailureLimits, network_of
from frontdesk.db import Tx
from frontdesk.users import store
from frontdesk.users.model import User, Visitor

PER_USER = FailureLimit(20, timedelta(hours=1))


def count_attempt(tx: Tx, visitor: Visitor, email: str, user: User | None) -> list[int]:
    """Count a failure of the user, or of an e-mail that no user has. Returns what `forgive` takes.
    Raises RateLimited.
    """
    limits = _limits(tx, visitor, email, user)
    return guessing.count_failure(tx, limits, now=visitor.requester.now)


def forgive(tx: Tx, failures: Sequence[int]) -> None:
    """The attempt has succeeded."""
    guessing.forgive(tx, failures)


def is_used_up(tx: Tx, visitor: Visitor, email: str, user: User | None) -> bool:
    """Whether another attempt would be refused."""
    limits = _limits(tx, visitor, email, user)
    return guessing.seconds_limited(tx, limits, now=visitor.requester.now) > 0


def _limits(tx: Tx, visitor: Visitor, email: str, user: User | None) -> FailureLimits:
    if user is not None and visitor.browser_secret is not None:
        browser = digest(visitor.browser_secret)
        if store.is_known_browser(tx, browser, user.id):
            return {digest(f"browser:{user.id} {visitor.browser_secret}"): PER_USER}
    network = network_of(visitor.address)
    return {
        digest(f"user:{network} {email}"): PER_NAME_AND_ADDRESS,
        address_subject(visitor.address): PER_ADDRESS,
        digest(f"user:{email}"): PER_USER,
    }
