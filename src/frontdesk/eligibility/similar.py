"""People who look like one: found by a keyed digest of names and birth date, or by family and birth date, shown and never merged.

A file or a POST that creates a member is warned; `member duplicates` lists the pairs (docs/members.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from frontdesk.db import Tx
from frontdesk.db.sets import SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.model import (
    FIRST_DRY_RUN_ID,
    SIMILAR_MEMBER,
    WARNING_MARK,
    Enrolled,
    Outcome,
    StoredMember,
)
from frontdesk.errors import FrontdeskError

PERSON_FIELDS = frozenset(("first_name", "last_name", "dob"))
DIGESTS = ("person_digest", "family_digest")

Values = Mapping[str, Any]
_keys: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def person_digest(key: bytes, values: Values) -> str | None:
    """Equal for members of one account with the same birth date and the same letters and digits in both names."""
    first, last = (
        "".join(filter(str.isalnum, values[name].casefold())) for name in ("first_name", "last_name")
    )
    if not first or not last:
        return None
    text = f"{values['account_id']}\0{first}\0{last}\0{values['dob']}"
    return blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def get_digest_key(tx: SetTransaction) -> bytes:
    """The installation's key of digests. It never changes, so a process reads it once for each database."""
    if tx.engine not in _keys:
        _keys[tx.engine] = store.row_digest_key(tx)
    return _keys[tx.engine]


class SimilarSearch:
    """A set read of the stored open members that are similar to new ones. It belongs into the round trip that writes them.

    A dry run searches its scratch database too.
    """

    def __init__(self, created: Sequence[StoredMember], today: str, *txs: SetTransaction) -> None:
        self._created, self._today = created, today
        self._reads = []
        for column in DIGESTS:
            if keys := {key for member in created if (key := _key_of(member.values, column))}:
                self._reads += [store.find_similar(tx, column, sorted(keys), today) for tx in txs]

    @property
    def found(self) -> list[dict[str, Any]]:
        return [row for read in self._reads for row in read.rows if row["id"] is not None]

    def ids(self, changed: Iterable[StoredMember]) -> dict[int, int]:
        """The id of a similar member by that of each new one that has one. The chunk or dry run has `changed` stored ones."""
        now = {member.values["id"]: member.values for member in changed}
        people: dict[str, int] = {}
        for row in self.found:
            values = now.get(row["id"])
            if values is None or (is_open(values, self._today) and row["key"] in _keys_of(values)):
                people.setdefault(row["key"], row["id"])
        similar = {}
        for member in self._created:
            keys = _keys_of(member.values)
            if (found := next((people[key] for key in keys if key in people), None)) is not None:
                similar[member.values["id"]] = found
            if is_open(member.values, self._today):
                for key in keys:
                    people.setdefault(key, member.values["id"])
        return similar


def find_look_alikes(tx: Tx, people: Sequence[Values], today: str) -> list[int | None]:
    """For each person, by names, birth date and account, a stored member that is open today and looks the same."""
    digest_key = get_digest_key(tx)
    digests = [person_digest(digest_key, person) for person in people]
    keys = [
        _key_of({**person, "person_digest": digest}) for person, digest in zip(people, digests, strict=True)
    ]
    found = store.find_similar(tx, "person_digest", sorted({*filter(None, keys)}), today)
    ids = {row["key"]: row["id"] for row in found.rows}
    return [ids.get(key) for key in keys]


def is_open(values: Values, today: str) -> bool:
    """Whether the member has access today or later, and is neither withdrawn, merged nor erased."""
    is_there = values["uniqueness_scope"] >= 0 and values["merged_into"] is None
    return is_there and (values["expiry_date"] is None or values["expiry_date"] >= today)


def with_warnings(
    results: list[Enrolled | FrontdeskError], similar: Mapping[int, int]
) -> list[Enrolled | FrontdeskError]:
    """The results, those of new members with a warning that names the similar one."""
    if not similar:
        return results
    return [
        result._replace(warnings=(*result.warnings, f"{SIMILAR_MEMBER}{WARNING_MARK}{_named(found)}"))
        if isinstance(result, Enrolled)
        and result.outcome is Outcome.CREATED
        and (found := similar.get(result.stored.values["id"])) is not None
        else result
        for result in results
    ]


def _named(member_id: int) -> str:
    is_stored = member_id < FIRST_DRY_RUN_ID
    return f"looks like member {member_id}" if is_stored else "looks like another new member of the file"


def _key_of(values: Values, column: str = "person_digest") -> str | None:
    """A digest and the birth date, as `store.find_similar` takes them."""
    return f"{values[column]} {values['dob']}" if values[column] else None


def _keys_of(values: Values) -> list[str]:
    return [key for column in DIGESTS if (key := _key_of(values, column))]
