"""The first schema: accounts, plans, queues, members and their history, invitations, audit."""

import sqlalchemy as sa
from alembic import context, op

from frontdesk.db.migrations.ddl import key, optional, refuse_changes, required
from frontdesk.db.schema import Id, IsoDate, Json, UtcTime

revision = "0001"
down_revision = None

APPEND_ONLY = ("audit_entries", "member_history")
TABLES = (
    *("accounts", "api_clients", "client_secrets", "access_tokens", "request_allowances", "failed_attempts"),
    *("provider_groups", "plans", "doctors_on_duty", "waiting_patients", "visits", "queue_snapshots"),
    *("members", "member_history", "installation", "deliverability", "suppressions", "invitations"),
    "audit_entries",
)


def upgrade() -> None:
    _create_access()
    _create_plans()
    create_queues()
    _create_members()
    _create_history_and_audit()
    _create_invitations()
    for table in APPEND_ONLY:
        refuse_changes(table)
    uniqueness = context.config.attributes["uniqueness"]
    op.execute(sa.text("INSERT INTO installation (id, uniqueness) VALUES (1, :it)").bindparams(it=uniqueness))


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_change()")


def create_queues() -> None:
    """Three tables that 0002 replaces, and makes again on its way back."""
    op.create_table(
        "doctors_on_duty",
        *key(Id, "provider_group_id", to="provider_groups.id"),
        *key(sa.String(255), "doctor"),
        *required(UtcTime(), "since_at"),
    )
    op.create_table(
        "waiting_patients",
        *key(Id, "plan_id", to="plans.id"),
        *key(sa.String(255), "patient"),
        *required(UtcTime(), "joined_at"),
    )
    op.create_table(
        "visits",
        *key(Id, "id"),
        *required(Id, "plan_id", to="plans.id"),
        *required(Id, "provider_group_id", to="provider_groups.id"),
        *required(sa.String(255), "doctor"),
        *required(UtcTime(), "started_at"),
        *optional(UtcTime(), "ended_at"),
        sa.Index(None, "provider_group_id", "ended_at"),
    )


def _create_access() -> None:
    op.create_table(
        "accounts",
        *key(Id, "id"),
        *required(sa.String(255), "name"),
        *required(UtcTime(), "created_at"),
    )
    op.create_table(
        "api_clients",
        *key(Id, "id"),
        *required(Id, "account_id", to="accounts.id"),
        *required(sa.String(64), "client_id"),
        *required(sa.String(255), "name", "scopes"),
        *optional(sa.Integer(), "requests_per_minute"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "revoked_at"),
        sa.UniqueConstraint("client_id"),
        sa.Index(None, "account_id"),
    )
    op.create_table(
        "client_secrets",
        *key(Id, "id"),
        *required(Id, "api_client_id", to="api_clients.id"),
        *required(sa.LargeBinary(32), "secret_hash"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "revoked_at"),
        sa.Index(None, "api_client_id"),
    )
    op.create_table(
        "access_tokens",
        *key(sa.LargeBinary(32), "token_hash"),
        *required(Id, "api_client_id", to="api_clients.id"),
        *required(sa.String(255), "scopes"),
        *required(UtcTime(), "created_at", "expires_at"),
        *required(sa.Boolean(), "revoked"),
        sa.Index(None, "api_client_id"),
        sa.Index(None, "expires_at"),
    )
    op.create_table(
        "request_allowances",
        *key(Id, "api_client_id", to="api_clients.id"),
        *key(Id, "minute"),
        *required(sa.Integer(), "taken"),
    )
    op.create_table(
        "failed_attempts",
        *key(Id, "id"),
        *required(sa.LargeBinary(32), "subject_hash"),
        *required(UtcTime(), "failed_at"),
        sa.Index(None, "subject_hash", "failed_at"),
    )


