"""The tables of invitations and their delivery: settings, links, templates, reports, timelines, windows, suppressed addresses."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from frontdesk.db.schema import Id, Json, UtcTime, metadata, words
from frontdesk.invitations.model import (
    Delivery,
    InvitationState,
    InvitationStep,
    ReportEvent,
    SuppressionReason,
)

deliverability = Table(
    "deliverability",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("batch_size", Integer, nullable=False),
    Column("batch_interval_seconds", Integer, nullable=False),
    Column("hourly_limit", Integer, nullable=False),
    Column("sender_name", String(255), nullable=True),
    Column("sender_address", String(254), nullable=True),
    Column("registration_url", String(2000), nullable=True),
)

suppressions = Table(
    "suppressions",
    metadata,
    Column("address_folded", String(508), primary_key=True),
    Column("reason", words(SuppressionReason, 32), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # The account that mailed the address; null for an operator's. Only this account is told.
    Column("account_id", Id, nullable=True),
)

NEXT = ("delivery", "account_id", "plan_id", "due_at", "id")
IS_PENDING = text("state = 'pending'")
LAPSES = text("state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL")
OFFERED = text("offered_at IS NOT NULL")
IN_HAND = text("state IN ('claimed', 'offered') AND delivery = 'batched'")

invitations = Table(
    "invitations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("plan_id", Id, nullable=False),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("delivery", words(Delivery, 9), nullable=False),
    Column("state", words(InvitationState, 9), nullable=False),
    Column("address", String(254), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    # When a worker has to process it next: to claim it, or because a lease or a hold has run out. NULL: never.
    Column("due_at", UtcTime, nullable=True),
    # The number of the claim: a write of an older claim is void.
    Column("epoch", Integer, nullable=False, server_default="0"),
    # Attempts that the relay refused for now.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("losses", Integer, nullable=False, server_default="0"),  # how often the relay's answer was lost
    Column("message_id", String(255), nullable=True),
    Column("offered_at", UtcTime, nullable=True),
    Column("settled_at", UtcTime, nullable=True),
    Column("reason", words(InvitationStep, 32), nullable=True),
    Column("relay_code", Integer, nullable=True),
    Column("address_folded", String(508), nullable=True),  # null once the member is erased
    ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    UniqueConstraint("member_id", "kind"),
    UniqueConstraint("message_id"),
    Index("ix_invitations_state_account_id_id", "state", "account_id", "id"),
    # Finds the next batch in the same time with any number of rows. The queries repeat the conditions word for word.
    Index("ix_invitations_next", *NEXT, sqlite_where=IS_PENDING, postgresql_where=IS_PENDING),
    Index("ix_invitations_lapsing", "due_at", sqlite_where=LAPSES, postgresql_where=LAPSES),
    Index("ix_invitations_in_hand", "account_id", sqlite_where=IN_HAND, postgresql_where=IN_HAND),
    # Messages to an address, from the first offer on, so that enqueueing does not pay for this index.
    Index("ix_invitations_mailed", "address_folded", sqlite_where=OFFERED, postgresql_where=OFFERED),
)

# Each Message-ID that an invitation ever had, with the SHA-256 of the tokens in its links.
invitation_links = Table(
    "invitation_links",
    metadata,
    Column("registration_hash", String(64), primary_key=True),
    Column("unsubscribe_hash", String(64), nullable=False),
    Column("message_id", String(255), nullable=False, index=True),
    Column("invitation_id", Id, ForeignKey("invitations.id"), nullable=False, index=True),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("unsubscribe_hash"),
)

# An account's own templates; NULL is the product's.
invitation_templates = Table(
    "invitation_templates",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("subject", String(500), nullable=True),
    Column("text", Text, nullable=True),
    Column("html", Text, nullable=True),
    Column("updated_at", UtcTime, nullable=False),
)

# Delivery reports: what happened to a message after the relay took it. Each kind counts once per message.
delivery_reports = Table(
    "delivery_reports",
    metadata,
    Column("message_id", String(255), primary_key=True),
    Column("kind", words(ReportEvent, 16), primary_key=True),
    Column("invitation_id", Id, ForeignKey("invitations.id"), nullable=False),
    Column("status", String(11), nullable=True),
    Column("received_at", UtcTime, nullable=False),
)

# Every step of every invitation. No foreign key: the check would cost as much as the entry, and no invitation is deleted.
invitation_events = Table(
    "invitation_events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("invitation_id", Id, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("from_state", words(InvitationState, 9), nullable=False),
    Column("to_state", words(InvitationState, 9), nullable=False),
    Column("reason", words(InvitationStep, 32), nullable=False),
    Column("code", Integer, nullable=True),
    Index("ix_invitation_events_invitation_id_id", "invitation_id", "id"),
)

# One row per account that has batched invitations: its measured time (`hourly_window`), and its present batch.
delivery_windows = Table(
    "delivery_windows",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("measured_us", BigInteger, nullable=False),
    Column("wall_at", UtcTime, nullable=False),
    Column("batch_us", BigInteger, nullable=True),
    Column("batch_left", Integer, nullable=False),
    Column("sent", Json, nullable=False),  # [slice of measured time, how many left in it], the oldest first
)

# One row: the home that this database had when it last delivered, how often it did, and why delivery is held (`protocol`).
delivery_home = Table(
    "delivery_home",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("home", String(255), nullable=True),
    Column("offers", BigInteger, nullable=False),
    Column("held_reason", String(32), nullable=True),
    Column("held_at", UtcTime, nullable=True),
)
