"""The undo of a request: `restore` gives each member the values that its history has of the time
before.

Files can be undone backwards: a member is as the request left it if its values are, whoever wrote
last. Two later changes of which one takes the other back, such as a file and its undo, leave
nothing behind (docs/decisions/0169). A member that the request created is withdrawn: its row stays,
alone in the uniqueness scope -id.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Any, NamedTuple

from frontdesk import codes, events
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.db.sets import Found
from frontdesk.eligibility import store
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
from frontdesk.eligibility.unique_keys import (
    KeysByScope,
    UniqueKeys,
    keys_by_scope,
    not_unique,
    scope_of,
)
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.model import NotInvitedReason
from frontdesk.invitations.protocol import cancel_of_members
from frontdesk.text import fold_email, stored_time

CHANGED_SINCE = Fault(
    "external_id", codes.rows.CHANGED_SINCE, "was changed again since; it was left as it is"
)
# The values that retention leaves in an old entry of the history (docs/erasure.md).
KEPT_BY_RETENTION = frozenset({"plan_id", "effective_date", "expiry_date", "expiry_before_absence"})

_WITHDRAWN = "withdrawn"

History = Sequence[HistoryEntry]  # of a member, newest first


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
    restoring = _Restoring(_read(tx, member_ids, undo), undo)
    decided = [restoring.restore(id_) for id_ in member_ids]
    restored = [each for each in decided if isinstance(each, tuple)]
    restoring.probes.save(tx)
    feeds = events.find_feeds(tx, {by.account_id for by, _ in restored})
    write_members(tx, restored, feeds, now=undo.now, audited=False)
    withdrawn = [
        result.stored.values["id"] for _, result in restored if result.outcome is Outcome.WITHDRAWN
    ]
    cancel_of_members(tx, withdrawn, now=undo.now)
    return [each[1] if isinstance(each, tuple) else each for each in decided]


class _Stored(NamedTuple):
    """What the database knows about the members to restore: `members` has them and those that hold
    their earlier keys, by id.
    """

    members: dict[int, StoredMember]
    histories: dict[int, list[HistoryEntry]]
    probe_counts: Found


def _read(tx: Tx, member_ids: Sequence[int], undo: UndoRequest) -> _Stored:
    members = store.lock_by_ids(tx, member_ids)
    accounts = {member.values["account_id"] for member in members.values()}
    counts = store.find_probe_counts(tx, accounts, undo.uniqueness)
    histories = store.find_histories(tx, set(member_ids))
    found = store.lock_by_keys(tx, _earlier_keys(members, histories, undo))
    return _Stored(store.stored_members(found) | members, histories, counts)


def _earlier_keys(
    members: Mapping[int, StoredMember], histories: Mapping[int, History], undo: UndoRequest
) -> KeysByScope:
    """The keys that the members had before each change of the request."""
    records = [
        (
            scope_of(members[id_].values["account_id"], undo.uniqueness),
            members[id_].values | _values_before(history[place]),
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
    the value that it had before them.
    """
    first: dict[Hashable, Any] = {}
    last: dict[Hashable, Any] = {}
    for place in reversed(range(count)):
        for field, before, after in _effects(history, place):
            first.setdefault(field, before)
            last[field] = after
    is_away = first.get(_WITHDRAWN) is True and last[_WITHDRAWN] is True
    return is_away or first == last


def _effects(history: History, place: int) -> Iterator[tuple[Hashable, Any, Any]]:
    """The fields that the entry changed, with their values before and after. Being withdrawn is a
    field, and so is each member that was merged into this one. A derivation has no effects here.
    """
    entry = history[place]
    if entry.client == DERIVATION_CLIENT:
        return
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


class _Restoring:
    """Gives members their earlier values, one after the other."""

    def __init__(self, stored: _Stored, undo: UndoRequest) -> None:
        self.keys = UniqueKeys(stored.members, undo.uniqueness)
        self.probes = Probes(stored.probe_counts, undo.now)
        self._members = stored.members
        self._histories = stored.histories
        self._undo = undo

    def restore(self, member_id: int) -> Accepted | Invalid | TooManyTaken:
        """The earlier values as a submission, and its result: the member has them now, or had them
        already (`unchanged`). Or the refusal: it was changed since, or another member now has one of
        the earlier keys.
        """
        member = self._members[member_id]
        history = self._histories[member_id]
        place = next(iter(_places_of(history, self._undo)), None)
        if place is None or not member.values["external_id"]:
            return Invalid([CHANGED_SINCE])
        state = _state_of(history, place)
        if state is _State.CHANGED:
            return Invalid([CHANGED_SINCE])
        if state is _State.TAKEN_BACK:
            return self._result(member, Outcome.UNCHANGED, {}, {})
        by, result = self._earlier(member, history, place)
        given = by.record.given
        if result.outcome is not Outcome.WITHDRAWN:
            taken = self.keys.holders(member.values | given, by.account_id, member)
            if taken:
                return self._refusal(by, taken)
        self.keys.change(member, given)
        history.insert(0, self._entry(by, result))
        return by, result

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
            before |= _values_before(entry)
            changes = self._changes(member, entry)
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
        result = Enrolled(
            outcome,
            member,
            answered=(),
            changes=changes,
            warnings=(),
            invitation=NotInvitedReason.NOT_NEW,
        )
        return by, result

    def _changes(self, member: StoredMember, entry: HistoryEntry) -> dict[str, list[Any]]:
        """The changes of taking the entry back. A derivation may have changed the values that a
        file left; those of a closed member are not in the entry of its merge.
        """
        if self._undo.undone_file_id is None:
            return {name: [new, old] for name, (old, new) in entry.changes.items()}
        values = member.values
        return {
            name: [values[name], old]
            for name, (old, _) in entry.changes.items()
            if values[name] != old
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

    def _refusal(self, by: Submission, taken: dict[str, int]) -> Invalid | TooManyTaken:
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
