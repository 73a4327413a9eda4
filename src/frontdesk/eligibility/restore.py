"""Taking back what one deed did to members, from their history; taking back is itself a deed that can be taken back.

A member that the deed created is withdrawn: its row stays for the history's sake, alone in the uniqueness scope -id, where
no match and no key of another finds it. `enrol` and this are all that writes members.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import store
from frontdesk.eligibility.decide import NOT_UNIQUE, UNIQUE
from frontdesk.eligibility.member import Outcome
from frontdesk.errors import Fault
from frontdesk.invitations import follow_members
from frontdesk.invitations.delivery import cancel_of_members
from frontdesk.text import fold_email

CHANGED_SINCE = Fault("external_id", "changed_since", "was changed again since; it was left as it is")


@dataclass(frozen=True, slots=True)
class Undoing:
    """`undone` is the request that is taken back, as the history names it; the rest is who does it."""

    undone: str
    client: str
    request_id: str
    now: datetime
    uniqueness: Uniqueness


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one member: an outcome, or the fault for which it was left as it is."""

    external_id: str
    outcome: Outcome | None
    fault: Fault | None = None


@dataclass(slots=True)
class _Undone:
    """A member with its values as they are to be, and the history row that says so."""

    values: dict[str, Any]
    outcome: Outcome
    changes: dict[str, list[Any]]


def restore(tx: Tx, member_ids: Sequence[int], undoing: Undoing) -> list[Restored]:
    """Take the deed back for each member, in order. Raises the driver's error on a lost race, like `enrol`.

    A member whose newest history is another deed's is left alone, and so is one whose old keys somebody else has now.
    """
    members = {row["id"]: store.stored_values(row) for row in store.lock_by_ids(tx, member_ids)}
    undone = {
        id_: _undo(members[id_], rows, undoing) for id_, rows in _histories(tx, member_ids).items() if rows
    }
    free = _Keys(tx, members.values(), [item for item in undone.values() if item is not None])
    results, accepted = [], []
    for id_ in member_ids:
        item, external_id = undone.get(id_), members[id_]["external_id"]
        fault = CHANGED_SINCE if item is None else free.take(members[id_], item)
        if item is None or fault is not None:
            results.append(Restored(external_id, None, fault))
            continue
        accepted.append(item)
        results.append(Restored(external_id, item.outcome))
    _write(tx, accepted, undoing)
    return results


def _histories(tx: Tx, member_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Each member's history, newest first."""
    found: dict[int, list[dict[str, Any]]] = {id_: [] for id_ in member_ids}
    rows = store.find_histories(tx, set(member_ids)).rows
    for row in sorted(rows, key=lambda row: int(row["id"]), reverse=True):
        found[row["member_id"]].append(store.with_changes(row))
    return found


def _undo(member: dict[str, Any], history: Sequence[dict[str, Any]], undoing: Undoing) -> _Undone | None:
    """The member before the deed; None when the newest change is not the deed's."""
    newest = history[0]
    if newest["request_id"] != undoing.undone:
        return None
    values, outcome = dict(member), Outcome.RESTORED
    came_back = newest["outcome"] == Outcome.RESTORED and history[1]["outcome"] == Outcome.WITHDRAWN
    if newest["outcome"] == Outcome.CREATED or came_back:
        values["uniqueness_scope"], outcome = -int(member["id"]), Outcome.WITHDRAWN
        return _Undone(values, outcome, {})
    if newest["outcome"] == Outcome.WITHDRAWN:
        by_account = undoing.uniqueness is Uniqueness.ACCOUNT
        values["uniqueness_scope"] = member["account_id"] if by_account else 0
        return _Undone(values, outcome, {})
    changes = {name: [after, before] for name, (before, after) in newest["changes"].items()}
    values.update((name, before) for name, (_, before) in changes.items())
    if "email" in changes:
        values["email_folded"] = None if values["email"] is None else fold_email(values["email"])
    return _Undone(values, outcome, changes)


class _Keys:
    """Who holds which unique key while the members are taken back one after the other."""

    def __init__(self, tx: Tx, members: Iterable[dict[str, Any]], undone: Sequence[_Undone]) -> None:
        self._holders: dict[tuple[str, int, str], int] = {}
        wanted: dict[int, dict[str, set[str]]] = {}
        for item in undone:
            scope = item.values["uniqueness_scope"]
            keys = wanted.setdefault(scope, {column: set() for column in UNIQUE.values()})
            for column in UNIQUE.values():
                if item.values[column] is not None:
                    keys[column].add(item.values[column])
        others = [store.lock_members(tx, scope, wanted[scope]) for scope in sorted(wanted) if scope >= 0]
        for row in [*(row for found in others for row in found.rows), *members]:
            for place in _places(row):
                self._holders[place] = row["id"]

    def take(self, member: dict[str, Any], item: _Undone) -> Fault | None:
        """Exchange the member's keys for those it had; a fault when one of them is another's now."""
        for name, column in UNIQUE.items():
            place = (column, item.values["uniqueness_scope"], item.values[column])
            if self._holders.get(place, member["id"]) != member["id"]:
                return Fault(name, "not_unique", NOT_UNIQUE)
        for place in _places(member):
            self._holders.pop(place, None)
        for place in _places(item.values):
            self._holders[place] = member["id"]
        return None


def _places(values: dict[str, Any]) -> list[tuple[str, int, str]]:
    scope = values["uniqueness_scope"]
    return [(column, scope, values[column]) for column in UNIQUE.values() if values[column] is not None]


def _write(tx: Tx, accepted: Sequence[_Undone], undoing: Undoing) -> None:
    """Withdraw first: what comes back may take over a key that a withdrawn member gives up."""
    at = stored_time(undoing.now)
    withdrawn = [item for item in accepted if item.outcome is Outcome.WITHDRAWN]
    for items in (withdrawn, [item for item in accepted if item.outcome is not Outcome.WITHDRAWN]):
        rows = [{name: item.values[name] for name in item.values if name != "account_id"} for item in items]
        store.update_members(tx, [row | {"updated_at": at} for row in rows])
    history = [
        {
            "member_id": item.values["id"],
            "outcome": item.outcome.value,
            "plan_id": item.values["plan_id"],
            "changes": item.changes,
            "client": undoing.client,
            "request_id": undoing.request_id,
            "changed_at": at,
        }
        for item in accepted
    ]
    store.insert_history(tx, history)
    follow_members(
        tx, {item.values["id"]: item.values["plan_id"] for item in accepted if "plan_id" in item.changes}
    )
    cancel_of_members(tx, [item.values["id"] for item in withdrawn], now=undoing.now)
