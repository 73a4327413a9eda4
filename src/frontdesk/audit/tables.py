"""The table of audit entries; rows are only ever added (the database refuses to change or delete
one).
"""

from sqlalchemy import String, Table

from frontdesk.db.schema import Id, Json, UtcTime, key, metadata, optional, required

audit_entries = Table(
    "audit_entries",
    metadata,
    *key(Id, "id"),
    *required(UtcTime(), "at"),
    *optional(Id, "account_id"),
    *required(String(64), "actor"),
    *required(String(40), "action"),
    *optional(Id, "subject_id", index=True),
    *required(String(64), "request_id"),
    *optional(Json, "detail"),
)
