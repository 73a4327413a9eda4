"""The undo of a request: `restore` gives each member the values that its history has of the time
before. `UndoDryRun` makes the same decisions without writing.

Files can be undone backwards: a member is as the request left it if its values are, whoever wrote
last. Two later changes of which one takes the other back, such as a file and its undo, leave
nothing behind (docs/decisions/0169). A member that the request created is withdrawn: its row stays,
alone in the uniqueness scope -id.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import Enum, auto
from typing import Any, NamedTuple

from frontdesk import codes, events
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx, sets
from frontdesk.db.engine import scratch_database
from frontdesk.db.sets import Found
from frontdesk.eligibility import store
from frontdesk.eligibility.access_days import AccessPair, Spans, spans_of
from frontdesk.eligibility.decide import Result
from frontdesk.eligibility.enrol import Accepted, write_members
from frontdesk.eligibility.model import (
    DERIVATION_CLIENT,
    Enrolled,
    HistoryEntry,
    MemberRecord,
    Outcome,
    StoredMember,
    Submission,
)
from frontdesk.eligibility.probes import Probes, TooManyTaken
from frontdesk.eligibility.tables import member_history, members
from frontdesk.eligibility.unique_keys import (
    KeysByScope,
    UniqueKeys,
    keys_by_scope,
    not_unique,
    scope_of,
)
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.protocol import cancel_of_members
from frontdesk.text import fold_email, stored_time

CHANGED_SINCE = Fault(
    "external_id", codes.rows.CHANGED_SINCE, "was changed again since; it was left as it is"
)
# The values that retention leaves in an old entry of the history (docs/erasure.md).
KEPT_BY_RETENTION = frozenset({"plan_id", "effective_date", "expiry_date", "expiry_before_absence"})

_WITHDRAWN = "withdrawn"
COVERAGES = "coverages"  # the column from which a worker derives the days of access

History = Sequence[HistoryEntry]  # of a member, newest first
Refusal = Invalid | TooManyTaken


class UndoRequest(NamedTuple):
    """The file to undo (`undone_file_id`), and the undo, which is a file too: its id, client,
    request and time. Both ids are None when a merge is undone.
    """

    undone_file_id: int | None
    file_id: int | None
    client: str
    request_id: str
    now: datetime
    uniqueness: Uniqueness


def restore(tx: Tx, member_ids: Sequence[int], undo: UndoRequest) -> list[Result]:
    """Undo the request for each member, in order; a member that it wrote twice is named twice.
    Raises the driver's error, or StateChanged, on a lost race, like `enrol`.

    A member that is as it was before the request already is `unchanged`. The result is an error if
    the member stays as it is: it was changed since, another member has its old keys, or it is
    erased. An old key that another account now uses is a probe.
    """
    decided, probes = _decide(_Source(tx), member_ids, undo)
    restored = [each.accepted for each in decided if isinstance(each, _Restored)]
    probes.save(tx)
    feeds = events.find_feeds(tx, {by.account_id for by, _ in restored})
    write_members(tx, restored, feeds, now=undo.now, audited=False)
    withdrawn = [
        result.stored.values["id"] for _, result in restored if result.outcome is Outcome.WITHDRAWN
    ]
    cancel_of_members(tx, withdrawn, now=undo.now)
    return [each.accepted[1] if isinstance(each, _Restored) else each for each in decided]


class AccessForecast(NamedTuple):
    """What an undo would do to the access of a member under this plan. A member that the undone
    file wrote twice has two of them: its access before is in the first, that after in the last.
    """

    member_id: int
    external_id: str
    plan_id: int
    before: Spans
    after: Spans


class UndoDryRun:
    """Decides the chunks of an undo in their order. A scratch database has the members as they would
    be after the chunks so far, and the entries of their histories.
    """

    def __init__(self, scratch: Tx) -> None:
        self.scratch = scratch

    def forecast(
        self, db: Database, member_ids: Sequence[int], undo: UndoRequest
    ) -> list[AccessForecast | Refusal]:
        """What `restore` would do to each member, in order, or why it would leave it as it is.
        Nothing is locked, and no probe counted: `restore` does it. Raises Unavailable.
        """

        def decide(tx: Tx) -> list[_Restored | Refusal]:
            decided, _ = _decide(_Source(tx, self.scratch), member_ids, undo)
            return decided

        decided = db.ask(decide)
        self._keep([each for each in decided if isinstance(each, _Restored)], undo)
        return [each.access if isinstance(each, _Restored) else each for each in decided]

    def _keep(self, restored: Iterable["_Restored"], undo: UndoRequest) -> None:
        scratch = self.scratch
        entries = []
        values = {}
        for each in restored:
            by, result = each.accepted
            if result.outcome is Outcome.UNCHANGED:
                continue
            member = result.stored.values
            source = (by.client, by.request_id, by.file_id)
            entries.append((member["id"], str(result.outcome), by.plan_id, result.changes, *source))
            values[member["id"]] = {"created_at": member["updated_at"], **member}
        sets.delete_set(scratch, members, [{"id": id_} for id_ in values])
        sets.insert_set(scratch, members, [*values.values()])
        store.insert_history(scratch, entries, stored_time(undo.now))
        scratch.commit()


@contextmanager
def undo_dry_run() -> Iterator[UndoDryRun]:
    """A dry run with a scratch database of its own."""
    with scratch_database([members, member_history]) as db, db.engine.connect() as scratch:
        yield UndoDryRun(scratch)


class _Source(NamedTuple):
    """Where members and histories are read: locked in the database, or, with the scratch database of
    a dry run, as they would be after its earlier chunks.
    """

    tx: Tx
    scratch: Tx | None = None

    def by_ids(self, ids: Collection[int]) -> dict[int, StoredMember]:
        stored = store.lock_by_ids(self.tx, ids, lock=self.scratch is None)
        if self.scratch is None:
            return stored
        return stored | store.lock_by_ids(self.scratch, ids, lock=False)

    def by_keys(self, keys: KeysByScope) -> dict[int, StoredMember]:
        found = store.lock_by_keys(self.tx, keys, lock=self.scratch is None)
        stored = store.stored_members(found)
        if self.scratch is None:
            return stored
        changed = store.stored_members(store.lock_by_keys(self.scratch, keys, lock=False))
        return stored | store.lock_by_ids(self.scratch, stored, lock=False) | changed

    def histories(self, ids: Collection[int]) -> dict[int, list[HistoryEntry]]:
        histories = store.find_histories(self.tx, ids)
        if self.scratch is not None:
            for id_, entries in store.find_histories(self.scratch, ids).items():
                histories[id_] = entries + histories[id_]
        return histories


class _Stored(NamedTuple):
    """What is known about the members to restore: `members` has them and those that hold their
    earlier keys, by id.
    """

    members: dict[int, StoredMember]
    histories: dict[int, list[HistoryEntry]]
    probe_counts: Found


def _decide(
    source: _Source, member_ids: Sequence[int], undo: UndoRequest
) -> tuple[list["_Restored | Refusal"], Probes]:
    """The decision about each member, in order, and the probes among them. Writes nothing."""
    ids = set(member_ids)
    by_id = source.by_ids(ids)
    accounts = {member.values["account_id"] for member in by_id.values()}
    counts = store.find_probe_counts(source.tx, accounts, undo.uniqueness)
    histories = source.histories(ids)
    holders = source.by_keys(_earlier_keys(by_id, histories, undo))
    restoring = _Restoring(_Stored(holders | by_id, histories, counts), undo)
    return [restoring.restore(id_) for id_ in member_ids], restoring.probes


def _earlier_keys(
    by_id: Mapping[int, StoredMember], histories: Mapping[int, History], undo: UndoRequest
) -> KeysByScope:
    """The keys that the members had before each change of the request."""
    records = [
        (
            scope_of(by_id[id_].values["account_id"], undo.uniqueness),
            by_id[id_].values | _values_before(history[place]),
        )
        for id_, history in histories.items()
        for place in _places_of(history, undo)
    ]
    return keys_by_scope(records)


def _places_of(history: History, undo: UndoRequest) -> list[int]:
    """The places in the history of the request's entries that are not taken back, newest first."""
    if undo.undone_file_id is None:  # a merge, which is the newest entry
        return [0] if history and history[0].file_id is None else []
    taken_back = sum(entry.file_id == undo.file_id for entry in history)
    places = [place for place, entry in enumerate(history) if entry.file_id == undo.undone_file_id]
    return places[taken_back:]


