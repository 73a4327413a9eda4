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
