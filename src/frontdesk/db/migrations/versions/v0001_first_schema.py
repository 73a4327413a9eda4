"""The first schema: accounts, plans, queues, members and their history, invitations, audit."""

import sqlalchemy as sa
from alembic import context, op

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime

revision = "0001"
down_revision = None

APPEND_ONLY = ("audit_entries", "member_history")
TABLES = (
    "accounts",
    "api_clients",
    "client_secrets",
    "access_tokens",
    "request_allowances",
    "failed_attempts",
    "provider_groups",
    "plans",
    "doctors_on_duty",
    "waiting_patients",
    "visits",
    "queue_snapshots",
    "members",
    "member_history",
    "installation",
    "deliverability",
    "suppressions",
    "invitations",
    "audit_entries",
)


def upgrade() -> None:
    _create_access()
    _create_tokens()
    _create_plans()
    _create_queues()
    _create_members()
    _create_history()
    _create_invitations()
    _create_audit()
    for table in APPEND_ONLY:
        _refuse_changes(table)
    uniqueness = context.config.attributes["uniqueness"]
    op.execute(sa.text("INSERT INTO installation (id, uniqueness) VALUES (1, :it)").bindparams(it=uniqueness))


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_change()")


def _refuse_changes(table: str) -> None:
    """Rows of the table can be added and never changed or deleted, whatever the program does."""
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )


def _create_access() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
    )
    op.create_table(
        "api_clients",
        sa.Column("id", Id, nullable=False),
        sa.Column("account_id", Id, nullable=False),
        sa.Column("client_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("scopes", sa.String(length=255), nullable=False),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_api_clients_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_clients")),
        sa.UniqueConstraint("client_id", name=op.f("uq_api_clients_client_id")),
    )
    op.create_index(op.f("ix_api_clients_account_id"), "api_clients", ["account_id"], unique=False)
    op.create_table(
        "client_secrets",
        sa.Column("id", Id, nullable=False),
        sa.Column("api_client_id", Id, nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["api_client_id"], ["api_clients.id"], name=op.f("fk_client_secrets_api_client_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_client_secrets")),
    )
    op.create_index(
        op.f("ix_client_secrets_api_client_id"), "client_secrets", ["api_client_id"], unique=False
    )


