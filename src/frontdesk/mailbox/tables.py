"""The table of the mails that a sandbox caught."""

from sqlalchemy import LargeBinary, String, Table

from frontdesk.db.schema import NEVER_REUSED, Id, UtcTime, key, metadata, required

caught_messages = Table(
    "caught_messages",
    metadata,
    *key(Id, "id"),
    *required(String(255), "message_id", index=True),
    *required(String(254), "sender", "recipient"),
    *required(String(10), "outcome"),
    *required(LargeBinary(), "content"),
    *required(UtcTime(), "caught_at"),
    **NEVER_REUSED,
)
