"""The tables of the encounter queue: the events as they came, what follows from them, snapshots, estimates given.

Doctors and visits are opaque references; no name of anybody is in this part. `encounters` and `duties` follow from
`queue_events` and can be made anew from them.
"""

import sqlalchemy as sa

from frontdesk.db.schema import Id, Json, UtcTime, metadata

# No foreign keys here: they cost a third of the time of a batch, `ingest` has just looked the references up, and what
# follows from the events has them.
queue_events = sa.Table(
    "queue_events",
    metadata,
    sa.Column("event_id", sa.String(255), nullable=False),
    sa.Column("provider_group_id", Id, nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
    sa.Column("plan_id", Id, nullable=True),
    sa.Column("doctor", sa.String(255), nullable=True),
    sa.Column("visit", sa.String(255), nullable=True),  # null: the event is a doctor's
    sa.Column("plan_ids", Json, nullable=True),
    sa.Column("capacity", sa.Integer, nullable=True),
    sa.PrimaryKeyConstraint("event_id", "provider_group_id"),
    sa.Index("ix_queue_events_visit_provider_group_id_at", "visit", "provider_group_id", "at"),
    sa.Index("ix_queue_events_at", "at"),
)

encounters = sa.Table(
    "encounters",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("provider_group_id", Id, sa.ForeignKey("provider_groups.id"), nullable=False),
    sa.Column("visit", sa.String(255), nullable=False),
    sa.Column("plan_id", Id, sa.ForeignKey("plans.id"), nullable=False),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("doctor", sa.String(255), nullable=True),
    sa.Column("joined_at", UtcTime, nullable=True),
    sa.Column("started_at", UtcTime, nullable=True),
    sa.Column("ended_at", UtcTime, nullable=True),
    sa.Column("last_event_at", UtcTime, nullable=False),
    sa.UniqueConstraint("visit", "provider_group_id"),
    sa.Index("ix_encounters_provider_group_id_state_joined_at", "provider_group_id", "state", "joined_at"),
    sa.Index("ix_encounters_plan_id_state_ended_at", "plan_id", "state", "ended_at"),
    sa.Index("ix_encounters_plan_id_joined_at", "plan_id", "joined_at"),
    sa.Index("ix_encounters_last_event_at", "last_event_at"),
)

duties = sa.Table(
    "duties",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("provider_group_id", Id, sa.ForeignKey("provider_groups.id"), nullable=False),
    sa.Column("doctor", sa.String(255), nullable=False),
    sa.Column("on_duty", sa.Boolean, nullable=False),
    sa.Column("on_at", UtcTime, nullable=True),
    sa.Column("on_event", sa.String(255), nullable=True),
    sa.Column("off_at", UtcTime, nullable=True),
    sa.Column("plan_ids", Json, nullable=True),  # null: all plans of the group
    sa.Column("capacity", sa.Integer, nullable=False),
    sa.UniqueConstraint("doctor", "provider_group_id"),
    sa.Index("ix_duties_provider_group_id_on_duty", "provider_group_id", "on_duty"),
)

queue_snapshots = sa.Table(
    "queue_snapshots",
    metadata,
    sa.Column("account_id", Id, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("taken_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("queues", Json, nullable=False),
    sa.Column("records", Json, nullable=True),  # how the intervals have held; null: told by an older version
)

# What was told, to be compared with what came (model.measure_accuracy).
estimate_log = sa.Table(
    "estimate_log",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("plan_id", Id, sa.ForeignKey("plans.id"), nullable=False),
    sa.Column("taken_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("estimate_seconds", sa.Integer, nullable=False),
    sa.Column("low_seconds", sa.Integer, nullable=True),  # of the interval; null: told by an older version
    sa.Column("high_seconds", sa.Integer, nullable=True),
    sa.Index("ix_estimate_log_plan_id_taken_at", "plan_id", "taken_at"),
    sa.Index("ix_estimate_log_taken_at", "taken_at"),
)
