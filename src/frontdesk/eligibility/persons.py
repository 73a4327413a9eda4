"""Who is one person: the check of an 834's row beside the stored member, and the search for similar members.

An 834 names a person by the way that the account's mapping says. The person check refuses a row whose name, birth date, role or
family show that the stored member with its identifier is somebody else (docs/834.md, Who a row is). Similar members have the same
names and birth date, or the same family and birth date. They are shown and never merged: a record that creates one is warned, and
`member duplicates` lists the pairs (docs/members.md).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from frontdesk.db import Tx
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.model import (
    FIRST_DRY_RUN_ID,
    SIMILAR_MEMBER,
    WARNING_MARK,
    Enrolled,
    Outcome,
    PersonSaid,
    StoredMember,
)
from frontdesk.errors import FrontdeskError

PERSON_FIELDS = frozenset(("first_name", "last_name", "dob"))
DIGESTS = ("person_digest", "family_digest")

# What senders write for a child without a name yet, folded.
_NEWBORN = re.compile(
    r"(?:baby|newborn|infant|nb)(?:boy|girl|male|female|[a-dfgm1-4])?|(?:boy|girl)[a-d1-4]?|b[bg]|(?:baby(?:boy|girl|of)|newborn).*"
)

Values = Mapping[str, Any]
_keys: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def fold_name(name: str) -> str:
    """A name without letter case, spaces and punctuation."""
    folded = name.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


def are_two_people(person: PersonSaid, other: PersonSaid) -> bool:
    """Whether a row and a stored member, or two rows, are clearly about two people. What one side does not carry is None."""
    first_names = [*filter(None, map(_known_first_name, (person.first_name, person.former_first_name)))]
    last_names = [*filter(None, map(fold_name, (person.last_name, person.former_last_name)))]
    births = [*filter(None, (person.dob, person.former_dob))]
    first, last = _known_first_name(other.first_name), fold_name(other.last_name)
    same_first = any(first.startswith(name) or name.startswith(first) for name in first_names)
    has_first = same_first if first_names and first else None
    has_last = last in last_names if last_names and last else None
    has_dob = other.dob in births if births and other.dob else None
    has_other_role, has_other_family, is_twin = (
        bool(mine and theirs) and mine != theirs
        for mine, theirs in zip(person[3:6], other[3:6], strict=True)  # role, family, sequence
    )
    if is_twin or has_first is False:
        return True
    if has_dob is False and (has_last is False or has_other_role):
        return True
    if has_other_family:
        return not (has_first and has_dob)
    return has_first is None and has_dob is None and has_other_role


def person_of(values: Values) -> PersonSaid:
    """The person that a stored member is."""
    role, family = values["subscriber_relationship"] or "", values["family_digest"] or ""
    return PersonSaid(values["first_name"], values["last_name"], values["dob"], role, family)


def _known_first_name(name: str) -> str:
    """The folded name; "" for an initial, and for what stands for a child without a name."""
    folded = fold_name(name)
    return "" if len(folded) < 2 or _NEWBORN.fullmatch(folded) else folded


def person_digest(key: bytes, values: Values) -> str | None:
    """Equal for members of one account with the same birth date and the same letters and digits in both names."""
    first, last = fold_name(values["first_name"]), fold_name(values["last_name"])
    if not first or not last:
        return None
    text = f"{values['account_id']}\0{first}\0{last}\0{values['dob']}"
    return blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def get_digest_key(tx: SetTransaction) -> bytes:
    """The installation's key of digests. It never changes, so a process reads it once for each database."""
    if tx.engine not in _keys:
        _keys[tx.engine] = store.row_digest_key(tx)
    return _keys[tx.engine]


def find_similar(created: Sequence[StoredMember], today: str, *txs: SetTransaction) -> list[Found]:
    """Search the stored open members that are similar to new ones: set reads, which belong into the round trip that writes them.

    A dry run searches its scratch database too.
    """
    reads = []
    for column in DIGESTS:
        if keys := {key for member in created if (key := _key_of(member.values, column))}:
            reads += [store.find_similar(tx, column, sorted(keys), today) for tx in txs]
    return reads


def ids_of_similar(reads: Iterable[Found]) -> set[int]:
    return {row["id"] for read in reads for row in read.rows} - {None}


def warn_of_similar(
    results: list[Enrolled | FrontdeskError],
    reads: Sequence[Found],
    changed: Iterable[StoredMember],
    today: str,
) -> list[Enrolled | FrontdeskError]:
    """The results, those of new members with a warning that names the similar one. The chunk or dry run has `changed` stored
    members since they were found."""
    now = {member.values["id"]: member.values for member in changed}
    people: dict[str, int] = {}
    for row in (row for read in reads for row in read.rows if row["id"] is not None):
        values = now.get(row["id"])
        if values is None or (store.is_open(values, today) and row["key"] in _keys_of(values)):
            people.setdefault(row["key"], row["id"])
    return [_warned(result, people, today) for result in results] if reads else results


def find_look_alikes(tx: Tx, people: Sequence[Values], today: str) -> list[int | None]:
    """For each person, by names, birth date and account, a stored member that is open today and looks the same."""
    digest_key = get_digest_key(tx)
    keys = [_key_of({**person, "person_digest": person_digest(digest_key, person)}) for person in people]
    found = store.find_similar(tx, "person_digest", sorted({*filter(None, keys)}), today)
    ids = {row["key"]: row["id"] for row in found.rows}
    return [ids.get(key) for key in keys]


def _warned(
    result: Enrolled | FrontdeskError, people: dict[str, int], today: str
) -> Enrolled | FrontdeskError:
    """The result of a new member with a warning if the member is similar to one of the people, which it joins."""
    if not isinstance(result, Enrolled) or result.outcome is not Outcome.CREATED:
        return result
    values, keys = result.stored.values, _keys_of(result.stored.values)
    found = next((people[key] for key in keys if key in people), None)
    if store.is_open(values, today):
        for key in keys:
            people.setdefault(key, values["id"])
    if found is None:
        return result
    is_stored = found < FIRST_DRY_RUN_ID
    said = f"looks like member {found}" if is_stored else "looks like another new member of the file"
    return result._replace(warnings=(*result.warnings, f"{SIMILAR_MEMBER}{WARNING_MARK}{said}"))


def _key_of(values: Values, column: str = "person_digest") -> str | None:
    """A digest and the birth date, as `store.find_similar` takes them."""
    return f"{values[column]} {values['dob']}" if values[column] else None


def _keys_of(values: Values) -> list[str]:
    return [key for column in DIGESTS if (key := _key_of(values, column))]
