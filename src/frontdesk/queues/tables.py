"""The tables of the encounter queue: the events as they came, what follows from them, snapshots, estimates given.

Doctors and visits are opaque references; no name of anybody is in this part. `encounters` and `duties` follow from
`queue_events` and can be made anew from them.
"""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from frontdesk.db.schema import Id, Json, UtcTime, metadata

# No foreign keys here: they cost a third of the time of a batch, `ingest` has just looked the references up, and what
# follows from the events has them.
queue_events = Table(
    "queue_events",
    metadata,
    Column("event_id", String(255), nullable=False),
    Column("provider_group_id", Id, nullable=False),
    Column("type", String(16), nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("received_at", UtcTime, nullable=False),
    Column("plan_id", Id, nullable=True),
    Column("doctor", String(255), nullable=True),
    Column("visit", String(255), nullable=True),  # null: the event is a doctor's
    Column("plan_ids", Json, nullable=True),
    Column("capacity", Integer, nullable=True),
    PrimaryKeyConstraint("event_id", "provider_group_id"),
    Index("ix_queue_events_visit_provider_group_id_at", "visit", "provider_group_id", "at"),
    Index("ix_queue_events_at", "at"),
)

encounters = Table(
    "encounters",
    metadata,
    Column("id", Id, primary_key=True),
    Column("provider_group_id", Id, ForeignKey("provider_groups.id"), nullable=False),
    Column("visit", String(255), nullable=False),
    Column("plan_id", Id, ForeignKey("plans.id"), nullable=False),
    Column("state", String(8), nullable=False),
    Column("doctor", String(255), nullable=True),
    Column("joined_at", UtcTime, nullable=True),
    Column("started_at", UtcTime, nullable=True),
    Column("ended_at", UtcTime, nullable=True),
    Column("last_event_at", UtcTime, nullable=False),
    UniqueConstraint("visit", "provider_group_id"),
    Index("ix_encounters_provider_group_id_state_joined_at", "provider_group_id", "state", "joined_at"),
    Index("ix_encounters_plan_id_state_ended_at", "plan_id", "state", "ended_at"),
    Index("ix_encounters_plan_id_joined_at", "plan_id", "joined_at"),
    Index("ix_encounters_last_event_at", "last_event_at"),
)

duties = Table(
    "duties",
    metadata,
    Column("id", Id, primary_key=True),
    Column("provider_group_id", Id, ForeignKey("provider_groups.id"), nullable=False),
    Column("doctor", String(255), nullable=False),
    Column("on_duty", Boolean, nullable=False),
    Column("on_at", UtcTime, nullable=True),
    Column("on_event", String(255), nullable=True),
    Column("off_at", UtcTime, nullable=True),
    Column("plan_ids", Json, nullable=True),  # null: all plans of the group
    Column("capacity", Integer, nullable=False),
    UniqueConstraint("doctor", "provider_group_id"),
    Index("ix_duties_provider_group_id_on_duty", "provider_group_id", "on_duty"),
)

queue_snapshots = Table(
    "queue_snapshots",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("taken_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("queues", Json, nullable=False),
    Column("records", Json, nullable=True),  # how the intervals have held; null: told by an older version
)

# What was told, to be compared with what came (queue_state.py).
estimate_log = Table(
    "estimate_log",
    metadata,
    Column("id", Id, primary_key=True),
    Column("plan_id", Id, ForeignKey("plans.id"), nullable=False),
    Column("taken_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("estimate_seconds", Integer, nullable=False),
    Column("low_seconds", Integer, nullable=True),  # of the interval; null: told by an older version
    Column("high_seconds", Integer, nullable=True),
    Index("ix_estimate_log_plan_id_taken_at", "plan_id", "taken_at"),
    Index("ix_estimate_log_taken_at", "taken_at"),
)
