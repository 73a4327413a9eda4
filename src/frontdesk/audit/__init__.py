"""The audit trail: each entry is added in the transaction of its action and never changed."""

from frontdesk.audit.store import (
    AuditEntry,
    AuditQuery,
    Requester,
    entries_about,
    entries_after,
    last_entry_id,
    list_entries,
    record,
    record_action,
)

__all__ = [
    "AuditEntry",
    "AuditQuery",
    "Requester",
    "entries_about",
    "entries_after",
    "last_entry_id",
    "list_entries",
    "record",
    "record_action",
]