def _create_plans() -> None:
    op.create_table(
        "provider_groups",
        *key(Id, "id"),
        *optional(sa.String(255), "external_id"),
        *required(sa.String(255), "name"),
        *required(UtcTime(), "created_at"),
        sa.UniqueConstraint("external_id"),
    )
    op.create_table(
        "plans",
        *key(Id, "id"),
        *required(Id, "account_id", to="accounts.id"),
        *required(Id, "provider_group_id", to="provider_groups.id"),
        *required(sa.String(255), "external_id", "name"),
        *optional(sa.Text(), "description"),
        *required(sa.Boolean(), "accepting_patients"),
        *required(sa.Integer(), "version"),
        *required(UtcTime(), "created_at"),
        sa.UniqueConstraint("account_id", "external_id"),
        sa.UniqueConstraint("account_id", "id"),
        sa.Index(None, "provider_group_id"),
    )


def _create_members() -> None:
    op.create_table(
        "queue_snapshots",
        *key(Id, "account_id", to="accounts.id"),
        *required(UtcTime(), "taken_at", "expires_at"),
        *required(Json, "queues"),
    )
    op.create_table(
        "members",
        *key(Id, "id"),
        *required(Id, "account_id", "plan_id", "uniqueness_scope"),
        *required(sa.String(255), "external_id", "member_id"),
        *required(sa.String(100), "first_name", "last_name"),
        *optional(sa.String(100), "middle_name"),
        *required(IsoDate(), "dob"),
        *required(sa.String(7), "gender"),
        *optional(sa.String(254), "email"),
        *optional(sa.String(508), "email_folded"),
        *optional(sa.String(10), "phone"),
        *required(sa.String(10), "zipcode"),
        *optional(sa.String(255), "city", "county", "state"),
        *required(IsoDate(), "effective_date"),
        *optional(IsoDate(), "expiry_date"),
        *optional(sa.String(5), "medical_eligibility", "medical_enrollment"),
        *optional(
            sa.String(255),
            "medical_plan_description",
            "payor_name",
            "payor_plan_name",
            "relationship_code",
            "relationship_code_hipaa",
        ),
        *optional(sa.String(9), "subscriber_relationship"),
        *required(Json, "metadata"),
        *required(UtcTime(), "created_at", "updated_at"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        sa.UniqueConstraint("email_folded", "uniqueness_scope"),
        sa.UniqueConstraint("external_id", "uniqueness_scope"),
        sa.UniqueConstraint("member_id", "uniqueness_scope"),
        postgresql_with={"fillfactor": 80},
    )


def _create_history_and_audit() -> None:
    op.create_table(
        "member_history",
        *key(Id, "id"),
        *required(Id, "member_id", to="members.id"),
        *required(sa.String(9), "outcome"),
        *required(Id, "plan_id"),
        *required(Json, "changes"),
        *required(sa.String(64), "client", "request_id"),
        *required(UtcTime(), "changed_at"),
        sa.Index(None, "member_id", "id"),
    )
    op.create_table(
        "installation",
        *key(sa.Integer(), "id"),
        *required(sa.String(7), "uniqueness"),
    )
    op.create_table(
        "audit_entries",
        *key(Id, "id"),
        *required(UtcTime(), "at"),
        *optional(Id, "account_id"),
        *required(sa.String(64), "actor"),
        *required(sa.String(40), "action"),
        *optional(Id, "subject_id"),
        *required(sa.String(64), "request_id"),
        *optional(Json, "detail"),
    )


def _create_invitations() -> None:
    op.create_table(
        "deliverability",
        *key(Id, "account_id", to="accounts.id"),
        *required(sa.Boolean(), "enabled"),
        *required(sa.Integer(), "batch_size", "batch_interval_seconds", "hourly_limit"),
        *optional(sa.String(255), "sender_name"),
        *optional(sa.String(254), "sender_address"),
        *optional(sa.String(2000), "registration_url"),
    )
    op.create_table(
        "suppressions",
        *key(sa.String(508), "address_folded"),
        *required(sa.String(32), "reason"),
        *required(UtcTime(), "created_at"),
    )
    op.create_table(
        "invitations",
        *key(Id, "id"),
        *required(Id, "account_id", "plan_id"),
        *required(Id, "member_id", to="members.id"),
        *required(sa.String(16), "kind"),
        *required(sa.String(9), "delivery", "state"),
        *required(sa.String(254), "address"),
        *required(UtcTime(), "created_at", "updated_at"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        sa.UniqueConstraint("member_id", "kind"),
        sa.Index(None, "state", "account_id", "id"),
    )
