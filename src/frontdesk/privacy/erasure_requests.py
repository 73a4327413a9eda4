"""Erasures that a request has no time for: it leaves them to a worker, which has all the time (docs/decisions/0116).

Any number of workers may carry them out: what one has erased, another one finds erased.
"""

from collections.abc import Callable, Iterator

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import Conflict
from frontdesk.privacy import request_store, store
from frontdesk.privacy.erasure import erase_person
from frontdesk.privacy.model import ErasureRequest, FilesUnfinished, Person, UnderLegalHold


def leave_to_worker(tx: Tx, person: Person, requester: Requester) -> ErasureRequest:
    """The waiting request for the member's erasure: this one, or an earlier one."""
    store.lock_members(tx, [person.member_id])
    if (waiting := find_waiting(tx, person)) is not None:
        return waiting
    made = ErasureRequest(person, requester)
    request_store.insert_erasure_request(tx, made)
    audit.record_action(tx, requester, "member.erasure_asked", person.account_id, person.member_id)
    return made


def find_waiting(tx: Tx, person: Person) -> ErasureRequest | None:
    return next(iter(request_store.list_erasure_requests(tx, member_id=person.member_id)), None)


def list_waiting(tx: Tx, account_id: int | None = None) -> list[ErasureRequest]:
    """The erasures that wait for a worker, of one account or of all, the oldest first."""
    return request_store.list_erasure_requests(tx, account_id=account_id)


def carry_out(db: Database, clock: Clock, *, go_on: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Erase what waits; the id of each member that is erased. A request waits on while files of its account have not ended,
    and ends when the member is under legal hold. `go_on` is called while reports are searched, and may raise. Raises Unavailable.
    """
    for person, asked in db.ask(list_waiting):
        requester = asked._replace(now=clock())
        try:
            erase_person(db, [person], requester, clock, go_on=go_on)
        except (FilesUnfinished, Conflict):
            continue
        except UnderLegalHold:
            write_alone(db, lambda tx, by=requester, of=person: _refuse(tx, of, by))  # type: ignore[misc]
        else:
            yield person.member_id


def _refuse(tx: Tx, person: Person, requester: Requester) -> None:
    if request_store.delete_erasure_requests(tx, [person.member_id]):
        about = (person.account_id, person.member_id)
        audit.record_action(tx, requester, "member.erasure_refused", *about, reason="legal_hold")
