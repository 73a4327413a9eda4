"""Entries of the audit trail about users: ids and words only, never an e-mail address."""

from typing import Any

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.users.model import User


def record(tx: Tx, requester: Requester, action: str, user: User | None, **detail: Any) -> None:
    """An entry about the user, in the trail of the user's account."""
    account_id, user_id = (user.account_id, user.id) if user else (None, None)
    audit.record_action(tx, requester, action, account_id, user_id, **detail)


def record_own(tx: Tx, requester: Requester, action: str, user: User, **detail: Any) -> None:
    """An entry about what the user did."""
    record(tx, requester._replace(actor=user.actor), action, user, **detail)
