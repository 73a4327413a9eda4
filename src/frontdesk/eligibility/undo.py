"""The undo of a request: `restore` gives each member the values that its history has of the time
before.

A member that the request created is withdrawn: its row stays, alone in the uniqueness scope -id.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk import codes, events
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import model, store
from frontdesk.eligibility.decide import Result
from frontdesk.eligibility.enrol import Accepted, write_members
from frontdesk.eligibility.model import Enrolled, MemberRecord, Outcome, StoredMember, Submission
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
    """Undo the request for each member, in order. Raises the driver's error, or StateChanged, on a
    lost race, like `enrol`.

    The result is an error if a member stays as it is: its newest history entry is another
    request's, another member has its old keys, or it is erased. An old key that another account now
    uses is a probe.
    """
    stored = store.lock_by_ids(tx, member_ids)
    accounts = {member.values["account_id"] for member in stored.values()}
    counts = store.find_probe_counts(tx, accounts, undo.uniqueness)
    histories = store.find_histories(tx, set(member_ids))
    earlier = {
        id_: _earlier_values(stored[id_], history, undo) for id_, history in histories.items()
    }
    found = store.lock_by_keys(tx, _earlier_keys(earlier.values(), undo.uniqueness))
    by_id = store.stored_members(found) | stored
    restoring = _Restoring(UniqueKeys(by_id, undo.uniqueness), Probes(counts, undo.now), undo.now)
    results: list[Result] = []
    restored: list[Accepted] = []
    for id_ in member_ids:
        pair = earlier[id_]
        if pair is None:
            results.append(Invalid([CHANGED_SINCE]))
            continue
        refusal = restoring.restore(*pair)
        results.append(refusal or pair[1])
        if refusal is None:
            restored.append(pair)
    restoring.probes.save(tx)
    feeds = events.find_feeds(tx, {by.account_id for by, _ in restored})
    write_members(tx, restored, feeds, now=undo.now, audited=False)
    withdrawn = [
        result.stored.values["id"] for _, result in restored if result.outcome is Outcome.WITHDRAWN
    ]
    cancel_of_members(tx, withdrawn, now=undo.now)
    return results


def _earlier_values(
    member: StoredMember, history: Sequence[model.HistoryEntry], undo: UndoRequest
) -> Accepted | None:
    """The values before the request, as a submission, and their result; None if another change is
    newer.
    """
    if not history or history[0].file_id != undo.undone_file_id or not member.values["external_id"]:
        return None
    newest = history[0]
    values = member.values
    outcome = Outcome.RESTORED
    before: dict[str, Any] = {"row_digest": None, "updated_at": stored_time(undo.now)}
    changes = {}
    came_back = newest.outcome is Outcome.RESTORED and history[1].outcome is Outcome.WITHDRAWN
    if newest.outcome is Outcome.CREATED or came_back:
        outcome = Outcome.WITHDRAWN
        before["uniqueness_scope"] = -int(values["id"])
    elif newest.outcome is Outcome.WITHDRAWN:
        before["uniqueness_scope"] = scope_of(values["account_id"], undo.uniqueness)
    else:
        changes = {name: [new, old] for name, (old, new) in newest.changes.items()}
        before |= {name: old for name, (old, _) in newest.changes.items()}
        if "email" in changes:
            email = before["email"]
            before["email_folded"] = None if email is None else fold_email(email)
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


def _earlier_keys(earlier: Iterable[Accepted | None], uniqueness: Uniqueness) -> KeysByScope:
    """The keys that the members had before, and have again unless they are withdrawn."""
    records = []
    for by, result in filter(None, earlier):
        if result.outcome is not Outcome.WITHDRAWN:
            values = result.stored.values | by.record.given
            records.append((scope_of(by.account_id, uniqueness), values))
    return keys_by_scope(records)


class _Restoring(NamedTuple):
    """Gives members their earlier values, one after the other."""

    keys: UniqueKeys
    probes: Probes
    now: datetime

    def restore(self, by: Submission, result: Enrolled) -> Invalid | TooManyTaken | None:
        """The refusal if another member now has one of the earlier keys, else None: the member has
        its earlier values.
        """
        member = result.stored
        given = by.record.given
        if result.outcome is not Outcome.WITHDRAWN:
            taken = self.keys.holders(member.values | given, by.account_id, member)
            if taken:
                return self._refusal(by, taken)
        self.keys.change(member, given)
        return None

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
            return TooManyTaken(self.now)
        if others:
            self.probes.count(by, others, is_answered=True)
        return Invalid([not_unique(next(iter(taken)))])
