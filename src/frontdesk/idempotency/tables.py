"""The table of stored answers. Rows are deleted a day later (privacy.retention), and when a member
of the account is erased.
"""

from sqlalchemy import Integer, String, Table, Text, UniqueConstraint

from frontdesk.db.schema import Id, UtcTime, key, metadata, required

stored_answers = Table(
    "stored_answers",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", to="accounts.id"),
    *required(String(64), "key_hash", "fingerprint"),
    *required(Integer(), "status"),
    *required(Text(), "headers", "body"),
    *required(UtcTime(), "created_at"),
    UniqueConstraint("account_id", "key_hash"),
)
