"""Exports that a request has no time for: a worker finds where the member is named, and the next request shows what is there
(docs/decisions/0126).

What is stored in between are ids, and nothing of the person.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.privacy import request_store, store
from frontdesk.privacy.export import find_places
from frontdesk.privacy.model import ExportRequest, Person

PLACES_KEPT = timedelta(days=1)


def leave_search_to_worker(tx: Tx, person: Person, requester: Requester) -> ExportRequest:
    """The waiting request for the member's export: this one, or an earlier one."""
    store.lock_members(tx, [person.member_id])
    if (waiting := find_request(tx, person)) is not None:
        return waiting
    made = ExportRequest(person, requester.now)
    request_store.insert_export_request(tx, made)
    audit.record_action(tx, requester, "member.export_asked", person.account_id, person.member_id)
    return made


def find_request(tx: Tx, person: Person) -> ExportRequest | None:
    return request_store.find_export_request(tx, person.member_id)


def search_for_exports(
    db: Database, clock: Clock, *, go_on: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Find the places of the members that wait, the id of each; forget places that are a day old. Any number of workers may.

    `go_on` is called while reports and the trail are searched, and may raise. Raises Unavailable.
    """
    requests, oldest = db.ask(request_store.list_export_requests), clock() - PLACES_KEPT
    if any(found_at is not None and found_at < oldest for _, found_at in requests):
        write_alone(db, lambda tx: request_store.delete_places(tx, found_before=oldest))
    for person in (person for person, found_at in requests if found_at is None):
        places = find_places(db, person, go_on=go_on)
        write_alone(
            db, partial(request_store.set_places, member_id=person.member_id, places=places, now=clock())
        )
        yield person.member_id