def _values_before(entry: HistoryEntry) -> dict[str, Any]:
    """The values, by column, that the entry changed, as they were before."""
    before = {name: old for name, (old, _) in entry.changes.items()}
    if "email" in before:
        email = before["email"]
        before["email_folded"] = None if email is None else fold_email(email)
    return before


def _derived_since(history: History, place: int) -> dict[str, Any]:
    """The fields that were derived after an entry that changed coverages, as it left them: what was
    derived from its coverages is taken back with them. The day of the next derivation is one of
    them, so that a worker derives the member anew.
    """
    if COVERAGES not in history[place].changes:
        return {}
    left: dict[str, Any] = {}
    derived: set[str] = set()
    for entry in reversed(history[:place]):
        for name, (before, _) in entry.changes.items():
            left.setdefault(name, before)
        if entry.client == DERIVATION_CLIENT:
            derived.update(entry.changes)
    return {name: left[name] for name in derived}


class _State(Enum):
    """What has become of an entry's change."""

    STANDS = auto()  # the record is as the entry left it
    TAKEN_BACK = auto()  # the record is as it was before the entry
    CHANGED = auto()


def _state_of(history: History, place: int) -> _State:
    """The state of the change of the entry at this place."""
    if place and not _has_values(history[place:]):
        return _State.CHANGED
    if _leave_nothing(history, place):
        return _State.STANDS
    return _State.TAKEN_BACK if _leave_nothing(history, place + 1) else _State.CHANGED


