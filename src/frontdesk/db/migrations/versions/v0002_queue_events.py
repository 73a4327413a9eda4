"""Queue events, what follows from them, and the estimates given; doctors, waiting patients and visits move over."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.migrations.versions.v0001_first_schema import create_queues
from frontdesk.db.schema import Id, Json, UtcTime

revision = "0002"
down_revision = "0001"

# What was known becomes events, numbered `moved-…`, and what follows from them. A patient in two plans of a group waits, from
# now on, in the one joined last.
_MOVE_UP = """
INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, doctor, capacity)
SELECT 'moved-duty-' || row_number() OVER (ORDER BY provider_group_id, doctor), provider_group_id, 'doctor.on_duty',
  since_at, since_at, doctor, 1 FROM doctors_on_duty;

INSERT INTO duties (provider_group_id, doctor, on_duty, on_at, on_event, capacity)
SELECT provider_group_id, doctor, TRUE, at, event_id, 1 FROM queue_events;

INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, visit)
SELECT 'moved-wait-' || row_number() OVER (ORDER BY w.plan_id, w.patient), p.provider_group_id, 'patient.joined',
  w.joined_at, w.joined_at, w.plan_id, w.patient
FROM waiting_patients w JOIN plans p ON p.id = w.plan_id
WHERE NOT EXISTS (
  SELECT 1 FROM waiting_patients o JOIN plans q ON q.id = o.plan_id
  WHERE o.patient = w.patient AND q.provider_group_id = p.provider_group_id
  AND (o.joined_at > w.joined_at OR (o.joined_at = w.joined_at AND o.plan_id > w.plan_id)));

INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, doctor, visit)
SELECT 'moved-start-' || id, provider_group_id, 'visit.started', started_at, started_at, plan_id, doctor, 'moved-' || id
FROM visits;

INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, doctor, visit)
SELECT 'moved-end-' || id, provider_group_id, 'visit.ended', ended_at, ended_at, plan_id, doctor, 'moved-' || id
FROM visits WHERE ended_at IS NOT NULL;

INSERT INTO encounters (provider_group_id, visit, plan_id, state, joined_at, last_event_at)
SELECT provider_group_id, visit, plan_id, 'waiting', at, at FROM queue_events WHERE type = 'patient.joined';

INSERT INTO encounters (provider_group_id, visit, plan_id, state, doctor, started_at, ended_at, last_event_at)
SELECT provider_group_id, 'moved-' || id, plan_id, CASE WHEN ended_at IS NULL THEN 'in_visit' ELSE 'ended' END, doctor,
  started_at, ended_at, coalesce(ended_at, started_at) FROM visits
"""
_MOVE_DOWN = """
INSERT INTO doctors_on_duty (provider_group_id, doctor, since_at)
SELECT provider_group_id, doctor, on_at FROM duties WHERE on_duty;

INSERT INTO waiting_patients (plan_id, patient, joined_at)
SELECT plan_id, visit, joined_at FROM encounters WHERE state = 'waiting';

INSERT INTO visits (plan_id, provider_group_id, doctor, started_at, ended_at)
SELECT plan_id, provider_group_id, doctor, started_at, ended_at FROM encounters WHERE started_at IS NOT NULL
"""


def upgrade() -> None:
    _create_events_and_encounters()
    _create_duties_and_estimate_log()
    for statement in _MOVE_UP.split(";"):
        op.execute(statement)
    for table in ("visits", "waiting_patients", "doctors_on_duty"):
        op.drop_table(table)


def downgrade() -> None:
    create_queues()
    for statement in _MOVE_DOWN.split(";"):
        op.execute(statement)
    for table in ("estimate_log", "duties", "encounters", "queue_events"):
        op.drop_table(table)


def _create_events_and_encounters() -> None:
    op.create_table(
        "queue_events",
        *key(sa.String(255), "event_id"),
        *key(Id, "provider_group_id"),
        *required(sa.String(16), "type"),
        *required(UtcTime(), "at", "received_at"),
        *optional(Id, "plan_id"),
        *optional(sa.String(255), "doctor", "visit"),
        *optional(Json, "plan_ids"),
        *optional(sa.Integer(), "capacity"),
        sa.Index(None, "visit", "provider_group_id", "at"),
        sa.Index(None, "at"),
    )
    op.create_table(
        "encounters",
        *key(Id, "id"),
        *required(Id, "provider_group_id", to="provider_groups.id"),
        *required(sa.String(255), "visit"),
        *required(Id, "plan_id", to="plans.id"),
        *required(sa.String(8), "state"),
        *optional(sa.String(255), "doctor"),
        *optional(UtcTime(), "joined_at", "started_at", "ended_at"),
        *required(UtcTime(), "last_event_at"),
        sa.UniqueConstraint("visit", "provider_group_id"),
        sa.Index(None, "provider_group_id", "state", "joined_at"),
        sa.Index(None, "plan_id", "state", "ended_at"),
        sa.Index(None, "plan_id", "joined_at"),
        sa.Index(None, "last_event_at"),
    )


def _create_duties_and_estimate_log() -> None:
    op.create_table(
        "duties",
        *key(Id, "id"),
        *required(Id, "provider_group_id", to="provider_groups.id"),
        *required(sa.String(255), "doctor"),
        *required(sa.Boolean(), "on_duty"),
        *optional(UtcTime(), "on_at"),
        *optional(sa.String(255), "on_event"),
        *optional(UtcTime(), "off_at"),
        *optional(Json, "plan_ids"),
        *required(sa.Integer(), "capacity"),
        sa.UniqueConstraint("doctor", "provider_group_id"),
        sa.Index(None, "provider_group_id", "on_duty"),
    )
    op.create_table(
        "estimate_log",
        *key(Id, "id"),
        *required(Id, "plan_id", to="plans.id"),
        *required(UtcTime(), "taken_at", "expires_at"),
        *required(sa.Integer(), "estimate_seconds"),
        sa.Index(None, "plan_id", "taken_at"),
        sa.Index(None, "taken_at"),
    )
