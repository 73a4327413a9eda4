"""Whether an 834 is older than what its sender has sent already (docs/files.md, Decide about a held
file).
"""

from datetime import date, timedelta

from frontdesk.db import Tx
from frontdesk.files import store
from frontdesk.files.actions import is_undone
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.model import FileMode

# The day of an upload in UTC is this much behind that of a sender, at most.
_ZONES = timedelta(days=1)


def find_older_reason(tx: Tx, file: EligibilityFile) -> str:
    """A sentence that names an 834 of the same plan and sender that was applied and has a later
    date; "" without one, for other formats, and for a file that is only compared.
    """
    if file.sender is None or file.mode is FileMode.COMPARE:
        return ""
    day = day_of(file)
    for applied in store.applied_files(tx, file.plan_id, file.sender, after=day):
        if day_of(applied) > day and not is_undone(tx, applied.id):
            return (
                f"The file is of {day}, and file {applied.id} of {day_of(applied)} from the same "
                "sender was applied already. If the sender has sent an old file, cancel it. If it "
                "is meant, approve it."
            )
    return ""


def day_of(file: EligibilityFile) -> str:
    """The date of the file (`YYYY-MM-DD`); of one that is dated ahead, the day of its upload: by
    one wrong date, all files after it would be old ones.
    """
    upload = file.created_at.date()
    file_date = file.file_date or f"{upload:%Y-%m-%d}"
    is_ahead = date.fromisoformat(file_date) > upload + _ZONES
    return f"{upload:%Y-%m-%d}" if is_ahead else file_date
