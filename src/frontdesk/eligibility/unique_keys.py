"""The unique keys of members, and what a client learns from them of other accounts' members (docs/decisions/0108).

The keys are `external_id`, `member_id` and the folded e-mail, each unique inside a uniqueness scope: 0 where they are unique over
the whole service, else the account's id. A withdrawn member is alone in the scope -id, so that its keys are free again.

In the scope 0 a refusal tells that another account has the value. A probe is a record that brings a key of another account's
member: in a POST, in a file, in a dry run, in an undo or the undo of one. After a number of probes in a UTC day the client's
records with new keys are refused unheard, so that the answer no longer depends on what others have.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.config import Uniqueness
from frontdesk.db.failures import StateChanged
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import StoredMember
from frontdesk.errors import Fault, RateLimited

TAKEN_PER_DAY = 1000
KEPT_DAYS = 30  # of the counts


def scope_of(account_id: int, uniqueness: Uniqueness) -> int:
    return account_id if uniqueness is Uniqueness.ACCOUNT else 0


def not_unique(field: str) -> Fault:
    return Fault(field, "not_unique", "is already in use by another record")


def new_keys(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """The keys of `given`, by column, that `own` does not have."""
    return {
        column: key
        for column in UNIQUE.values()
        if (key := given.get(column)) is not None and own.get(column) != key
    }


def keys_by_scope(records: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[int, dict[str, set[str]]]:
    """The unique keys that the records carry, by scope and column. A record is its scope and its values by column."""
    keys: dict[int, dict[str, set[str]]] = {}
    for scope, values in records:
        of_scope = keys.get(scope)
        if of_scope is None:
            of_scope = keys[scope] = {column: set() for column in UNIQUE.values()}
        for column, found in of_scope.items():
            if (key := values.get(column)) is not None:
                found.add(key)
    return keys


class TooManyTaken(RateLimited, kind="rate_limited"):
    """The client was told of as many values of other accounts as it may be in a day; it may go on tomorrow (UTC)."""

    def __init__(self, now: datetime) -> None:
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        again = "new members and new keys are taken again tomorrow (UTC)"
        super().__init__(
            f"Too many records had the value of another record; {again}.",
            retry_after_seconds=max(1, int((tomorrow - now).total_seconds())),
        )
        self.faults = (Fault("external_id", "too_many_taken", f"was not looked at; {again}"),)


class ProbeLimit(NamedTuple):
    """How many probes a client may make in a UTC day, over all processes."""

    per_day: int
    uniqueness: Uniqueness

    def read(self, tx: SetTransaction, clients: Collection[str], *, now: datetime) -> Found:
        """The clients' counts of today. A set read; ChunkKeys takes its rows."""
        if self.uniqueness is Uniqueness.ACCOUNT:
            return Found()
        return store.find_probe_counts(tx, clients, now.date().isoformat())


class ChunkKeys:
    """The members of a chunk by every unique key that they carry, and the probes among its records.

    The members and records are of these accounts. A chunk is `quiet` if it has one account only, and no client at its limit. Else
    each probe is counted, and `save` adds them to the client's row of the day. Another chunk of the client waits for that row: so
    the limit is exact.
    """

    def __init__(
        self,
        members: Iterable[StoredMember],
        accounts: Collection[int],
        *,
        limit: ProbeLimit,
        counts: Found,
        now: datetime,
    ) -> None:
        self._holders: dict[tuple[str, int, str | None], StoredMember] = {}
        for member in members:
            self.hold(member)
        self._per_day, self._now = limit.per_day, now
        self._counts = {row["client"]: row["taken"] for row in counts.rows}
        self._found: dict[str, tuple[int, AuditEntry]] = {}  # by client
        is_below = max(self._counts.values(), default=0) < limit.per_day
        self.is_quiet = limit.uniqueness is Uniqueness.ACCOUNT or (len(accounts) < 2 and is_below)

    def lead(self, by_id: Mapping[int, StoredMember]) -> None:
        """Let the external_id of each merged member find the member that it was merged into, which is among them."""
        for member in by_id.values():
            kept, values = member, member.values
            while kept.values["merged_into"] is not None:
                kept = by_id[kept.values["merged_into"]]
            if kept is not member:
                self._holders["external_id", values["uniqueness_scope"], values["external_id"]] = kept

    def find(self, external_id: str | None, scope: int) -> StoredMember | None:
        return self._holders.get(("external_id", scope, external_id))

    def taken(self, values: Mapping[str, Any], scope: int, own: StoredMember | None) -> list[str]:
        """The unique fields of `values` whose key a member other than `own` carries."""
        holders, found = self._holders, []
        for field, column in UNIQUE.items():
            key = values.get(column)
            if key is not None and holders.get((column, scope, key), own) is not own:
                found.append(field)
        return found

    def hold(self, member: StoredMember) -> None:
        values, holders = member.values, self._holders
        scope = values["uniqueness_scope"]
        for column in UNIQUE.values():
            if (key := values[column]) is not None:
                holders[column, scope, key] = member

    def release(self, member: StoredMember) -> None:
        values = member.values
        for column in UNIQUE.values():
            self._holders.pop((column, values["uniqueness_scope"], values[column]), None)

    def probe(self, brought: Mapping[str, str], scope: int, entry: AuditEntry) -> TooManyTaken | None:
        """Count a record that brings these keys, by column, if another account's member has one; its refusal if its client is at
        the limit. The entry is what the audit trail would get."""
        if self.is_quiet or not brought:
            return None
        found, _ = self._found.get(entry.actor, (0, entry))
        if self._counts.get(entry.actor, 0) + found >= self._per_day:
            return TooManyTaken(self._now)
        holders = (self._holders.get((column, scope, key)) for column, key in brought.items())
        if any(holder is not None and holder.values["account_id"] != entry.account_id for holder in holders):
            self._found[entry.actor] = (found + 1, entry)
        return None

    def save(self, tx: SetTransaction) -> None:
        """Add the probes to the counts. The audit trail has an entry each time that a count has doubled or is at the limit.

        Raises StateChanged when the chunk found more than other chunks have left.
        """
        today, entries = self._now.date(), list[AuditEntry]()
        for client, (found, entry) in sorted(self._found.items()):
            taken = store.count_probes(tx, client, entry.account_id, today.isoformat(), found)
            if taken > self._per_day:
                raise StateChanged
            if taken == found:
                store.delete_probes(tx, before_day=(today - timedelta(days=KEPT_DAYS)).isoformat())
            if taken.bit_length() > (taken - found).bit_length() or taken == self._per_day:
                entries.append(entry._replace(detail={"taken_today": taken}))
        if entries:
            audit.record(tx, entries, now=self._now)
