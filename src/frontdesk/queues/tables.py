"""The tables of the encounter queue: doctors on duty, waiting patients, visits, and the shared snapshot.

Doctors and patients are opaque references; no name of anybody is in this part.
"""

from sqlalchemy import Column, ForeignKey, Index, String, Table

from frontdesk.db.schema import Id, Json, UtcTime, metadata

doctors_on_duty = Table(
    "doctors_on_duty",
    metadata,
    Column("provider_group_id", Id, ForeignKey("provider_groups.id"), primary_key=True),
    Column("doctor", String(255), primary_key=True),
    Column("since_at", UtcTime, nullable=False),
)

waiting_patients = Table(
    "waiting_patients",
    metadata,
    Column("plan_id", Id, ForeignKey("plans.id"), primary_key=True),
    Column("patient", String(255), primary_key=True),
    Column("joined_at", UtcTime, nullable=False),
)

visits = Table(
    "visits",
    metadata,
    Column("id", Id, primary_key=True),
    Column("plan_id", Id, ForeignKey("plans.id"), nullable=False),
    Column("provider_group_id", Id, ForeignKey("provider_groups.id"), nullable=False),
    Column("doctor", String(255), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime, nullable=True),
    Index("ix_visits_provider_group_id_ended_at", "provider_group_id", "ended_at"),
)

queue_snapshots = Table(
    "queue_snapshots",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id"), primary_key=True),
    Column("taken_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("queues", Json, nullable=False),
)
