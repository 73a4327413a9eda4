"""The unique keys of members: `external_id`, `member_id` and the folded e-mail, each unique inside a uniqueness scope.

A scope is 0 where the keys are unique over the whole service, else the account's id. A withdrawn member is alone in the
scope -id, so that its keys are free again.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from frontdesk.config import Uniqueness
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import StoredMember
from frontdesk.errors import Fault


def scope_of(account_id: int, uniqueness: Uniqueness) -> int:
    return account_id if uniqueness is Uniqueness.ACCOUNT else 0


def not_unique(field: str) -> Fault:
    return Fault(field, "not_unique", "is already in use by another record")


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


class KeyHolders:
    """The members of a chunk by every unique key that they carry."""

    def __init__(self, members: Iterable[StoredMember]) -> None:
        self._holders: dict[tuple[str, int, str], StoredMember] = {}
        for member in members:
            self.hold(member)

    def lead(self, members: Iterable[StoredMember]) -> None:
        """Let the external_id of each merged member find the member that it was merged into, which is among them."""
        by_id = {member.values["id"]: member for member in members}
        for member in by_id.values():
            kept, values = member, member.values
            while kept.values["merged_into"] is not None:
                kept = by_id[kept.values["merged_into"]]
            if kept is not member:
                self._holders["external_id", values["uniqueness_scope"], values["external_id"]] = kept

    def find(self, external_id: str, scope: int) -> StoredMember | None:
        return self._holders.get(("external_id", scope, external_id))

    def taken(self, values: Mapping[str, Any], scope: int, own: StoredMember | None) -> list[str]:
        """The unique fields of `values` whose key a member other than `own` carries."""
        holders, found = self._holders, []
        for field, column in UNIQUE.items():
            key = values.get(column)
            if key is not None and holders.get((column, scope, key), own) is not own:
                found.append(field)
        return found

    def are_others(self, keys: Mapping[str, str], scope: int, account_id: int) -> bool:
        """Whether a member of another account carries one of the keys, by column."""
        return any(
            holder is not None and holder.values["account_id"] != account_id
            for column, key in keys.items()
            for holder in (self._holders.get((column, scope, key)),)
        )

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
