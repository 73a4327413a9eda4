"""Eligible members: the rules of a record, `enrol` (the one way a record is written), its history, and the undo."""

from frontdesk.eligibility.enrol import dry_run, enrol, restore
from frontdesk.eligibility.fields import ValueCache, parse_member, read_external_id, read_external_ids
from frontdesk.eligibility.persons import find_look_alikes
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
    "find_expired",
    "find_kept_digests",
    "find_known",
    "find_look_alikes",
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
