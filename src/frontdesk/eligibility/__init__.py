"""Eligible members: the rules of a record, `enrol` (the one way a record is written), its history and what undoes it."""

from frontdesk.eligibility.decide import UNIQUE
from frontdesk.eligibility.enrol import enrol
from frontdesk.eligibility.member import Action, Enrolled, Outcome, Submission
from frontdesk.eligibility.parse import WARNINGS, MemberRecord, Remembered, parse_member, read_external_id
from frontdesk.eligibility.past import Eligibility, find_eligibility
from frontdesk.eligibility.rehearse import rehearsal
from frontdesk.eligibility.restore import Restored, Undoing, restore
from frontdesk.eligibility.store import count_open as count_members_open
from frontdesk.eligibility.store import find_expired, find_members, history_of, installed_uniqueness
from frontdesk.eligibility.store import members_under as list_members_under

__all__ = [
    "UNIQUE",
    "WARNINGS",
    "Action",
    "Eligibility",
    "Enrolled",
    "MemberRecord",
    "Outcome",
    "Remembered",
    "Restored",
    "Submission",
    "Undoing",
    "count_members_open",
    "enrol",
    "find_eligibility",
    "find_expired",
    "find_members",
    "history_of",
    "installed_uniqueness",
    "list_members_under",
    "parse_member",
    "read_external_id",
    "rehearsal",
    "restore",
]
