"""The SQL of the audit trail."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from frontdesk.audit.model import AuditEntry
from frontdesk.audit.tables import audit_entries
from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.db.set_transaction import SetTransaction
from frontdesk.db.sets import insert_set


def record(tx: SetTransaction, entries: Sequence[AuditEntry], *, now: datetime) -> None:
    """Add the entries to the audit trail."""
    at = stored_time(now)
    insert_set(tx, audit_entries, [{"at": at, **entry._asdict()} for entry in entries])


def list_entries(tx: Tx, *, account_id: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """The newest entries first, as rows by column."""
    query = select(audit_entries).order_by(audit_entries.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(audit_entries.c.account_id == account_id)
    return [dict(row) for row in tx.execute(query).mappings()]
