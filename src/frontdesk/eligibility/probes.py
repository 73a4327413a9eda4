"""Probes: records, and undos, with a key that a member of another account has.

The answer to a probe shows that the key is in use. An account gets TAKEN_PER_DAY such answers in a
UTC day. After that its records with a key of another account are refused without them, and all
other records are decided as before; what is written nowhere is decided as if no other account
existed (docs/decisions/0108).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from frontdesk import audit, codes
from frontdesk.audit import AuditEntry
from frontdesk.db.failures import StateChanged
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.model import Submission
from frontdesk.errors import RateLimited

# Answered probes of an account in a UTC day, over all its clients and all processes.
TAKEN_PER_DAY = 1000
HOLDERS_SHOWN = 20  # the accounts with most of the values, in an entry of the audit trail


class TooManyTaken(RateLimited):
    """The account has had its day's answers about other accounts' values, and this record has one
    more such value.

    The fault names external_id whichever value it is.
    """

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        detail = (
            "The record has a value of another record, and too many records had one today. "
            "Send this record again tomorrow (UTC); records with values of their own are accepted."
        )
        left = max(1, int((tomorrow - now).total_seconds()))
        super().__init__(
            detail, retry_after_seconds=left, fault=("external_id", codes.faults.TOO_MANY_TAKEN)
        )


@dataclass(slots=True)
class AccountProbes:
    """The probes of one account in a chunk: the first of them, the number of answers, and the
    records by the key's account.
    """

    first: Submission
    answered: int = 0
    by_holder: dict[int, int] = field(default_factory=dict)


class Probes:
    """The probes among the records of a chunk. `counts` are of `store.find_probe_counts`; `save`
    adds the chunk's probes to them.
    """

    def __init__(self, counts: Found, now: datetime) -> None:
        self.now = now
        self._day = now.date().isoformat()
        # The answers of the day by account, with those of the chunk.
        self._answers: dict[int, int] = _answers_of_day(counts.rows, self._day)
        self._by_account: dict[int, AccountProbes] = {}

    def is_at_limit(self, account_id: int) -> bool:
        return self._answers.get(account_id, 0) >= TAKEN_PER_DAY

    def count(self, submission: Submission, holders: set[int], *, is_answered: bool) -> None:
        """Count a record with keys of these other accounts, and whether its answer shows them."""
        account_id = submission.account_id
        probes = self._by_account.get(account_id)
        if probes is None:
            probes = AccountProbes(submission)
            self._by_account[account_id] = probes
        for holder in holders:
            probes.by_holder[holder] = probes.by_holder.get(holder, 0) + 1
        if is_answered:
            probes.answered += 1
            self._answers[account_id] = self._answers.get(account_id, 0) + 1

    def save(self, tx: SetTransaction) -> None:
        """Add the probes to the counts. The audit trail gets an entry each time a count has doubled
        or reaches the limit. Other chunks of the account wait for the row of its count, so the
        limit is exact. Raises StateChanged if the chunk has more answers than other chunks have
        left.
        """
        for account_id, probes in sorted(self._by_account.items()):
            self._save_of_account(tx, account_id, probes)

    def _save_of_account(self, tx: SetTransaction, account_id: int, probes: AccountProbes) -> None:
        """The first statement locks the account's row, so the counts by holder are written by one
        chunk at a time.
        """
        answered = probes.answered
        taken = store.count_probes(tx, account_id, self._day, answered)
        if answered and taken > TAKEN_PER_DAY:
            raise StateChanged
        for holder, count in sorted(probes.by_holder.items()):
            store.count_held(tx, account_id, holder, self._day, count)
        has_doubled = taken.bit_length() > (taken - answered).bit_length()
        if answered and (has_doubled or taken == TAKEN_PER_DAY):
            held = store.list_held(tx, account_id, self._day, limit=HOLDERS_SHOWN)
            detail = {
                "taken_today": taken,
                "held_by": {str(holder): count for holder, count in held},
            }
            by = probes.first
            entry = AuditEntry(
                "uniqueness.probed", by.client, by.request_id, account_id, by.file_id, detail
            )
            audit.record(tx, [entry], now=self.now)


def _answers_of_day(rows: Iterable[Mapping[str, Any]], day: str) -> dict[int, int]:
    return {int(row["account_id"]): int(row["taken"]) for row in rows if row["day"] == day}
