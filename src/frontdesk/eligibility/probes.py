"""Counts what a client learns of other accounts' members, and ends it at a limit (docs/decisions/0108).

Where identifiers are unique over the whole service, a refusal tells that another account has the value. A record tells that if it
brings a key of a member of another account: in a POST, in a file, in a dry run, in an undo or the undo of one. After a number
of such records in a UTC day the client's records with new keys are refused unheard, so that the answer no longer depends on
what others have.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.config import Uniqueness
from frontdesk.db.failures import StateChanged
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import Action, StoredMember, Submission
from frontdesk.eligibility.unique_keys import KeyHolders
from frontdesk.errors import Fault, RateLimited

TOO_MANY_TAKEN = "too_many_taken"
TAKEN_PER_DAY = 1000
KEPT_DAYS = 30  # of the counts


class TooManyTaken(RateLimited, kind="rate_limited"):
    """The client was told of as many values of other accounts as it may be in a day; it may go on tomorrow (UTC)."""

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        again = "new members and new keys are taken again tomorrow (UTC)"
        super().__init__(
            f"Too many records had the value of another record; {again}.",
            retry_after_seconds=max(1, int((tomorrow - now).total_seconds())),
        )
        self.faults = (Fault("external_id", TOO_MANY_TAKEN, f"was not looked at; {again}"),)


class ProbeSource(NamedTuple):
    """Where a record came from: the client, its request and account, and the file (None for a POST)."""

    client: str
    request_id: str
    account_id: int
    file_id: int | None


class ProbeLimit(NamedTuple):
    """How many records of a client may tell of another account's value in a UTC day, over all processes."""

    per_day: int
    uniqueness: Uniqueness

    def read(self, tx: SetTransaction, clients: Collection[str], *, now: datetime) -> Found:
        """The clients' counts of today. A set read; ChunkProbes takes its rows."""
        if self.uniqueness is Uniqueness.ACCOUNT:
            return Found()
        return store.find_probe_counts(tx, clients, now.date().isoformat())


class ChunkProbes:
    """The probes among the records of a chunk, for members and records of these accounts.

    A chunk is `quiet` if it has one account only, and no client at its limit. Else each probe is counted, and `save` adds them to
    the client's row of the day. Another chunk of the client waits for that row: so the limit is exact.
    """

    def __init__(
        self, limit: ProbeLimit, counts: Found, accounts: AbstractSet[int], *, now: datetime
    ) -> None:
        self._per_day, self._now = limit.per_day, now
        self._counts = {row["client"]: row["taken"] for row in counts.rows}
        self._found: dict[str, tuple[int, ProbeSource]] = {}  # by client
        is_below = max(self._counts.values(), default=0) < limit.per_day
        self.is_quiet = limit.uniqueness is Uniqueness.ACCOUNT or (len(accounts) < 2 and is_below)

    def check(
        self, submission: Submission, stored: StoredMember | None, scope: int, holders: KeyHolders
    ) -> TooManyTaken | None:
        """Count the record if it brings a key of another account's member; its refusal if its client is at the limit.

        `stored` was found by the record's identifier.
        """
        if self.is_quiet or submission.action not in (Action.ENROL, Action.COMPARE):
            return None
        source = ProbeSource(
            submission.client, submission.request_id, submission.account_id, submission.file_id
        )
        return self.count(source, _brought_keys(submission, stored), scope=scope, holders=holders)

    def count(
        self, source: ProbeSource, brought: Mapping[str, str], *, scope: int, holders: KeyHolders
    ) -> TooManyTaken | None:
        """`check` for a record that brings these keys, by column, to a member that does not have them."""
        if self.is_quiet or not brought:
            return None
        found, _ = self._found.get(source.client, (0, source))
        if self._counts.get(source.client, 0) + found >= self._per_day:
            return TooManyTaken(self._now)
        if holders.are_others(brought, scope, source.account_id):
            self._found[source.client] = (found + 1, source)
        return None

    def save(self, tx: SetTransaction) -> None:
        """Add the probes to the counts. The audit trail has an entry each time that a count has doubled or is at the limit.

        Raises StateChanged when the chunk found more than other chunks have left.
        """
        today, entries = self._now.date(), list[AuditEntry]()
        for client, (found, source) in sorted(self._found.items()):
            taken = store.count_probes(tx, client, source.account_id, today.isoformat(), found)
            if taken > self._per_day:
                raise StateChanged
            if taken == found:
                store.delete_probes(tx, before_day=(today - timedelta(days=KEPT_DAYS)).isoformat())
            if taken.bit_length() > (taken - found).bit_length() or taken == self._per_day:
                entries.append(AuditEntry("uniqueness.probed", *source, {"taken_today": taken}))
        if entries:
            audit.record(tx, entries, now=self._now)


def _brought_keys(submission: Submission, stored: StoredMember | None) -> dict[str, str]:
    """The keys by column that the record would give to a member that does not have them."""
    record = submission.record
    is_own = stored is not None and stored.values["account_id"] == submission.account_id
    own = stored.values if stored is not None and is_own else {}
    of_new = None if is_own or submission.context is None else submission.context.given_of_new
    given = {**of_new, **record.given} if of_new else record.given
    return {
        column: key
        for column in UNIQUE.values()
        if (key := given.get(column)) is not None and own.get(column) != key
    }
