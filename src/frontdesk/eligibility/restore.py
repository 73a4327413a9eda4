"""Takes back what one request did to members, from their history. The undo is itself a request that can be taken back.

A member that the request created is withdrawn: its row stays for the history's sake, alone in the uniqueness scope -id,
where no match and no key of another record finds it. Only `enrol` and `restore` write members.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.audit.model import AuditEntry
from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import update_set
from frontdesk.eligibility import store
from frontdesk.eligibility.model import HistoryEntry, Outcome, RestoredMember, StoredMember, UndoRequest
from frontdesk.eligibility.persons import get_digest_key, person_digest
from frontdesk.eligibility.tables import members as members_table
from frontdesk.eligibility.unique_keys import (
    TAKEN_PER_DAY,
    ChunkKeys,
    ProbeLimit,
    keys_by_scope,
    new_keys,
    not_unique,
    scope_of,
)
from frontdesk.errors import Fault
from frontdesk.invitations.delivery import cancel_of_members
from frontdesk.invitations.enqueue import move_invitations
from frontdesk.text import fold_email

CHANGED_SINCE = Fault("external_id", "changed_since", "was changed again since; it was left as it is")


@dataclass(slots=True)
class _Undone:
    """A member's values before the request, and the history entry that says so."""

    values: dict[str, Any]
    outcome: Outcome
    changes: dict[str, list[Any]]


def restore(
    tx: Tx, member_ids: Sequence[int], undo: UndoRequest, probe_limit: ProbeLimit | None = None
) -> list[RestoredMember]:
    """Take the request back for each member, in order. Raises the driver's error, or StateChanged, on a lost race, like `enrol`.

    A member stays as it is where its newest history is another request's, where another member has its old keys, or where it
    is erased. An old key that another account has now counts like one that a record brings (`probe_limit`).
    """
    limit = probe_limit or ProbeLimit(TAKEN_PER_DAY, undo.uniqueness)
    counts = limit.read(tx, [undo.client], now=undo.now)
    members = {member.values["id"]: member for member in store.lock_by_ids(tx, member_ids)}
    histories, key = store.find_histories(tx, set(member_ids)), get_digest_key(tx)
    undone = {id_: _undo(members[id_], history, undo, key) for id_, history in histories.items()}
    wanted = keys_by_scope(
        (item.values["uniqueness_scope"], item.values) for item in undone.values() if item is not None
    )
    found = [store.lock_members(tx, scope, wanted[scope]) for scope in sorted(wanted) if scope >= 0]
    touched = ({member.values["id"]: member for member in store.stored_members(found)} | members).values()
    accounts = {member.values["account_id"] for member in touched}
    keys = ChunkKeys(touched, accounts, limit=limit, counts=counts, now=undo.now)
    results, accepted = [], []
    for id_ in member_ids:
        member, item = members[id_], undone.get(id_)
        fault = CHANGED_SINCE if item is None else _fault_of(member, item, undo, keys)
        if item is None or fault is not None:
            results.append(RestoredMember(member.values["external_id"], None, fault))
            continue
        keys.release(member)
        member.values = item.values
        keys.hold(member)
        accepted.append(item)
        results.append(RestoredMember(member.values["external_id"], item.outcome))
    keys.save(tx)
    _write(tx, accepted, undo)
    return results


def _undo(
    member: StoredMember, history: Sequence[HistoryEntry], undo: UndoRequest, key: bytes
) -> _Undone | None:
    """The member before the request; None when the newest change is not the request's."""
    if not history or history[0].file_id != undo.undone_file_id or member.is_erased:
        return None
    newest = history[0]
    values = member.values | {"row_digest": None, "updated_at": stored_time(undo.now)}
    came_back = newest.outcome is Outcome.RESTORED and history[1].outcome is Outcome.WITHDRAWN
    if newest.outcome is Outcome.CREATED or came_back:
        values["uniqueness_scope"] = -int(values["id"])
        return _Undone(values, Outcome.WITHDRAWN, {})
    if newest.outcome is Outcome.WITHDRAWN:
        values["uniqueness_scope"] = scope_of(values["account_id"], undo.uniqueness)
        return _Undone(values, Outcome.RESTORED, {})
    changes = {name: [after, before] for name, (before, after) in newest.changes.items()}
    values.update((name, before) for name, (_, before) in changes.items())
    if "email" in changes:
        values["email_folded"] = None if values["email"] is None else fold_email(values["email"])
    values["person_digest"] = person_digest(key, values)
    return _Undone(values, Outcome.RESTORED, changes)


def _fault_of(member: StoredMember, item: _Undone, undo: UndoRequest, keys: ChunkKeys) -> Fault | None:
    """A fault when another member carries one of the member's old keys now, or when the client is at its limit of probes."""
    values, scope = member.values, item.values["uniqueness_scope"]
    if item.outcome is not Outcome.WITHDRAWN:
        brought = new_keys(item.values, values if values["uniqueness_scope"] >= 0 else {})
        by = (undo.client, undo.request_id, values["account_id"], undo.file_id)
        if unheard := keys.probe(brought, scope, AuditEntry("uniqueness.probed", *by)):
            return unheard.faults[0]
    taken = keys.taken(item.values, scope, member)
    return not_unique(taken[0]) if taken else None


def _write(tx: Tx, accepted: Sequence[_Undone], undo: UndoRequest) -> None:
    """Withdraw first: a restored member may take over a key that a withdrawn one gives up."""
    withdrawn = [item for item in accepted if item.outcome is Outcome.WITHDRAWN]
    for items in (withdrawn, [item for item in accepted if item.outcome is not Outcome.WITHDRAWN]):
        rows = [item.values for item in items]
        columns = [name for row in rows[:1] for name in row if name != "account_id"]
        update_set(tx, members_table, rows, columns=columns)
    by = (undo.client, undo.request_id, undo.file_id)
    entries = (
        (each.values["id"], each.outcome, each.values["plan_id"], each.changes, *by) for each in accepted
    )
    store.insert_history(tx, entries, stored_time(undo.now))
    moved = [each.values for each in accepted if "plan_id" in each.changes]
    move_invitations(tx, {values["id"]: values["plan_id"] for values in moved})
    cancel_of_members(tx, [item.values["id"] for item in withdrawn], now=undo.now)
