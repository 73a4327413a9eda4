"""The unique keys of members: who holds each key among the stored members of a chunk.

The unique keys are `external_id`, `member_id` and the folded e-mail, each unique inside a
uniqueness scope: 0 where they are unique over the whole service, else the account's id. A withdrawn
member is alone in the scope -id.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frontdesk import codes
from frontdesk.config import Uniqueness
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import NO_CONTEXT, Action, StoredMember, Submission
from frontdesk.errors import Fault

Values = Mapping[str, Any]
KeysByScope = dict[int, dict[str, set[str]]]  # in each scope by column


def scope_of(account_id: int, uniqueness: Uniqueness) -> int:
    return account_id if uniqueness is Uniqueness.ACCOUNT else 0


def not_unique(name: str) -> Fault:
    return Fault(name, codes.faults.NOT_UNIQUE, "is already in use by another record")


def keys_by_scope(records: Iterable[tuple[int, Values]]) -> KeysByScope:
    """The unique keys of the records, by scope and column. A record is its scope and its values by
    column.
    """
    by_scope = defaultdict[int, list[Values]](list)
    for scope, values in records:
        by_scope[scope].append(values)
    return {
        scope: {
            column: {*filter(None, (each.get(column) for each in found))}
            for column in UNIQUE.values()
        }
        for scope, found in by_scope.items()
    }


def submitted_keys(submissions: Sequence[Submission], uniqueness: Uniqueness) -> KeysByScope:
    """The keys of the records' members and of other members with their unique values, by uniqueness
    scope and column.
    """
    scopes = [scope_of(submission.account_id, uniqueness) for submission in submissions]
    given = (submission.record.given for submission in submissions)
    keys = keys_by_scope(zip(scopes, given, strict=True))
    for scope, submission in zip(scopes, submissions, strict=True):
        record = submission.record
        context = submission.context
        if context is NO_CONTEXT and record.given.get("external_id") == record.external_id:
            continue
        of_scope = keys[scope]
        of_scope["external_id"].update(filter(None, (record.external_id, context.former_id)))
        families = (context.address_of, family_of_ended(submission))
        if any(families):
            of_scope.setdefault("family_digest", set()).update(filter(None, families))
    return keys


def family_of_ended(submission: Submission) -> str:
    """The family digest of a subscriber that a row of an 834 ends, "" of any other row."""
    person = submission.context.person
    if submission.action is not Action.END or person is None or person.role != "Primary":
        return ""
    return person.family


class UniqueKeys:
    """The stored members of a chunk by each of their unique keys."""

    def __init__(self, by_id: Mapping[int, StoredMember], uniqueness: Uniqueness) -> None:
        self._holders: dict[tuple[str, int, str | None], StoredMember] = {}
        self._by_id = by_id
        self.uniqueness = uniqueness
        for member in by_id.values():
            self.add(member)

    def find(self, external_id: str | None, account_id: int) -> StoredMember | None:
        """The account's member with the identifier. That of a merged member leads to the member
        that it was merged into.
        """
        scope = scope_of(account_id, self.uniqueness)
        holder = self._holders.get(("external_id", scope, external_id))
        if holder is None or holder.values["account_id"] != account_id:
            return None
        while holder.values["merged_into"] is not None:
            holder = self._by_id[holder.values["merged_into"]]
        return holder

    def holders(self, values: Values, account_id: int, own: StoredMember | None) -> dict[str, int]:
        """The accounts of the members other than `own` that hold a unique key of `values`, by
        field.
        """
        scope = scope_of(account_id, self.uniqueness)
        # A withdrawn member is in a scope of its own: another member may have its keys.
        stored = own.values if own is not None and own.values["uniqueness_scope"] == scope else {}
        found = {}
        for name, column in UNIQUE.items():
            key = values.get(column)
            if key is None or key == stored.get(column):
                continue
            holder = self._holders.get((column, scope, key))
            if holder is not None and holder is not own:
                found[name] = int(holder.values["account_id"])
        return found

    def add(self, member: StoredMember) -> None:
        values = member.values
        holders = self._holders
        scope = values["uniqueness_scope"]
        for column in UNIQUE.values():
            if (key := values[column]) is not None:
                holders[column, scope, key] = member

    def change(self, member: StoredMember, values: Values) -> None:
        """Give the member these values; its old keys are free."""
        scope = member.values["uniqueness_scope"]
        for column in UNIQUE.values():
            self._holders.pop((column, scope, member.values[column]), None)
        member.values.update(values)
        member.changed.update(values)
        self.add(member)
