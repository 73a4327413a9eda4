"""Reads the covered person of a page: without names, with the file and the row of the last change."""

from datetime import datetime

from frontdesk.db import Tx
from frontdesk.eligibility.covered import CoveredPerson
from frontdesk.eligibility.search import get_covered
from frontdesk.privacy import find_place_of
from frontdesk.reach import Reach


def read_covered(tx: Tx, reach: Reach, member_id: int, *, now: datetime) -> CoveredPerson:
    """The covered person with this id; of a merged member the kept one. Raises NotFound."""
    person = get_covered(tx, reach, member_id, now=now)
    change = person.last_change
    if change is None or change.file_id is None:
        return person
    place = find_place_of(tx, person.id, file_id=change.file_id)
    return person._replace(last_change=change._replace(place=place))
