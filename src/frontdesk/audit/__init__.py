"""The audit trail: each entry is added in the transaction of its action and never changed."""

from frontdesk.audit.store import list_entries, record

__all__ = ["list_entries", "record"]
