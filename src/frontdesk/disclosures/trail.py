"""Pages of the audit trail, the newest entries first: of an account, of all accounts, by a user,
about a person, about a file. Each page that is read is an entry itself (`audit.read`).
"""

from typing import Any

from frontdesk import audit
from frontdesk.audit import AuditSubjects, Requester
from frontdesk.audit.actions import ACTIONS, Subject, subject_of
from frontdesk.db import Tx
from frontdesk.disclosures.looks import LAST, EntriesAbout, list_entries_about
from frontdesk.files.actions import get_file
from frontdesk.files.model import FileKey
from frontdesk.reach import Reach
from frontdesk.users.directory import get_user

TRAIL_PAGE = 50
OF_A_FILE = tuple(action for action in ACTIONS if subject_of(action) is Subject.FILE)


def read_trail(
    tx: Tx, requester: Requester, reach: Reach, *, before_id: int = LAST, size: int = TRAIL_PAGE
) -> EntriesAbout:
    """A page of the account within reach, without entries about members: those are found by the
    person or the user. With EVERY a page of all entries.
    """
    account_id = reach.account_id
    if account_id is None:
        found = audit.list_newest(tx, before_id=before_id, limit=size + 1)
    else:
        found = audit.list_of_account(tx, account_id, before_id=before_id, limit=size + 1)
    _record(tx, requester, reach)
    return _page(found, size)


def read_trail_by_user(
    tx: Tx,
    requester: Requester,
    reach: Reach,
    user_id: int,
    *,
    before_id: int = LAST,
    size: int = TRAIL_PAGE,
) -> EntriesAbout:
    """A page of what a user has done. Raises NotFound, also for a user beyond the reach."""
    user = get_user(tx, reach, user_id)
    found = audit.list_by_user(tx, user.actor, before_id=before_id, limit=size + 1)
    _record(tx, requester, reach, user=user_id)
    return _page(found, size)


def read_trail_about_person(
    tx: Tx,
    requester: Requester,
    reach: Reach,
    member_id: int,
    *,
    before_id: int = LAST,
    size: int = TRAIL_PAGE,
) -> EntriesAbout:
    """A page of who looked at a person, and what was done (`looks`). Raises NotFound."""
    found = list_entries_about(tx, reach, member_id, before_id=before_id, size=size)
    _record(tx, requester, reach, person=member_id)
    return found


def read_trail_about_file(
    tx: Tx,
    requester: Requester,
    reach: Reach,
    file_id: int,
    *,
    before_id: int = LAST,
    size: int = TRAIL_PAGE,
) -> EntriesAbout:
    """A page of what was done to a file, and who read it. Raises NotFound."""
    get_file(tx, FileKey(file_id, reach))
    about = (AuditSubjects((file_id,), OF_A_FILE),)
    found = audit.list_about(tx, about, before_id=before_id, limit=size + 1)
    _record(tx, requester, reach, file=file_id)
    return _page(found, size)


def _record(tx: Tx, requester: Requester, reach: Reach, **of: int) -> None:
    audit.record_action(tx, requester, "audit.read", reach.account_id, **of)


def _page(found: list[dict[str, Any]], size: int) -> EntriesAbout:
    entries = found[:size]
    return EntriesAbout(entries, entries[-1]["id"] if len(found) > size else None)
