"""Reads one member: its record, and whether it was eligible on a day as of a time, from the history alone."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.model import HistoryEntry, Outcome
from frontdesk.errors import FrontdeskError, NotFound


class EligibilityReason(StrEnum):
    """Why a member is eligible on a day, or why not."""

    ELIGIBLE = "eligible"
    NOT_YET = "not_yet"
    EXPIRED = "expired"
    NOT_ENROLLED = "not_enrolled"


class EligibilityAnswer(NamedTuple):
    """Whether a member was eligible on a day, as far as was known at a time; `known_since` is the last change until then."""

    eligible: bool
    reason: EligibilityReason
    plan_id: int | None = None
    effective_date: str | None = None
    expiry_date: str | None = None
    known_since: datetime | None = None


def find_member(tx: Tx, external_id: str, account_id: int | None) -> dict[str, Any]:
    """The member's record by column, of a merged one that of the member it leads to.

    Raises NotFound, and FrontdeskError `several_accounts`.
    """
    [*_, kept] = _led(tx, get_members_named(tx, external_id, account_id)[0])
    return kept


def get_members_named(
    tx: Tx, external_id: str, account_id: int | None, *, withdrawn: bool = False
) -> list[dict[str, Any]]:
    """The members that have the identifier themselves, one at most that is not withdrawn; errors as of `find_member`."""
    found = store.find_members(tx, external_id, account_id, withdrawn=withdrawn)
    accounts = sorted({member["account_id"] for member in found})
    if not accounts:
        detail = "There is no such eligible member. The external_id counts upper and lower case too."
        raise NotFound("eligible member", detail)
    if len(accounts) > 1:
        named = ", ".join(map(str, accounts))
        detail = f"Several accounts have such a member: {named}. Say which with --account."
        raise FrontdeskError(detail, code="several_accounts")
    return found


def find_eligibility(
    tx: Tx, external_id: str, *, account_id: int | None, on: str, known_at: datetime | None = None
) -> EligibilityAnswer:
    """The answer for the day `on` (`YYYY-MM-DD`), as of `known_at` or now. Both days of an access are inclusive.

    Raises NotFound for an identifier that never was, and FrontdeskError `several_accounts`.
    """
    for named in reversed(get_members_named(tx, external_id, account_id, withdrawn=True)):
        for member in _led(tx, named):
            answer = _answer(store.list_history(tx, member["id"]), on, known_at)
            if answer is not None:
                return answer
    return EligibilityAnswer(False, EligibilityReason.NOT_ENROLLED)


def _led(tx: Tx, member: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The member, and those that it leads to: the last one is not merged."""
    yield member
    while member["merged_into"] is not None:
        member = store.find_member_of(tx, member["merged_into"])
        yield member


def _answer(history: Iterable[HistoryEntry], on: str, known_at: datetime | None) -> EligibilityAnswer | None:
    """The answer as of `known_at`; None before the record was created and while it was withdrawn or merged."""
    known: dict[str, Any] = {}
    last: HistoryEntry | None = None
    for entry in history:
        if known_at is not None and entry.changed_at > known_at:
            break
        known |= {name: after for name, (_, after) in entry.changes.items()}
        last = entry
    if last is None or last.outcome is Outcome.WITHDRAWN or known.get("merged_into") is not None:
        return None
    effective, expiry = known.get("effective_date"), known.get("expiry_date")
    reason = EligibilityReason.ELIGIBLE
    if effective is None or on < effective:
        reason = EligibilityReason.NOT_YET
    elif expiry is not None and on > expiry:
        reason = EligibilityReason.EXPIRED
    is_eligible = reason is EligibilityReason.ELIGIBLE
    return EligibilityAnswer(is_eligible, reason, last.plan_id, effective, expiry, last.changed_at)
