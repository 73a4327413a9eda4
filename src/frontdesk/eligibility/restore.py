"""Takes back what one request did to members, from their history. The undo is itself a request that can be taken back.

A member that the request created is withdrawn: its row stays for the history's sake, alone in the uniqueness scope -id,
where no match and no key of another record finds it. Only `enrol` and `restore` write members.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.sets import update_set
from frontdesk.eligibility import store
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import HistoryEntry, Outcome, RestoredMember, StoredMember, UndoRequest
from frontdesk.eligibility.probes import TAKEN_PER_DAY, ChunkProbes, ProbeLimit, ProbeSource
from frontdesk.eligibility.similar import get_digest_key, person_digest
from frontdesk.eligibility.tables import members as members_table
from frontdesk.eligibility.unique_keys import KeyHolders, keys_by_scope, not_unique, scope_of
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
    undone = {id_: _undo(members[id_], history, undo, key) for id_, history in histories.items() if history}
    touched = _touched(tx, members, [item for item in undone.values() if item is not None])
    accounts = {member.values["account_id"] for member in touched}
    holders, probes = KeyHolders(touched), ChunkProbes(limit, counts, accounts, now=undo.now)
    results, accepted = [], []
    for id_ in member_ids:
        member, item = members[id_], undone.get(id_)
        fault: Fault | None = CHANGED_SINCE
        if (
            item is not None
            and (fault := _fault_of(member, item, undo, holders=holders, probes=probes)) is None
        ):
            holders.release(member)
            member.values = item.values
            holders.hold(member)
            accepted.append(item)
        outcome = item.outcome if item is not None and fault is None else None
        results.append(RestoredMember(member.values["external_id"], outcome, fault))
    probes.save(tx)
    _write(tx, accepted, undo)
    return results


def _undo(
    member: StoredMember, history: Sequence[HistoryEntry], undo: UndoRequest, key: bytes
) -> _Undone | None:
    """The member before the request; None when the newest change is not the request's."""
    newest = history[0]
    if newest.file_id != undo.undone_file_id or member.is_erased:
        return None
    values = dict(member.values)
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


def _touched(tx: Tx, members: dict[int, StoredMember], undone: Sequence[_Undone]) -> list[StoredMember]:
    """The members, and those that carry a key that one of the members had before."""
    keys = keys_by_scope((item.values["uniqueness_scope"], item.values) for item in undone)
    found = store.stored_members(
        [store.lock_members(tx, scope, keys[scope]) for scope in sorted(keys) if scope >= 0]
    )
    return [*({member.values["id"]: member for member in found} | members).values()]


def _fault_of(
    member: StoredMember, item: _Undone, undo: UndoRequest, *, holders: KeyHolders, probes: ChunkProbes
) -> Fault | None:
    """A fault when another member carries one of the member's old keys now, or when the client is at its limit of probes."""
    account_id, scope = member.values["account_id"], item.values["uniqueness_scope"]
    source = ProbeSource(undo.client, undo.request_id, account_id, undo.file_id)
    if unheard := probes.count(source, _returned_keys(member, item), scope=scope, holders=holders):
        return unheard.faults[0]
    taken = holders.taken(item.values, scope, member)
    return not_unique(taken[0]) if taken else None


def _returned_keys(member: StoredMember, item: _Undone) -> dict[str, str]:
    """The keys by column that the member does not carry now and would again; none for one that is withdrawn."""
    if item.outcome is Outcome.WITHDRAWN:
        return {}
    is_withdrawn = member.values["uniqueness_scope"] < 0
    return {
        column: key
        for column in UNIQUE.values()
        if (key := item.values[column]) is not None and (is_withdrawn or member.values[column] != key)
    }


def _write(tx: Tx, accepted: Sequence[_Undone], undo: UndoRequest) -> None:
    """Withdraw first: a restored member may take over a key that a withdrawn one gives up."""
    at = stored_time(undo.now)
    withdrawn = [item for item in accepted if item.outcome is Outcome.WITHDRAWN]
    for items in (withdrawn, [item for item in accepted if item.outcome is not Outcome.WITHDRAWN]):
        rows = [{name: item.values[name] for name in item.values if name != "account_id"} for item in items]
        update_set(tx, members_table, [row | {"row_digest": None, "updated_at": at} for row in rows])
    by = (undo.client, undo.request_id, undo.file_id)
    entries = [
        (each.values["id"], each.outcome, each.values["plan_id"], each.changes, *by) for each in accepted
    ]
    store.insert_history(tx, entries, at)
    moved = [each.values for each in accepted if "plan_id" in each.changes]
    move_invitations(tx, {values["id"]: values["plan_id"] for values in moved})
    cancel_of_members(tx, [item.values["id"] for item in withdrawn], now=undo.now)
