"""The tables of events."""

import sqlalchemy as sa

from frontdesk.db.schema import Id, Json, TransactionNumber, UtcTime, key, metadata, optional, required

# The accounts that asked for events. Nothing is written for others.
event_feeds = sa.Table(
    "event_feeds", metadata, *key(Id, "account_id", to="accounts.id"), *required(UtcTime(), "since")
)

# No foreign keys: they cost a write, and the writer has just read the account. PostgreSQL's ids don't commit in their order, so
# the feed is ordered by transaction first, and read up to the oldest transaction that is still open (store.list_events).
events = sa.Table(
    "events",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id"),
    *required(Id, "xid", server_default=TransactionNumber()),
    *required(sa.String(32), "type"),
    *required(UtcTime(), "at"),
    *required(Json, "data"),
    *optional(sa.String(64), "request_id"),
    sa.Index("ix_events_account_id_xid_id", "account_id", "xid", "id"),
)
