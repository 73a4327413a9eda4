"""Keeps who was found by a search, so that its page can be opened again: the address has a random
number, and no value of a person. What was searched for is kept nowhere.
"""

import math
import re
import secrets
from datetime import datetime
from typing import NamedTuple

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.disclosures import store
from frontdesk.disclosures.model import HOUR, SEARCHES_AN_HOUR, Holder, KeptSearch, counted_times
from frontdesk.eligibility.search import FindBy, FoundPeople, list_covered, search_people
from frontdesk.errors import NotFound, RateLimited
from frontdesk.reach import Reach

NUMBER_BYTES = 16
NUMBER = re.compile("[A-Za-z0-9_-]{22}")


class Searched(NamedTuple):
    """Who was found, and the number under which the session sees it again."""

    number: str
    found: FoundPeople


def search(tx: Tx, requester: Requester, account_id: int, session_id: int, by: FindBy) -> Searched:
    """Search the account's people, and keep who was found for an hour. The trail records each search
    with how many were found (`people.searched`), not what was searched for.

    Raises Invalid as `search_people` does, and RateLimited after 60 searches of the user within an
    hour.
    """
    now = requester.now
    lock_name(tx, f"searches by {requester.actor}")
    times = store.list_search_times(tx, requester.actor, counted_times(now, HOUR))
    if len(times) >= SEARCHES_AN_HOUR:
        wait = (times[SEARCHES_AN_HOUR - 1] + HOUR - now).total_seconds()
        raise RateLimited(
            f"You have searched {SEARCHES_AN_HOUR} times within an hour.",
            retry_after_seconds=min(max(1, math.ceil(wait)), int(HOUR.total_seconds())),
        )
    found = search_people(tx, Reach.of(account_id), by, now=now)
    ids = tuple(person.id for person in found.people)
    number = secrets.token_urlsafe(NUMBER_BYTES)
    kept = KeptSearch(number, requester.actor, session_id, account_id, ids, found.truncated, now)
    store.add_search(tx, kept, before=now - HOUR)
    audit.record_action(tx, requester, "people.searched", account_id, found=len(ids))
    return Searched(number, found)


def find_search(tx: Tx, reach: Reach, holder: Holder, number: str, *, now: datetime) -> FoundPeople:
    """The people of a search of this holder, as they are now, without those who have gone. Raises
    NotFound after an hour, for another session and out of reach.
    """
    kept = store.find_search(tx, number) if NUMBER.fullmatch(number) else None
    if (
        kept is None
        or (kept.actor, kept.session_id) != holder
        or not reach.covers(kept.account_id)
        or kept.at <= now - HOUR
    ):
        raise NotFound("address")
    people = list_covered(tx, Reach.of(kept.account_id), kept.member_ids, now=now)
    return FoundPeople(people, kept.truncated)
