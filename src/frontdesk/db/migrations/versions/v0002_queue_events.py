"""Queue events, what follows from them, and the estimates given; doctors, waiting patients and visits move over."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.schema import Id, Json, UtcTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _create_events()
    _create_encounters()
    _create_duties()
    _create_estimate_log()
    _move_up()
    for table in ("visits", "waiting_patients", "doctors_on_duty"):
        op.drop_table(table)


def downgrade() -> None:
    _create_old()
    _move_down()
    for table in ("estimate_log", "duties", "encounters", "queue_events"):
        op.drop_table(table)


def _create_events() -> None:
    op.create_table(
        "queue_events",
        sa.Column("event_id", sa.String(length=255), nullable=False),
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("received_at", UtcTime(), nullable=False),
        sa.Column("plan_id", Id, nullable=True),
        sa.Column("doctor", sa.String(length=255), nullable=True),
        sa.Column("visit", sa.String(length=255), nullable=True),
        sa.Column("plan_ids", Json, nullable=True),
        sa.Column("capacity", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("event_id", "provider_group_id", name=op.f("pk_queue_events")),
    )
    op.create_index(
        "ix_queue_events_visit_provider_group_id_at", "queue_events", ["visit", "provider_group_id", "at"]
    )
    op.create_index("ix_queue_events_at", "queue_events", ["at"])


def _create_encounters() -> None:
    op.create_table(
        "encounters",
        sa.Column("id", Id, nullable=False),
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("visit", sa.String(length=255), nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("doctor", sa.String(length=255), nullable=True),
        sa.Column("joined_at", UtcTime(), nullable=True),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.Column("last_event_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name=op.f("fk_encounters_plan_id")),
        sa.ForeignKeyConstraint(
            ["provider_group_id"], ["provider_groups.id"], name=op.f("fk_encounters_provider_group_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_encounters")),
        sa.UniqueConstraint("visit", "provider_group_id", name=op.f("uq_encounters_visit_provider_group_id")),
    )
    for columns in (
        ["provider_group_id", "state", "joined_at"],
        ["plan_id", "state", "ended_at"],
        ["plan_id", "joined_at"],
        ["last_event_at"],
    ):
        op.create_index(f"ix_encounters_{'_'.join(columns)}", "encounters", columns)


def _create_duties() -> None:
    op.create_table(
        "duties",
        sa.Column("id", Id, nullable=False),
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("doctor", sa.String(length=255), nullable=False),
        sa.Column("on_duty", sa.Boolean(), nullable=False),
        sa.Column("on_at", UtcTime(), nullable=True),
        sa.Column("on_event", sa.String(length=255), nullable=True),
        sa.Column("off_at", UtcTime(), nullable=True),
        sa.Column("plan_ids", Json, nullable=True),
        sa.Column("capacity", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_group_id"], ["provider_groups.id"], name=op.f("fk_duties_provider_group_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_duties")),
        sa.UniqueConstraint("doctor", "provider_group_id", name=op.f("uq_duties_doctor_provider_group_id")),
    )
    op.create_index("ix_duties_provider_group_id_on_duty", "duties", ["provider_group_id", "on_duty"])


def _create_estimate_log() -> None:
    op.create_table(
        "estimate_log",
        sa.Column("id", Id, nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("taken_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("estimate_seconds", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name=op.f("fk_estimate_log_plan_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_estimate_log")),
    )
    op.create_index("ix_estimate_log_plan_id_taken_at", "estimate_log", ["plan_id", "taken_at"])
    op.create_index("ix_estimate_log_taken_at", "estimate_log", ["taken_at"])


def _move_up() -> None:
    """What was known becomes events, numbered `moved-…`, and what follows from them."""
    op.execute(
        "INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, doctor, capacity) "
        "SELECT 'moved-duty-' || row_number() OVER (ORDER BY provider_group_id, doctor), provider_group_id, "
        "'doctor.on_duty', since_at, since_at, doctor, 1 FROM doctors_on_duty"
    )
    op.execute(
        "INSERT INTO duties (provider_group_id, doctor, on_duty, on_at, on_event, capacity) "
        "SELECT provider_group_id, doctor, TRUE, at, event_id, 1 FROM queue_events"
    )
    # Who waited in two plans of a group waits, from now on, in the one joined last.
    op.execute(
        "INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, visit) "
        "SELECT 'moved-wait-' || row_number() OVER (ORDER BY w.plan_id, w.patient), p.provider_group_id, "
        "'patient.joined', w.joined_at, w.joined_at, w.plan_id, w.patient "
        "FROM waiting_patients w JOIN plans p ON p.id = w.plan_id "
        "WHERE NOT EXISTS (SELECT 1 FROM waiting_patients o JOIN plans q ON q.id = o.plan_id "
        "WHERE o.patient = w.patient AND q.provider_group_id = p.provider_group_id "
        "AND (o.joined_at > w.joined_at OR (o.joined_at = w.joined_at AND o.plan_id > w.plan_id)))"
    )
    op.execute(
        "INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, doctor, visit) "
        "SELECT 'moved-start-' || id, provider_group_id, 'visit.started', started_at, started_at, plan_id, doctor, "
        "'moved-' || id FROM visits"
    )
    op.execute(
        "INSERT INTO queue_events (event_id, provider_group_id, type, at, received_at, plan_id, doctor, visit) "
        "SELECT 'moved-end-' || id, provider_group_id, 'visit.ended', ended_at, ended_at, plan_id, doctor, "
        "'moved-' || id FROM visits WHERE ended_at IS NOT NULL"
    )
    op.execute(
        "INSERT INTO encounters (provider_group_id, visit, plan_id, state, joined_at, last_event_at) "
        "SELECT provider_group_id, visit, plan_id, 'waiting', at, at FROM queue_events WHERE type = 'patient.joined'"
    )
    op.execute(
        "INSERT INTO encounters (provider_group_id, visit, plan_id, state, doctor, started_at, ended_at, last_event_at) "
        "SELECT provider_group_id, 'moved-' || id, plan_id, "
        "CASE WHEN ended_at IS NULL THEN 'in_visit' ELSE 'ended' END, doctor, started_at, ended_at, "
        "coalesce(ended_at, started_at) FROM visits"
    )


def _create_old() -> None:
    op.create_table(
        "doctors_on_duty",
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("doctor", sa.String(length=255), nullable=False),
        sa.Column("since_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_group_id"], ["provider_groups.id"], name=op.f("fk_doctors_on_duty_provider_group_id")
        ),
        sa.PrimaryKeyConstraint("provider_group_id", "doctor", name=op.f("pk_doctors_on_duty")),
    )
    op.create_table(
        "waiting_patients",
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("patient", sa.String(length=255), nullable=False),
        sa.Column("joined_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name=op.f("fk_waiting_patients_plan_id")),
        sa.PrimaryKeyConstraint("plan_id", "patient", name=op.f("pk_waiting_patients")),
    )
    op.create_table(
        "visits",
        sa.Column("id", Id, nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("doctor", sa.String(length=255), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("ended_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name=op.f("fk_visits_plan_id")),
        sa.ForeignKeyConstraint(
            ["provider_group_id"], ["provider_groups.id"], name=op.f("fk_visits_provider_group_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_visits")),
    )
    op.create_index("ix_visits_provider_group_id_ended_at", "visits", ["provider_group_id", "ended_at"])


def _move_down() -> None:
    op.execute(
        "INSERT INTO doctors_on_duty (provider_group_id, doctor, since_at) "
        "SELECT provider_group_id, doctor, on_at FROM duties WHERE on_duty"
    )
    op.execute(
        "INSERT INTO waiting_patients (plan_id, patient, joined_at) "
        "SELECT plan_id, visit, joined_at FROM encounters WHERE state = 'waiting'"
    )
    op.execute(
        "INSERT INTO visits (plan_id, provider_group_id, doctor, started_at, ended_at) "
        "SELECT plan_id, provider_group_id, doctor, started_at, ended_at FROM encounters WHERE started_at IS NOT NULL"
    )
