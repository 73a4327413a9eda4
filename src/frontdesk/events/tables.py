"""The tables of events."""

import sqlalchemy as sa

from frontdesk.db.schema import (
    NEVER_REUSED,
    Id,
    Json,
    TransactionNumber,
    UtcTime,
    key,
    metadata,
    optional,
    required,
    words,
)
from frontdesk.events.model import URL_LENGTH, EndpointState, PauseReason

# The accounts that asked for events. Nothing is written for others.
event_feeds = sa.Table(
    "event_feeds", metadata, *key(Id, "account_id", to="accounts.id"), *required(UtcTime(), "since")
)

# No foreign keys: they cost a write, and the writer has just read the account. PostgreSQL's ids
# don't commit in their order, so the feed is ordered by transaction first, and read up to the
# oldest transaction that is still open (store.list_events).
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
    # Of a test or a replay: only this endpoint gets it, and the feed does not show it.
    *optional(Id, "endpoint_id"),
    *optional(sa.String(40), "replays"),  # the id of the event that is sent again
    sa.Index("ix_events_account_id_xid_id", "account_id", "xid", "id"),
    **NEVER_REUSED,
)

# An endpoint has one place in its account's feed, so its webhooks keep their order, and a delivery
# writes one small row.
webhook_endpoints = sa.Table(
    "webhook_endpoints",
    metadata,
    *key(Id, "id"),
    *required(Id, "account_id", to="accounts.id", index=True),
    *required(sa.String(URL_LENGTH), "url"),
    *required(Json, "event_types"),  # empty: all
    *required(words(EndpointState, 10), "state"),
    *optional(words(PauseReason, 10), "paused_reason"),
    # Of the secret (signature.derive_secret), and [salt, until] of those before it that still sign.
    *required(sa.String(64), "salt"),
    *required(Json, "old_salts", server_default="[]"),
    *required(Id, "place_xid", "place_id"),
    *required(Id, "epoch"),
    *optional(UtcTime(), "lease_until"),
    *required(UtcTime(), "next_at", "turn_at"),
    *required(sa.Integer(), "attempts"),  # of the event at the head
    *optional(UtcTime(), "head_failed_at", "failing_since", "delivered_at"),
    # Of the address, until it has answered a test: since when it is tried.
    *optional(UtcTime(), "unverified_since"),
    *optional(sa.String(40), "last_error"),
    *required(UtcTime(), "created_at", "updated_at"),
    **NEVER_REUSED,
)
