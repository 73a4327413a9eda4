"""Opens the names in the lists of a file for a user's session: together, for a reason, for 15
minutes.
"""

from collections.abc import Collection
from datetime import datetime

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.disclosures import store
from frontdesk.disclosures.model import (
    OPEN_TIME,
    FileNames,
    NamesNotOpen,
    OpenedNames,
    OpeningReason,
    counted_times,
)
from frontdesk.disclosures.opened import check_case
from frontdesk.eligibility.model import StatedPerson
from frontdesk.eligibility.search import list_names
from frontdesk.files.actions import get_file
from frontdesk.files.model import FileKey
from frontdesk.reach import Reach
from frontdesk.text import stored_time


def open_names(
    tx: Tx, requester: Requester, reach: Reach, names: FileNames, reason: OpeningReason, case: str
) -> datetime:
    """Open the names in the lists of a file for a session; returns until when, 15 minutes from now.
    The trail records the reason and the case number (`file.names_opened`). Raises NotFound; Invalid
    as `check_case`.
    """
    check_case(case)
    file = get_file(tx, FileKey(names.file_id, reach))
    now = requester.now
    opened = OpenedNames(file.id, requester.actor, names.session_id, now)
    store.add_opened_names(tx, opened, counted_times(now, OPEN_TIME))
    until = now + OPEN_TIME
    audit.record_action(
        tx,
        requester,
        "file.names_opened",
        file.account_id,
        file.id,
        reason=reason.value,
        case=case,
        session=names.session_id,
        until=stored_time(until),
    )
    return until


def find_names_opening(tx: Tx, names: FileNames, *, actor: str, now: datetime) -> datetime | None:
    """Until when the names are open to the user in the session; None if they are covered."""
    opened = store.find_opened_names(tx, *names, counted_times(now, OPEN_TIME))
    if opened is None or opened.actor != actor:
        return None
    return opened.at + OPEN_TIME


def read_names(
    tx: Tx, requester: Requester, reach: Reach, names: FileNames, member_ids: Collection[int]
) -> dict[int, StatedPerson]:
    """The names and birth dates of people in a list of the file. The trail records each page
    (`file.names_read`) with their number. Raises NotFound, and NamesNotOpen.
    """
    file = get_file(tx, FileKey(names.file_id, reach))
    if find_names_opening(tx, names, actor=requester.actor, now=requester.now) is None:
        raise NamesNotOpen
    audit.record_action(
        tx,
        requester,
        "file.names_read",
        file.account_id,
        file.id,
        session=names.session_id,
        people=len(member_ids),
    )
    return list_names(tx, file.account_id, member_ids)
