"""The tables of provider groups and plans."""

from sqlalchemy import Boolean, Column, ForeignKey, Integer, String, Table, Text, UniqueConstraint

from frontdesk.db.schema import Id, UtcTime, metadata

provider_groups = Table(
    "provider_groups",
    metadata,
    Column("id", Id, primary_key=True),
    Column("external_id", String(255), nullable=True, unique=True),
    Column("name", String(255), nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, ForeignKey("accounts.id"), nullable=False),
    Column("provider_group_id", Id, ForeignKey("provider_groups.id"), nullable=False, index=True),
    Column("external_id", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("description", Text, nullable=True),
    Column("accepting_patients", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("account_id", "external_id"),
    UniqueConstraint("account_id", "id"),  # what composite foreign keys point at: a plan of THIS account
)
