"""Sessions of users: read, confirm by a second factor, list, end."""

from datetime import datetime

from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.users.factors import FactorKey
from frontdesk.users.model import Session, SignedIn, Visitor


def session_of(db: Database, secret: str, *, now: datetime, is_use: bool = True) -> Session | None:
    """The session behind a cookie; None once it has ended, its user has ended, or the account is
    suspended. A use moves its idle end; it is written once a minute at most. A refresh by a timer
    is no use. An answer may be kept for 5 s at most.
    """
    raise NotImplementedError


def confirm(
    db: Database, visitor: Visitor, key: FactorKey, *, session: str, code: str
) -> SignedIn | None:
    """Give the second factor anew: the session counts as fresh for 10 minutes and gets another
    secret. None for a wrong code; the fifth ends the session. Raises RateLimited, and NotFound for
    a session that has ended.
    """
    raise NotImplementedError


def change_factor(
    db: Database, visitor: Visitor, key: FactorKey, *, session: str, code: str
) -> SignedIn | None:
    """Confirm the second factor that `factors.offer_factor` began to set up. The user's other
    sessions and the old recovery codes end. Raises as `confirm`, and NotFresh.
    """
    raise NotImplementedError


def renew_recovery_codes(tx: Tx, session: Session, requester: Requester) -> tuple[str, ...]:
    """Ten new recovery codes; the old ones end. Raises NotFresh."""
    raise NotImplementedError


def change_password(
    db: Database, visitor: Visitor, *, session: str, present: str, new: str
) -> SignedIn | None:
    """Change one's own password; None if `present` is wrong. The user's other sessions end, and
    this one gets another secret. Raises Invalid for the new one, NotFresh, RateLimited.
    """
    raise NotImplementedError


def list_sessions(tx: Tx, user_id: int, *, now: datetime) -> list[Session]:
    """The user's live sessions, the newest first."""
    raise NotImplementedError


def end_session(tx: Tx, user_id: int, session_id: int, requester: Requester) -> None:
    """End a session of the user: sign out, or end one of one's own. Raises NotFound."""
    raise NotImplementedError


def end_sessions(tx: Tx, user_id: int, requester: Requester) -> int:
    """End every session of the user; returns how many there were."""
    raise NotImplementedError


def refuse_unless_fresh(session: Session, *, now: datetime) -> None:
    """Raises NotFresh if the last second factor is older than 10 minutes."""
    raise NotImplementedError
