"""Similar members: two members of an account with the same names and birth date, or with the same
family and the same birth date or first name.

They are never merged automatically: a record that creates a similar member gets a warning, and
`member duplicates` lists the pairs (docs/members.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from frontdesk import codes
from frontdesk.db import Tx, sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import model, persons, store
from frontdesk.eligibility.model import Enrolled, MemberWarning, Outcome, Relative, StoredMember
from frontdesk.eligibility.same_person import first_name_spellings


class SimilarSearch:
    """The search for stored members that are similar to the new members of a chunk: set reads, in
    the round trip that writes the new members. A dry run searches its scratch database too.

    Its answers can be read after the commit: `warnings_of` looks at them first.
    """

    def __init__(self, created: Sequence[StoredMember], today: str, *txs: SetTransaction) -> None:
        self.today = today
        keys = [key for member in created for key in {*_keys_of(member.values)}]
        self._has_similar_new = len({*keys}) < len(keys)
        people = {*filter(None, (_key_of_person(member.values) for member in created))}
        families = {member.values["family_digest"] for member in created} - {None}
        self._people: list[Found] = []
        self._families: list[Found] = []
        for tx in txs:
            if people:
                self._people.append(store.find_similar(tx, sorted(people), today))
            if families:
                self._families.append(store.find_families(tx, sorted(families), today))

    def stored_ids(self) -> set[int]:
        """The ids of the members that were found."""
        people = {row["id"] for read in self._people for row in read.rows}
        return people.union(relative.id for relative in self._relatives()) - {None}

    def warnings_of(self, changed: Iterable[StoredMember]) -> "SimilarWarnings | None":
        """The warnings that new members get, None if there are none. The chunk or dry run has
        `changed` stored members since the search.
        """
        values_now = {member.values["id"]: member.values for member in changed}
        ids: dict[str, int] = {}
        for read in self._people:
            for row in read.rows:
                if row["id"] is None:
                    continue
                values = values_now.get(row["id"])
                if values is None or _is_still_similar(values, row["key"], self.today):
                    ids.setdefault(row["key"], row["id"])
        for relative in self._relatives():
            values = values_now.get(relative.id)
            if values is None:
                keys = _keys_of_relative(relative)
            else:
                keys = _keys_of(values) if store.is_open(values, self.today) else []
            for key in keys:
                ids.setdefault(key, relative.id)
        if not ids and not self._has_similar_new:
            return None
        return SimilarWarnings(ids, self.today)

    def _relatives(self) -> Iterator[Relative]:
        rows = (row for read in self._families for row in read.rows)
        # PostgreSQL's driver makes dates of days.
        return (Relative(**row | {"dob": str(row["dob"])}) for row in rows)


class SimilarWarnings:
    """Warns of similar members, record by record: new members are similar to later ones. `ids` are
    those of stored members, by a digest with a birth date or a first name.
    """

    def __init__(self, ids: dict[str, int], today: str) -> None:
        self._ids = ids
        self._today = today

    def warning_of(self, result: Enrolled) -> MemberWarning | None:
        """The warning of an accepted record, if it created a member that is similar to another."""
        if result.outcome is not Outcome.CREATED:
            return None
        values = result.stored.values
        keys = _keys_of(values)
        similar_id = next((self._ids[key] for key in keys if key in self._ids), None)
        if store.is_open(values, self._today):
            for key in keys:
                self._ids.setdefault(key, values["id"])
        if similar_id is None:
            return None
        code = codes.warnings.SIMILAR_MEMBER
        if similar_id < model.FIRST_DRY_RUN_ID:
            return MemberWarning.of(code, member_id=similar_id)
        return MemberWarning.of(code, detail="looks like another new member of the file")


def find_look_alikes(tx: Tx, people: Sequence[Mapping[str, Any]], today: str) -> list[int | None]:
    """For each person, by names, birth date and account, a similar stored member that is open
    today.
    """
    hasher = sets.keyed_hasher(tx, size=persons.DIGEST_SIZE)
    keys: list[str | None] = []
    for person in people:
        digest = persons.person_digest(hasher, person)
        keys.append(digest and similar_key(digest, person))
    found = store.find_similar(tx, sorted({*filter(None, keys)}), today)
    ids = {row["key"]: row["id"] for row in found.rows}
    return [ids.get(key or "") for key in keys]


def _is_still_similar(values: Mapping[str, Any], key: str, today: str) -> bool:
    return store.is_open(values, today) and key in _keys_of(values)


def similar_key(digest: str, values: Mapping[str, Any]) -> str:
    """A digest and the birth date, as `store.find_similar` takes them."""
    return f"{digest} {values['dob']}"


def _key_of_person(values: Mapping[str, Any]) -> str | None:
    digest = values["person_digest"]
    return digest and similar_key(digest, values)


def _keys_of(values: Mapping[str, Any]) -> list[str]:
    person = _key_of_person(values)
    relative = Relative(
        values["id"] or 0, values["family_digest"] or "", values["first_name"], values["dob"]
    )
    return [*filter(None, [person]), *_keys_of_relative(relative)]


def _keys_of_relative(relative: Relative) -> list[str]:
    """The family with the birth date, and with each spelling of the first name."""
    if not relative.family:
        return []
    names = sorted(first_name_spellings(relative.first_name))
    return [f"{relative.family} {said}" for said in (relative.dob, *names)]
