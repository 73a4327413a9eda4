"""What was known of a member at a time, from the history alone; it asks the stored record nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.member import Outcome
from frontdesk.errors import FrontdeskError, NotFound


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The answer to "was this member eligible on that day, as far as was known at that time?"."""

    eligible: bool
    reason: str
    plan_id: int | None
    effective_date: str | None
    expiry_date: str | None
    known_since: datetime | None


def find_eligibility(
    tx: Tx, external_id: str, *, account_id: int | None, on: str, known_at: datetime | None = None
) -> Eligibility:
    """Both days of a member's access are inclusive. `known_at` None: as known now.

    Raises NotFound for an identifier that never was; FrontdeskError when several accounts have it.
    """
    found = store.find_ever(tx, external_id, account_id)
    if not found:
        raise NotFound("There is no such eligible member. The external_id counts upper and lower case too.")
    accounts = sorted({row["account_id"] for row in found})
    if len(accounts) > 1:
        named = ", ".join(map(str, accounts))
        raise FrontdeskError(f"Several accounts have such a member: {named}. Say which with --account.")
    for row in reversed(found):
        record = _record_at(store.history_of(tx, row["id"]), known_at)
        if record is not None:
            return _answer(record, on)
    return Eligibility(False, "not_enrolled", None, None, None, None)


def _record_at(history: Iterable[dict[str, Any]], known_at: datetime | None) -> dict[str, Any] | None:
    """The record as it was known then; None before it was created and while it was withdrawn."""
    record: dict[str, Any] = {}
    is_there = False
    for row in history:
        if known_at is not None and row["changed_at"] > known_at:
            break
        is_there = row["outcome"] != Outcome.WITHDRAWN
        record |= {name: after for name, (_, after) in row["changes"].items()}
        record |= {"plan_id": row["plan_id"], "known_since": row["changed_at"]}
    return record if is_there else None


def _answer(record: dict[str, Any], on: str) -> Eligibility:
    effective, expiry = record.get("effective_date"), record.get("expiry_date")
    reason = "eligible"
    if effective is None or on < effective:
        reason = "not_yet"
    elif expiry is not None and on > expiry:
        reason = "expired"
    return Eligibility(
        reason == "eligible", reason, record["plan_id"], effective, expiry, record["known_since"]
    )
