"""Eligible members: the rules of a record, `enrol` (the one way a record is written), its history, and the undo."""

from frontdesk.eligibility.as_of import find_eligibility, find_member
from frontdesk.eligibility.dry_run import dry_run
from frontdesk.eligibility.enrol import enrol
from frontdesk.eligibility.fields import ValueCache, parse_member, read_external_id, read_external_ids
from frontdesk.eligibility.restore import restore
from frontdesk.eligibility.similar import find_look_alikes
from frontdesk.eligibility.store import (
    count_members_open,
    external_ids_of,
    find_access,
    find_expired,
    find_kept_digests,
    find_known,
    find_members,
    find_row_digests,
    find_written,
    has_members,
    list_history,
    list_ids_under,
    list_probes,
    merged_with,
    row_digest_key,
)

__all__ = [
    "ValueCache",
    "count_members_open",
    "dry_run",
    "enrol",
    "external_ids_of",
    "find_access",
    "find_eligibility",
    "find_expired",
    "find_kept_digests",
    "find_known",
    "find_look_alikes",
    "find_member",
    "find_members",
    "find_row_digests",
    "find_written",
    "has_members",
    "list_history",
    "list_ids_under",
    "list_probes",
    "merged_with",
    "parse_member",
    "read_external_id",
    "read_external_ids",
    "restore",
    "row_digest_key",
]
