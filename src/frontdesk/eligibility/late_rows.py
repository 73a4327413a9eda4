"""Rows of a file that a person approved late: those of members that were changed in the meantime are
refused (docs/files.md, Decide about a held file).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from frontdesk import codes
from frontdesk.db.sets import SetTransaction
from frontdesk.eligibility import store
from frontdesk.eligibility.model import StoredMember, Submission
from frontdesk.eligibility.row_access import FileTerms
from frontdesk.errors import Fault, Invalid

NOTHING = frozenset[int]()
_CHANGED_SINCE = Fault(
    "external_id",
    codes.rows.CHANGED_SINCE,
    "is that of a member that was changed after the file came; it was left as it is. If the row is "
    "still right, send it again",
)


def find_changed_since(
    tx: SetTransaction,
    members: Mapping[int, StoredMember],
    submissions: Sequence[Submission],
    file: FileTerms | None,
) -> frozenset[int]:
    """The ids of the stored members with late rows: by the history, the last change
    after the time of the terms is not the file's own. The submissions are all of one file.
    """
    if file is None or file.unless_changed_since is None or not submissions:
        return NOTHING
    since = file.unless_changed_since
    # Most members have not been changed, and their histories need not be read.
    newer = [id_ for id_, member in members.items() if _time_of(member) > since]
    last_files = store.find_last_files(tx, newer, since) if newer else {}
    own_id = submissions[0].file_id
    return frozenset(id_ for id_, file_id in last_files.items() if file_id != own_id)


def refusal_of(own: StoredMember, changed_since: frozenset[int]) -> Invalid | None:
    """The refusal of a row of this member, None if it is not among those that were changed."""
    return Invalid([_CHANGED_SINCE]) if own.values["id"] in changed_since else None


def _time_of(member: StoredMember) -> datetime:
    return datetime.fromisoformat(str(member.values["updated_at"]))
