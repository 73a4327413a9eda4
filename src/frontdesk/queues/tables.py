"""The tables of the encounter queue: events as received, encounters, duties, snapshots, given
estimates.

Doctors and visits are opaque references; these tables hold no names of people. `encounters` and
`duties` can be rebuilt from `queue_events`.
"""

import sqlalchemy as sa

from frontdesk.db.schema import Id, Json, UtcTime, key, metadata, optional, required

_NAMES_DOCTOR = sa.text("doctor IS NOT NULL")

# No foreign keys here: they cost a third of the time of a batch, `ingest` has just looked the
# references up, and what follows from the events has them.
queue_events = sa.Table(
    "queue_events",
    metadata,
    *required(sa.String(255), "event_id"),
    *required(Id, "provider_group_id"),
    *required(sa.String(16), "type"),
    *required(UtcTime(), "at", "received_at"),
    *optional(Id, "plan_id"),
    *optional(sa.String(255), "doctor", "visit"),  # without a visit the event is a doctor's
    *optional(Json, "plan_ids"),
    *optional(sa.Integer(), "capacity", "priority"),
    *optional(sa.String(40), "patient_class"),
    *optional(UtcTime(), "not_before", "until"),
    sa.PrimaryKeyConstraint("event_id", "provider_group_id"),
    sa.Index("ix_queue_events_visit_provider_group_id_at", "visit", "provider_group_id", "at"),
    sa.Index("ix_queue_events_at", "at"),
    sa.Index(
        "ix_queue_events_doctor_provider_group_id_at",
        "doctor",
        "provider_group_id",
        "at",
        sqlite_where=_NAMES_DOCTOR,
        postgresql_where=_NAMES_DOCTOR,
    ),
)

encounters = sa.Table(
    "encounters",
    metadata,
    *key(Id, "id"),
    *required(Id, "provider_group_id", to="provider_groups.id"),
    *required(sa.String(255), "visit"),
    *required(Id, "plan_id", to="plans.id"),
    *required(sa.String(8), "state"),
    *optional(sa.String(255), "doctor"),
    *optional(UtcTime(), "joined_at", "started_at", "ended_at"),
    *required(UtcTime(), "last_event_at"),
    *optional(sa.String(40), "patient_class"),
    *required(sa.Integer(), "priority", server_default="0"),
    sa.UniqueConstraint("visit", "provider_group_id"),
    sa.Index(
        "ix_encounters_provider_group_id_state_joined_at", "provider_group_id", "state", "joined_at"
    ),
    sa.Index("ix_encounters_plan_id_state_ended_at", "plan_id", "state", "ended_at"),
    sa.Index("ix_encounters_last_event_at", "last_event_at"),
)

duties = sa.Table(
    "duties",
    metadata,
    *key(Id, "id"),
    *required(Id, "provider_group_id", to="provider_groups.id"),
    *required(sa.String(255), "doctor"),
    *required(sa.Boolean(), "on_duty"),
    *optional(UtcTime(), "on_at", "off_at", "paused_at", "paused_until"),
    *optional(sa.String(255), "on_event"),
    *optional(Json, "plan_ids"),  # null: all plans of the group
    *required(sa.Integer(), "capacity"),
    sa.UniqueConstraint("doctor", "provider_group_id"),
    sa.Index("ix_duties_provider_group_id_on_duty", "provider_group_id", "on_duty"),
)

queue_snapshots = sa.Table(
    "queue_snapshots",
    metadata,
    *key(Id, "account_id", to="accounts.id"),
    *required(UtcTime(), "taken_at", "expires_at"),
    *required(Json, "queues"),
    *optional(Json, "records"),  # what the estimates have taught
)

# Given estimates, for comparison with the waits that followed (model.measure_accuracy).
estimate_log = sa.Table(
    "estimate_log",
    metadata,
    *key(Id, "id"),
    *required(Id, "plan_id", to="plans.id"),
    *required(UtcTime(), "taken_at", "expires_at"),
    *required(sa.Integer(), "estimate_seconds"),
    *optional(
        sa.Integer(), "low_seconds", "high_seconds"
    ),  # of the interval; null without a doctor on duty
    *optional(Json, "basis"),  # what the wait is compared with
    *optional(Json, "classes"),  # the estimates for newcomers of each class
    sa.Index("ix_estimate_log_plan_id_taken_at", "plan_id", "taken_at"),
    sa.Index("ix_estimate_log_taken_at", "taken_at"),
)
