"""Counts what a client learns of other accounts' members, and ends it at a limit (docs/decisions/0108).

Where identifiers are unique over the whole service, a refusal tells that another account has the value. A record tells that if it
brings a key of a member of another account: in a POST, in a file, in a dry run, in an undo or the undo of one. After a number
of such records in a UTC day the client's records with new keys are refused unheard, so that the answer no longer depends on
what others have.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.config import Uniqueness
from frontdesk.db.failures import StateChanged
from frontdesk.db.set_transaction import SetTransaction
from frontdesk.db.sets import Found
from frontdesk.eligibility import store
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import Action, StoredMember, Submission
from frontdesk.eligibility.unique_keys import KeyHolders
from frontdesk.errors import Fault, RateLimited

TOO_MANY_TAKEN = "too_many_taken"
TAKEN_PER_DAY = 1000
KEPT_DAYS = 30  # of the counts

_KEPT = timedelta(days=KEPT_DAYS)
_COMPARES_KEYS = (Action.ENROL, Action.COMPARE)


class TooManyTaken(RateLimited, kind="rate_limited"):
    """The client was told of as many values of other accounts as it may be in a day; it may go on tomorrow (UTC)."""

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        detail = "Too many records had the value of another record; new members and new keys are taken again tomorrow (UTC)."
        super().__init__(detail, retry_after_seconds=max(1, int((tomorrow - now).total_seconds())))
        self.faults = (
            Fault(
                "external_id",
                TOO_MANY_TAKEN,
                "was not looked at; new members and new keys are taken again tomorrow (UTC)",
            ),
        )


class ProbeSource(NamedTuple):
    """Where a record came from: the client, its account, and the file (None for a POST)."""

    client: str
    account_id: int
    file_id: int | None


@dataclass(slots=True)
class ChunkProbes:
    """The probes of a chunk's records: how many more each client has `left`, and those `found` so far.

    A chunk is `quiet` if no stored member and no record of another account is in it, and no client has reached its limit.
    """

    now: datetime
    left: dict[str, int]
    is_quiet: bool
    found: Counter[ProbeSource] = field(default_factory=Counter)
    request_ids: dict[ProbeSource, str] = field(default_factory=dict)

    def look_at(
        self, submission: Submission, stored: StoredMember | None, scope: int, holders: KeyHolders
    ) -> TooManyTaken | None:
        """Count the record if it brings a key of another account's member; its refusal if the client has none left.

        `stored` was found by the record's identifier.
        """
        if self.is_quiet or submission.action not in _COMPARES_KEYS:
            return None
        source = ProbeSource(submission.client, submission.account_id, submission.file_id)
        brought = _brought_keys(submission, stored)
        return self.count(source, submission.request_id, brought, scope=scope, holders=holders)

    def count(
        self,
        source: ProbeSource,
        request_id: str,
        brought: Mapping[str, str],
        *,
        scope: int,
        holders: KeyHolders,
    ) -> TooManyTaken | None:
        """`look_at` for a record that brings these keys, by column, to a member that does not have them."""
        if self.is_quiet or not brought:
            return None
        if self.left[source.client] <= 0:
            return TooManyTaken(self.now)
        if holders.are_others(brought, scope, source.account_id):
            self.found[source] += 1
            self.request_ids[source] = request_id
            self.left[source.client] -= 1
        return None


def sources_of(submissions: Iterable[Submission]) -> set[ProbeSource]:
    return {ProbeSource(each.client, each.account_id, each.file_id) for each in submissions}


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


class ProbeLimit:
    """How many records of a client may tell of another account's value in a UTC day, over all processes.

    The counts are in the database, and every chunk reads them with its stored members: a process that has seen nothing of a
    client knows as much of it as any other. A chunk that found some is counted at its end, under a lock of its client. It is
    decided again if others have found so many meanwhile that it tells too much: so the limit is exact (docs/decisions/0117).
    """

    def __init__(self, per_day: int, uniqueness: Uniqueness) -> None:
        self._per_day = per_day
        self._is_off = uniqueness is Uniqueness.ACCOUNT
        self._told: set[str] = set()

    def read(self, tx: SetTransaction, clients: Collection[str], *, now: datetime) -> Found:
        """What the clients were told today. A set read; `begin` takes its rows."""
        return Found() if self._is_off else store.find_told(tx, clients, _day(now))

    def begin(
        self,
        told: Found,
        sources: Collection[ProbeSource],
        members: Iterable[StoredMember],
        *,
        now: datetime,
    ) -> ChunkProbes:
        """The probes of a chunk that is about to be decided, of records from these sources."""
        if self._is_off:
            return ChunkProbes(now, {}, is_quiet=True)
        counts = {str(row["client"]): int(row["taken"]) for row in told.rows}
        clients = {source.client for source in sources}
        self._told = self._told - clients | counts.keys()
        left = {client: self._per_day - counts.get(client, 0) for client in clients}
        accounts = {member.values["account_id"] for member in members}
        accounts.update(source.account_id for source in sources)
        is_quiet = len(accounts) < 2 and min(left.values(), default=1) > 0
        return ChunkProbes(now, left, is_quiet=is_quiet)

    def has_told(self, client: str) -> bool:
        """Whether the client was told of other accounts' values, as far as this process knows."""
        return client in self._told

    def end(self, tx: SetTransaction, probes: ChunkProbes) -> None:
        """Store what the chunk found, and tell the audit trail each time that the number has doubled or the limit is reached.

        Raises StateChanged when the chunk found more than others have left.
        """
        if not probes.found:
            return
        day, entries = _day(probes.now), []
        found_by: Counter[str] = Counter()
        for source, found in probes.found.items():
            found_by[source.client] += found
        self._told |= found_by.keys()
        for client in sorted(found_by):
            store.lock_probes(tx, client)
            if sum(store.count_probes(tx, client, day).values()) + found_by[client] > self._per_day:
                raise StateChanged
        for source, found in probes.found.items():
            counts = store.count_probes(tx, source.client, day)
            before, today = counts.get(source.file_id, 0), sum(counts.values()) + found
            if not before:
                store.delete_probes(tx, before_day=_day(probes.now - _KEPT))
            has_doubled = (before + found).bit_length() > before.bit_length()
            if has_doubled or today >= self._per_day:
                told = {"taken": before + found, "taken_today": today}
                asked_by = (source.client, probes.request_ids[source], source.account_id, source.file_id)
                entries.append(AuditEntry("uniqueness.probed", *asked_by, told))
        store.insert_probes(
            tx, [{"day": day, "taken": n, **source._asdict()} for source, n in probes.found.items()]
        )
        if entries:
            audit.record(tx, entries, now=probes.now)


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
