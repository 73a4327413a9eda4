"""The ids by which the audit trail tells of a person: members, files, plans."""

from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.privacy import store
from frontdesk.privacy.erasure import find_persons_of
from frontdesk.reach import EVERY


class PersonSubjects(NamedTuple):
    """The member and those merged with it, the files with a row about one of them, and the plans
    under which they are or were.
    """

    member_ids: list[int]
    file_ids: list[int]
    plan_ids: set[int]


def find_subjects_of(tx: Tx, member_id: int, *, most_files: int) -> PersonSubjects:
    """The subjects of a member, with its newest files, at most `most_files`. Raises NotFound."""
    persons = find_persons_of(tx, EVERY, member_id)
    file_ids: set[int] = set()
    for person in persons:
        file_ids.update(store.files_with_rows_of(tx, person, limit=most_files))
    member_ids = [person.member_id for person in persons]
    newest = sorted(file_ids, reverse=True)[:most_files]
    return PersonSubjects(member_ids, newest, store.plans_of(tx, member_ids))
