"""Whether a member was eligible on a day, as known at a time: read from the history alone, never from the stored record."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.model import EligibilityAnswer, EligibilityReason, HistoryEntry, Outcome
from frontdesk.errors import FrontdeskError, NotFound


def find_eligibility(
    tx: Tx, external_id: str, *, account_id: int | None, on: str, known_at: datetime | None = None
) -> EligibilityAnswer:
    """Both days of a member's access are inclusive. `known_at` None: as known now.

    Raises NotFound for an identifier that never was; FrontdeskError when several accounts have it.
    """
    found = store.find_ever(tx, external_id, account_id)
    if not found:
        raise NotFound(
            "eligible member",
            "There is no such eligible member. The external_id counts upper and lower case too.",
        )
    accounts = sorted({account for _, account in found})
    if len(accounts) > 1:
        named = ", ".join(map(str, accounts))
        raise FrontdeskError(
            f"Several accounts have such a member: {named}. Say which with --account.",
            code="several_accounts",
        )
    for id_, _ in reversed(found):
        answer = _answer(store.list_history(tx, id_), on, known_at)
        if answer is not None:
            return answer
    return EligibilityAnswer(False, EligibilityReason.NOT_ENROLLED)


def _answer(history: Iterable[HistoryEntry], on: str, known_at: datetime | None) -> EligibilityAnswer | None:
    """The answer as of `known_at`; None before the record was created and while it was withdrawn."""
    known: dict[str, Any] = {}
    last: HistoryEntry | None = None
    for entry in history:
        if known_at is not None and entry.changed_at > known_at:
            break
        known |= {name: after for name, (_, after) in entry.changes.items()}
        last = entry
    if last is None or last.outcome is Outcome.WITHDRAWN:
        return None
    effective, expiry = known.get("effective_date"), known.get("expiry_date")
    reason = EligibilityReason.ELIGIBLE
    if effective is None or on < effective:
        reason = EligibilityReason.NOT_YET
    elif expiry is not None and on > expiry:
        reason = EligibilityReason.EXPIRED
    is_eligible = reason is EligibilityReason.ELIGIBLE
    return EligibilityAnswer(is_eligible, reason, last.plan_id, effective, expiry, last.changed_at)
