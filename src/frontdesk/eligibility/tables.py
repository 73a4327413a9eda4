"""The tables of eligible members and of what happened to them."""

from sqlalchemy import (
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
)

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, metadata

members = Table(
    "members",
    metadata,
    Column("id", Id, primary_key=True),
    Column("account_id", Id, nullable=False),
    Column("plan_id", Id, nullable=False),
    # 0 where the three keys are unique over the whole service, else the account's id: one set of indexes for both.
    # A withdrawn record (the file that created it was undone) is alone in the scope -id: its keys are free again.
    Column("uniqueness_scope", Id, nullable=False),
    Column("external_id", String(255), nullable=False),
    Column("member_id", String(255), nullable=False),
    Column("first_name", String(100), nullable=False),
    Column("last_name", String(100), nullable=False),
    Column("middle_name", String(100), nullable=True),
    Column("dob", IsoDate, nullable=False),
    Column("gender", String(7), nullable=False),
    Column("email", String(254), nullable=True),
    Column("email_folded", String(508), nullable=True),
    Column("phone", String(10), nullable=True),
    Column("zipcode", String(10), nullable=False),
    Column("city", String(255), nullable=True),
    Column("county", String(255), nullable=True),
    Column("state", String(255), nullable=True),
    Column("effective_date", IsoDate, nullable=False),
    Column("expiry_date", IsoDate, nullable=True),
    Column("medical_eligibility", String(5), nullable=True),
    Column("medical_enrollment", String(5), nullable=True),
    Column("medical_plan_description", String(255), nullable=True),
    Column("payor_name", String(255), nullable=True),
    Column("payor_plan_name", String(255), nullable=True),
    Column("relationship_code", String(255), nullable=True),
    Column("relationship_code_hipaa", String(255), nullable=True),
    Column("subscriber_relationship", String(9), nullable=True),
    Column("metadata", Json, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
    UniqueConstraint("external_id", "uniqueness_scope"),
    UniqueConstraint("member_id", "uniqueness_scope"),
    UniqueConstraint("email_folded", "uniqueness_scope"),
    # A plan's members in order: what a full eligibility file is compared with.
    Index("ix_members_plan_id_id", "plan_id", "id"),
    # Room on each page, so that an update need not touch the indexes (PostgreSQL's HOT updates).
    postgresql_with={"fillfactor": 80},
)

# What each accepted request did to a record: {"field": [from, to], ...}. Rows are only ever added.
member_history = Table(
    "member_history",
    metadata,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("outcome", String(9), nullable=False),
    Column("plan_id", Id, nullable=False),
    Column("changes", Json, nullable=False),
    Column("client", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("changed_at", UtcTime, nullable=False),
    Index("ix_member_history_member_id_id", "member_id", "id"),
)

# What this database was set up for (one row); a server with other settings refuses to start on it.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uniqueness", String(7), nullable=False),
)
