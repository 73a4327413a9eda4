"""Who did what, when, on whose behalf: entries that are added in the transaction of the deed itself and never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk.audit import store
from frontdesk.clock import stored_time
from frontdesk.db import Tx


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One deed. `actor` is an API client's client_id, or `cli:` and a login name. `detail` holds names and ids only."""

    action: str
    actor: str
    request_id: str
    account_id: int | None = None
    subject_id: int | None = None
    detail: dict[str, Any] | None = None


def record(tx: Tx, entries: Sequence[AuditEntry], *, now: datetime) -> None:
    """Add the entries to the audit trail."""
    at = stored_time(now)
    store.insert_entries(
        tx,
        [
            {
                "at": at,
                "account_id": entry.account_id,
                "actor": entry.actor,
                "action": entry.action,
                "subject_id": entry.subject_id,
                "request_id": entry.request_id,
                "detail": entry.detail,
            }
            for entry in entries
        ],
    )


def list_entries(tx: Tx, *, account_id: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """The newest entries first."""
    return store.newest_entries(tx, account_id, limit)
