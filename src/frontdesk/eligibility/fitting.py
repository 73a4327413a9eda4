"""Members that rows of a file may be about instead of the members with their identifiers, for the
person check (docs/834.md, The person check).
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

from frontdesk.db import sets
from frontdesk.db.sets import SetTransaction
from frontdesk.eligibility import persons, store
from frontdesk.eligibility.model import StoredMember, Submission
from frontdesk.eligibility.persons import stated_person
from frontdesk.eligibility.similar import similar_key

_ANY_DAY = "0001-01-01"


def add_fitting(
    members: MutableMapping[int, StoredMember],
    submissions: Sequence[Submission],
    *txs: SetTransaction,
) -> None:
    """Add to the members of a chunk those of the same account with the names and birth date of a
    row that has others than its own member: one for each such row, not locked.

    The installation's key is in the first database; a dry run has members in the others, which
    count before those of the first. Reads nothing if every row has the names and birth date of its
    member.
    """
    keys = sorted({*_keys_of_others(members, submissions, txs[0])})
    if not keys:
        return
    ids = set[int]()
    for tx in txs:
        found = store.find_similar(tx, keys, _ANY_DAY)
        ids.update(row["id"] for row in found.rows if row["id"] is not None)
    ids -= members.keys()
    for tx in txs if ids else ():
        members.update(store.lock_by_ids(tx, ids, lock=False))


def _keys_of_others(
    members: Mapping[int, StoredMember], submissions: Sequence[Submission], tx: SetTransaction
) -> Iterator[str]:
    """The digests, with birth dates, of the rows that may be about another member than their own."""
    by_external_id = {
        (member.values["account_id"], member.values["external_id"]): member
        for member in members.values()
    }
    hasher = sets.keyed_hasher(tx, size=persons.DIGEST_SIZE)
    for submission in submissions:
        account_id = submission.account_id
        former_id = submission.context.former_id
        own = by_external_id.get((account_id, former_id)) if former_id else None
        own = own or by_external_id.get((account_id, submission.record.external_id))
        if own is None:
            continue
        values = own.values
        person = submission.context.person or stated_person(submission.record.given)
        has_same_name = person.first_name in ("", values["first_name"])
        if (has_same_name and person.dob in ("", values["dob"])) or not person.dob:
            continue
        said = {**person._asdict(), "account_id": account_id}
        digest = persons.person_digest(hasher, said)
        if digest is not None and digest != values["person_digest"]:
            yield similar_key(digest, said)
