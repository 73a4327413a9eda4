"""The tables of delivery: the timeline of each invitation, each account's hourly window, and where the database lives."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table

from frontdesk.db.schema import Id, UtcTime, metadata

# Every step of every invitation. No foreign key: the check would cost as much as the entry, and no invitation is deleted.
invitation_events = Table(
    "invitation_events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("invitation_id", Id, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("from_state", String(9), nullable=False),
    Column("to_state", String(9), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("code", Integer, nullable=True),
    Index("ix_invitation_events_invitation_id_id", "invitation_id", "id"),
)

# One row per account that has batched invitations: its measured time (hourly_window.py), and its present batch.
delivery_windows = Table(
    "delivery_windows",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("measured_us", BigInteger, nullable=False),
    Column("wall_at", UtcTime, nullable=False),
    Column("batch_us", BigInteger, nullable=True),
    Column("batch_left", Integer, nullable=False),
)

# How many batched invitations of an account left its hands in a slice of its measured time.
delivery_counts = Table(
    "delivery_counts",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("slice", BigInteger, primary_key=True),
    Column("sent", Integer, nullable=False),
)

# One row: the home that this database had when it last delivered, how often it did, and why delivery is held (hold.py).
delivery_home = Table(
    "delivery_home",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("home", String(255), nullable=True),
    Column("offers", BigInteger, nullable=False),
    Column("held_reason", String(32), nullable=True),
    Column("held_at", UtcTime, nullable=True),
)