def _create_tokens() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("token_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("api_client_id", Id, nullable=False),
        sa.Column("scopes", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["api_client_id"], ["api_clients.id"], name=op.f("fk_access_tokens_api_client_id")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_access_tokens")),
    )
    op.create_index(op.f("ix_access_tokens_api_client_id"), "access_tokens", ["api_client_id"], unique=False)
    op.create_index("ix_access_tokens_expires_at", "access_tokens", ["expires_at"], unique=False)
    op.create_table(
        "request_allowances",
        sa.Column("api_client_id", Id, nullable=False),
        sa.Column("minute", Id, nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["api_client_id"], ["api_clients.id"], name=op.f("fk_request_allowances_api_client_id")
        ),
        sa.PrimaryKeyConstraint("api_client_id", "minute", name=op.f("pk_request_allowances")),
    )
    op.create_table(
        "failed_attempts",
        sa.Column("id", Id, nullable=False),
        sa.Column("subject_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("failed_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_failed_attempts")),
    )
    op.create_index(
        "ix_failed_attempts_subject_hash_failed_at",
        "failed_attempts",
        ["subject_hash", "failed_at"],
        unique=False,
    )


def _create_plans() -> None:
    op.create_table(
        "provider_groups",
        sa.Column("id", Id, nullable=False),
        sa.Column("external_id", sa.String(length=255), nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provider_groups")),
        sa.UniqueConstraint("external_id", name=op.f("uq_provider_groups_external_id")),
    )
    op.create_table(
        "plans",
        sa.Column("id", Id, nullable=False),
        sa.Column("account_id", Id, nullable=False),
        sa.Column("provider_group_id", Id, nullable=False),
        sa.Column("external_id", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("accepting_patients", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_plans_account_id")),
        sa.ForeignKeyConstraint(
            ["provider_group_id"], ["provider_groups.id"], name=op.f("fk_plans_provider_group_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
        sa.UniqueConstraint("account_id", "external_id", name=op.f("uq_plans_account_id_external_id")),
        sa.UniqueConstraint("account_id", "id", name=op.f("uq_plans_account_id_id")),
    )
    op.create_index(op.f("ix_plans_provider_group_id"), "plans", ["provider_group_id"], unique=False)


def _create_queues() -> None:
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
    op.create_index(
        "ix_visits_provider_group_id_ended_at", "visits", ["provider_group_id", "ended_at"], unique=False
    )
    op.create_table(
        "queue_snapshots",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("taken_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("queues", Json, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_queue_snapshots_account_id")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_queue_snapshots")),
    )


def _create_members() -> None:
    op.create_table(
        "members",
        sa.Column("id", Id, nullable=False),
        sa.Column("account_id", Id, nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("uniqueness_scope", Id, nullable=False),
        sa.Column("external_id", sa.String(length=255), nullable=False),
        sa.Column("member_id", sa.String(length=255), nullable=False),
        sa.Column("first_name", sa.String(length=100), nullable=False),
        sa.Column("last_name", sa.String(length=100), nullable=False),
        sa.Column("middle_name", sa.String(length=100), nullable=True),
        sa.Column("dob", IsoDate(), nullable=False),
        sa.Column("gender", sa.String(length=7), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("email_folded", sa.String(length=508), nullable=True),
        sa.Column("phone", sa.String(length=10), nullable=True),
        sa.Column("zipcode", sa.String(length=10), nullable=False),
        sa.Column("city", sa.String(length=255), nullable=True),
        sa.Column("county", sa.String(length=255), nullable=True),
        sa.Column("state", sa.String(length=255), nullable=True),
        sa.Column("effective_date", IsoDate(), nullable=False),
        sa.Column("expiry_date", IsoDate(), nullable=True),
        sa.Column("medical_eligibility", sa.String(length=5), nullable=True),
        sa.Column("medical_enrollment", sa.String(length=5), nullable=True),
        sa.Column("medical_plan_description", sa.String(length=255), nullable=True),
        sa.Column("payor_name", sa.String(length=255), nullable=True),
        sa.Column("payor_plan_name", sa.String(length=255), nullable=True),
        sa.Column("relationship_code", sa.String(length=255), nullable=True),
        sa.Column("relationship_code_hipaa", sa.String(length=255), nullable=True),
        sa.Column("subscriber_relationship", sa.String(length=9), nullable=True),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "plan_id"],
            ["plans.account_id", "plans.id"],
            name=op.f("fk_members_account_id_plan_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_members")),
        sa.UniqueConstraint(
            "email_folded", "uniqueness_scope", name=op.f("uq_members_email_folded_uniqueness_scope")
        ),
        sa.UniqueConstraint(
            "external_id", "uniqueness_scope", name=op.f("uq_members_external_id_uniqueness_scope")
        ),
        sa.UniqueConstraint(
            "member_id", "uniqueness_scope", name=op.f("uq_members_member_id_uniqueness_scope")
        ),
        postgresql_with={"fillfactor": 80},
    )


def _create_history() -> None:
    op.create_table(
        "member_history",
        sa.Column("id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("outcome", sa.String(length=9), nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("changes", Json, nullable=False),
        sa.Column("client", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name=op.f("fk_member_history_member_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member_history")),
    )
    op.create_index("ix_member_history_member_id_id", "member_history", ["member_id", "id"], unique=False)
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uniqueness", sa.String(length=7), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
    )


def _create_invitations() -> None:
    op.create_table(
        "deliverability",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("batch_interval_seconds", sa.Integer(), nullable=False),
        sa.Column("hourly_limit", sa.Integer(), nullable=False),
        sa.Column("sender_name", sa.String(length=255), nullable=True),
        sa.Column("sender_address", sa.String(length=254), nullable=True),
        sa.Column("registration_url", sa.String(length=2000), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_deliverability_account_id")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_deliverability")),
    )
    op.create_table(
        "suppressions",
        sa.Column("address_folded", sa.String(length=508), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("address_folded", name=op.f("pk_suppressions")),
    )
    op.create_table(
        "invitations",
        sa.Column("id", Id, nullable=False),
        sa.Column("account_id", Id, nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("delivery", sa.String(length=9), nullable=False),
        sa.Column("state", sa.String(length=9), nullable=False),
        sa.Column("address", sa.String(length=254), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id", "plan_id"],
            ["plans.account_id", "plans.id"],
            name=op.f("fk_invitations_account_id_plan_id"),
        ),
        sa.ForeignKeyConstraint(["member_id"], ["members.id"], name=op.f("fk_invitations_member_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("member_id", "kind", name=op.f("uq_invitations_member_id_kind")),
    )
    op.create_index(
        "ix_invitations_state_account_id_id", "invitations", ["state", "account_id", "id"], unique=False
    )


def _create_audit() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", Id, nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("account_id", Id, nullable=True),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("subject_id", Id, nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("detail", Json, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
