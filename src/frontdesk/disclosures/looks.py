"""Who has looked at a person, and what was done: the entries of the audit trail about the person,
about files with a row of the person, and about lists of its plans.
"""

from typing import Any, NamedTuple

from frontdesk import audit
from frontdesk.audit import AuditSubjects
from frontdesk.db import Tx
from frontdesk.eligibility.model import Outcome
from frontdesk.eligibility.search import get_kept
from frontdesk.privacy.subjects import find_subjects_of
from frontdesk.reach import Reach

PAGE = 50
LAST = 2**62  # no database gets to such an id
MOST_FILES = 200  # the newest of a person, whose readings are looked for

# Of the noun `member`: what was done, and who has looked.
OF_MEMBERS = (
    *(f"eligibility.{outcome}" for outcome in Outcome if outcome is not Outcome.UNCHANGED),
    *("member.read", "member.history_read", "member.checked", "member.opened", "member.exported"),
    *("member.merged", "member.unmerged", "member.called_distinct"),
    *("member.held", "member.released", "member.erased"),
)
OF_FILES = ("file.report_read", "file.names_read")
OF_PLANS = ("members.read",)


class EntriesAbout(NamedTuple):
    """Entries of the trail by column, the newest first, and the id before which the next page
    starts; None after the last.
    """

    entries: list[dict[str, Any]]
    before_id: int | None


def list_entries_about(
    tx: Tx, reach: Reach, member_id: int, *, before_id: int = LAST, size: int = PAGE
) -> EntriesAbout:
    """A page of the entries about a person and the members that were merged with it. Raises
    NotFound.

    A list of a plan counts also before and after the person's time in it; of the files, the newest
    200 with a row about the person count.
    """
    member = get_kept(tx, reach, member_id)
    subjects = find_subjects_of(tx, member["id"], most_files=MOST_FILES)
    about = (
        AuditSubjects(subjects.member_ids, OF_MEMBERS),
        AuditSubjects(subjects.file_ids, OF_FILES),
        AuditSubjects(subjects.plan_ids, OF_PLANS),
    )
    found = audit.list_about(tx, about, before_id=before_id, limit=size + 1)
    entries = found[:size]
    return EntriesAbout(entries, entries[-1]["id"] if len(found) > size else None)
