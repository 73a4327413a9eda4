"""The table of the mails that a sandbox caught."""

from sqlalchemy import Column, LargeBinary, String, Table

from frontdesk.db.schema import Id, UtcTime, metadata

caught_messages = Table(
    "caught_messages",
    metadata,
    Column("id", Id, primary_key=True),
    Column("message_id", String(255), nullable=False, index=True),
    Column("sender", String(254), nullable=False),
    Column("recipient", String(254), nullable=False),
    Column("outcome", String(10), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("caught_at", UtcTime, nullable=False),
)