def _leave_nothing(history: History, count: int) -> bool:
    """Whether the newest entries, so many, leave nothing behind: each field that they changed has
    the value that it had before them, or one that was derived of that.
    """
    good: dict[Hashable, list[Any]] = {}
    last: dict[Hashable, Any] = {}
    for place in reversed(range(count)):
        for field, before, after in _effects(history, place):
            values = good.setdefault(field, [before])
            if history[place].client == DERIVATION_CLIENT and before in values:
                values.append(after)
            last[field] = after
    is_away = _WITHDRAWN in last and last[_WITHDRAWN] and good[_WITHDRAWN][0]
    return is_away or all(value in good[field] for field, value in last.items())


def _effects(history: History, place: int) -> Iterator[tuple[Hashable, Any, Any]]:
    """The fields that the entry changed, with their values before and after. Being withdrawn is a
    field, and so is each member that was merged into this one.
    """
    entry = history[place]
    if entry.outcome is Outcome.WITHDRAWN:
        yield _WITHDRAWN, False, True
    elif _brings_in(history, place):
        yield _WITHDRAWN, True, False
    for name, (before, after) in entry.changes.items():
        if name == "merged_from":
            yield (name, before or after), before, after
        else:
            yield name, before, after


def _brings_in(history: History, place: int) -> bool:
    """Whether the entry created the member, or restored it after a withdrawal."""
    if history[place].outcome is not Outcome.RESTORED:
        return history[place].outcome is Outcome.CREATED
    earlier = (entry for entry in history[place + 1 :] if entry.client != DERIVATION_CLIENT)
    before = next(earlier, None)
    return before is not None and before.outcome is Outcome.WITHDRAWN


def _has_values(history: History) -> bool:
    """Whether retention has left the newest of these entries, and so all after it, as they were: it
    removes the values of the oldest first.
    """
    return any(entry.changes.keys() - KEPT_BY_RETENTION for entry in history)


class _Restored(NamedTuple):
    """The earlier values of a member as a submission, with its result, and what that does to its
    access.
    """

    accepted: Accepted
    access: AccessForecast


