"""Signing in, step by step: e-mail and password, then the second factor, then a session.

Functions that take `db` hash passwords between their transactions, so call them without one.
"""

from datetime import datetime

from frontdesk.db import Database, Tx
from frontdesk.users.factors import FactorKey
from frontdesk.users.model import AttemptBegun, SignedIn, SignInAttempt, Visitor


def check_password(
    db: Database, visitor: Visitor, *, email: str, password: str
) -> AttemptBegun | SignedIn | None:
    """The first step. None for a wrong pair, an ended user and a suspended account: nothing says
    which. A demo user of a sandbox is signed in at once.

    Raises RateLimited (`retry_after_seconds`) when too many attempts have failed from this network
    or for this user; the password is not looked at then.
    """
    raise NotImplementedError


def attempt_of(tx: Tx, secret: str, *, now: datetime) -> SignInAttempt | None:
    """The sign-in under way; None once it has ended. Reads only."""
    raise NotImplementedError


def check_code(
    db: Database, visitor: Visitor, key: FactorKey, *, attempt: str, code: str
) -> SignedIn | None:
    """The second step: a code of the app, or a recovery code. None for a wrong one; the fifth
    ends the attempt (`attempt_of` is None then). Raises NotFound (`sign-in`) for an attempt that
    has ended, RateLimited.
    """
    raise NotImplementedError


def set_up_factor(
    db: Database, visitor: Visitor, key: FactorKey, *, attempt: str, code: str
) -> SignedIn | None:
    """The second step of a user without a second factor: the first code of the one that
    `factors.offered_factor` shows. None for a wrong one. The answer has the ten recovery codes.
    Raises as `check_code`.
    """
    raise NotImplementedError
