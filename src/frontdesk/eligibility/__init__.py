"""Eligible members: the rules of a record, `enrol` (the one way a record is written), and its history."""

from frontdesk.eligibility.enrol import enrol
from frontdesk.eligibility.member import Deed, Enrolled, Outcome, Submission
from frontdesk.eligibility.parse import MemberRecord, parse_member
from frontdesk.eligibility.store import find_members, history_of, installed_uniqueness

__all__ = [
    "Deed",
    "Enrolled",
    "MemberRecord",
    "Outcome",
    "Submission",
    "enrol",
    "find_members",
    "history_of",
    "installed_uniqueness",
    "parse_member",
]
