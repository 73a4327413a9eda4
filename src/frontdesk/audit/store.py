"""The SQL of the audit trail."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from frontdesk.audit.tables import audit_entries
from frontdesk.db import Tx
from frontdesk.db.sets import Row, insert_set


def insert_entries(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, audit_entries, rows)


def newest_entries(tx: Tx, account_id: int | None, limit: int) -> list[dict[str, Any]]:
    query = select(audit_entries).order_by(audit_entries.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(audit_entries.c.account_id == account_id)
    return [dict(row) for row in tx.execute(query).mappings()]