class _Restoring:
    """Gives members their earlier values, one after the other."""

    def __init__(self, stored: _Stored, undo: UndoRequest) -> None:
        self.keys = UniqueKeys(stored.members, undo.uniqueness)
        self.probes = Probes(stored.probe_counts, undo.now)
        self._members = stored.members
        self._histories = stored.histories
        self._undo = undo

    def restore(self, member_id: int) -> _Restored | Refusal:
        """Give the member its earlier values; the result is `unchanged` if it has them already. Or
        the refusal: it was changed since, or another member now has one of the earlier keys.
        """
        member = self._members[member_id]
        history = self._histories[member_id]
        place = next(iter(_places_of(history, self._undo)), None)
        if place is None or not member.values["external_id"]:
            return Invalid([CHANGED_SINCE])
        state = _state_of(history, place)
        if state is _State.CHANGED:
            return Invalid([CHANGED_SINCE])
        access = spans_of(member.values)
        if state is _State.TAKEN_BACK:
            return _restored(self._result(member, Outcome.UNCHANGED, {}, {}), access)
        by, result = self._earlier(member, history, place)
        given = by.record.given
        if result.outcome is not Outcome.WITHDRAWN:
            taken = self.keys.holders(member.values | given, by.account_id, member)
            if taken:
                return self._refusal(by, taken)
        self.keys.change(member, given)
        history.insert(0, self._entry(by, result))
        return _restored((by, result), access)

    def _earlier(self, member: StoredMember, history: History, place: int) -> Accepted:
        """The values before the entry as a submission, and its result."""
        undo = self._undo
        entry = history[place]
        values = member.values
        outcome = Outcome.RESTORED
        before: dict[str, Any] = {"row_digest": None, "updated_at": stored_time(undo.now)}
        changes: dict[str, list[Any]] = {}
        if _brings_in(history, place):
            outcome = Outcome.WITHDRAWN
            before["uniqueness_scope"] = -int(values["id"])
        elif entry.outcome is Outcome.WITHDRAWN:
            before["uniqueness_scope"] = scope_of(values["account_id"], undo.uniqueness)
        else:
            earlier = _derived_since(history, place) | _values_before(entry)
            before |= earlier
            changes = self._changes(member, entry, earlier)
        return self._result(member, outcome, before, changes)

    def _result(
        self,
        member: StoredMember,
        outcome: Outcome,
        before: dict[str, Any],
        changes: dict[str, list[Any]],
    ) -> Accepted:
        undo = self._undo
        values = member.values
        by = Submission(
            values["account_id"],
            before.get("plan_id", values["plan_id"]),
            MemberRecord(values["external_id"], before),
            undo.client,
            undo.request_id,
            file_id=undo.file_id,
        )
        return by, Enrolled.unasked(outcome, member, changes)

    def _changes(
        self, member: StoredMember, entry: HistoryEntry, earlier: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        """The changes of taking the entry back. A derivation may have changed the values that a
        file left; those of a closed member are not in the entry of its merge.
        """
        if self._undo.undone_file_id is None:
            return {name: [new, old] for name, (old, new) in entry.changes.items()}
        values = member.values
        return {
            name: [values[name], old]
            for name, old in earlier.items()
            if name != "email_folded" and values[name] != old
        }

    def _entry(self, by: Submission, result: Enrolled) -> HistoryEntry:
        """The entry of the history that the result makes, for the member's next turn."""
        return HistoryEntry(
            id=0,
            member_id=result.stored.values["id"],
            outcome=result.outcome,
            plan_id=by.plan_id,
            changes=result.changes,
            client=by.client,
            request_id=by.request_id,
            file_id=by.file_id,
            changed_at=self._undo.now,
        )

    def _refusal(self, by: Submission, taken: dict[str, int]) -> Refusal:
        """The refusal for keys that other members have now; `taken` has their accounts, by field.
        At the account's limit of answers about values of other accounts, it does not say so.
        """
        others = set(taken.values()) - {by.account_id}
        own = [name for name, account_id in taken.items() if account_id == by.account_id]
        if others and self.probes.is_at_limit(by.account_id):
            if own:
                return Invalid([not_unique(own[0])])
            self.probes.count(by, others, is_answered=False)
            return TooManyTaken(self._undo.now)
        if others:
            self.probes.count(by, others, is_answered=True)
        return Invalid([not_unique(next(iter(taken)))])


def _restored(accepted: Accepted, before: Spans) -> _Restored:
    by, result = accepted
    values = result.stored.values
    plan_id = before[0].plan_id if before else values["plan_id"]
    pair = AccessPair(before, spans_of(values))
    if pair.before != pair.after:
        result = result._replace(access=pair)
    forecast = AccessForecast(values["id"], values["external_id"], plan_id, *pair)
    return _Restored((by, result), forecast)
