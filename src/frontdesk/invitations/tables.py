"""The tables of invitations, of each account's deliverability settings, and of addresses that must not be mailed."""

from sqlalchemy import (
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
)

from frontdesk.db.schema import Id, UtcTime, metadata

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
    Column("reason", String(32), nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

invitations = Table(
    "invitations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("plan_id", Id, nullable=False),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("delivery", String(9), nullable=False),
    Column("state", String(9), nullable=False),
    Column("address", String(254), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    UniqueConstraint("member_id", "kind"),
    Index("ix_invitations_state_account_id_id", "state", "account_id", "id"),
)

# The links in a mail carry tokens of which only the SHA-256 is kept. A second Message-ID brings a second row.
invitation_links = Table(
    "invitation_links",
    metadata,
    Column("registration_hash", String(64), primary_key=True),
    Column("unsubscribe_hash", String(64), nullable=False),
    Column("invitation_id", Id, ForeignKey("invitations.id"), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("unsubscribe_hash"),
)

# What an account says in its own words; null is the product's own text.
invitation_templates = Table(
    "invitation_templates",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("subject", String(500), nullable=True),
    Column("text", Text, nullable=True),
    Column("html", Text, nullable=True),
    Column("updated_at", UtcTime, nullable=False),
)

# What became of a message after the relay took it; each kind of report counts once.
delivery_reports = Table(
    "delivery_reports",
    metadata,
    Column("invitation_id", Id, ForeignKey("invitations.id"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("status", String(11), nullable=True),
    Column("received_at", UtcTime, nullable=False),
)
