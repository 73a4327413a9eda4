"""The table of audit entries; rows are only ever added (the database refuses to change or delete one)."""

from sqlalchemy import Column, String, Table

from frontdesk.db.schema import Id, Json, UtcTime, metadata

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("account_id", Id, nullable=True),
    Column("actor", String(64), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject_id", Id, nullable=True, index=True),
    Column("request_id", String(64), nullable=False),
    Column("detail", Json, nullable=True),
)
