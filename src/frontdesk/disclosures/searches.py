"""Keeps who was found by a search, so that its page can be opened again: the address has a random
number, and no value of a person. What was searched for is kept nowhere.
"""

import re
import secrets
from datetime import datetime

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.disclosures import store
from frontdesk.disclosures.model import HOUR, KeptSearch
from frontdesk.eligibility.search import FoundPeople, list_covered
from frontdesk.errors import NotFound
from frontdesk.reach import Reach

NUMBER_BYTES = 16
NUMBER = re.compile("[A-Za-z0-9_-]{22}")


def keep_search(
    tx: Tx, requester: Requester, account_id: int, session_id: int, found: FoundPeople
) -> str:
    """Keep who was found for an hour; returns the number. The trail records how many were found
    (`people.searched`).
    """
    number = secrets.token_urlsafe(NUMBER_BYTES)
    ids = tuple(person.id for person in found.people)
    kept = KeptSearch(number, session_id, account_id, ids, found.truncated, requester.now)
    store.add_search(tx, kept, before=requester.now - HOUR)
    audit.record_action(tx, requester, "people.searched", account_id, found=len(ids))
    return number


def find_search(
    tx: Tx, reach: Reach, session_id: int, number: str, *, now: datetime
) -> FoundPeople:
    """The people of a search of this session, as they are now, without those who have gone. Raises
    NotFound after an hour, for another session and out of reach.
    """
    kept = store.find_search(tx, number) if NUMBER.fullmatch(number) else None
    if (
        kept is None
        or kept.session_id != session_id
        or not reach.covers(kept.account_id)
        or kept.at <= now - HOUR
    ):
        raise NotFound("address")
    people = list_covered(tx, Reach.of(kept.account_id), kept.member_ids, now=now)
    return FoundPeople(people, kept.truncated)
