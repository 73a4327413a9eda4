"""Second factors: time-based codes (RFC 6238) and recovery codes."""

from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.users.model import FactorOffer


class FactorKey(NamedTuple):
    """What seeds are derived from, and the name that an authenticator shows.

    `link_secret` is FRONTDESK_LINK_SECRET; `issuer` is the product and the installation's host.
    """

    link_secret: str
    issuer: str


def offered_factor(tx: Tx, key: FactorKey, user_id: int) -> FactorOffer:
    """The second factor that the user is setting up: the same at each call until it is confirmed.
    Reads only. Raises NotFound if none is being set up.
    """
    raise NotImplementedError


def offer_factor(tx: Tx, user_id: int) -> None:
    """Begin to set up another second factor; the present one stays in force until the new one is
    confirmed. For a session with a fresh second factor.
    """
    raise NotImplementedError


def count_recovery_codes(tx: Tx, user_id: int) -> int:
    """How many recovery codes the user has left."""
    raise NotImplementedError
