"""The first schema. Tables are never changed here: what comes later is a migration of its own."""

import secrets

import sqlalchemy as sa
from alembic import context, op

from frontdesk.db.database_identity import database_identity, set_counter
from frontdesk.db.migrations.ddl import drop_functions, guard, indexes, partial_index
from frontdesk.db.schema import Id, IsoDate, Json, UtcTime, key, optional, required

revision = "0001"
down_revision = None

ROW_DIGEST_KEY_BYTES = 32


def upgrade() -> None:
    _create_access()
    _create_plans()
    _create_queues()
    _create_estimates()
    _create_members()
    _create_history()
    _create_files()
    _create_file_contents()
    _create_reports()
    _create_invitations()
    _create_mails()
    _create_delivery()
    _create_privacy()
    guard()
    _insert_first_rows()


def downgrade() -> None:
    """Drop everything."""
    tables = sa.MetaData()
    tables.reflect(op.get_bind())
    for table in reversed(tables.sorted_tables):
        if table.name != "alembic_version":
            op.drop_table(table.name)
    drop_functions()


def _insert_first_rows() -> None:
    """The installation's rule and its key, and the home of deliveries: by that a restored backup is recognised."""
    connection = op.get_bind()
    values = {"rule": context.config.attributes["uniqueness"], "key": secrets.token_hex(ROW_DIGEST_KEY_BYTES)}
    add = "INSERT INTO installation (id, uniqueness, row_digest_key) VALUES (1, :rule, :key)"
    connection.execute(sa.text(add), values)
    home = {"home": database_identity(connection, "delivery_home")}
    connection.execute(sa.text("INSERT INTO delivery_home (id, home, offers) VALUES (1, :home, 0)"), home)
    set_counter(connection, 0)


def _create_access() -> None:
    op.create_table(
        "accounts",
        *key(Id, "id"),
        *required(sa.String(255), "name"),
        *required(UtcTime(), "created_at"),
        *required(sa.String(16), "state"),
    )
    op.create_table(
        "api_clients",
        *key(Id, "id"),
        *optional(Id, "account_id", to="accounts.id"),
        *required(sa.String(64), "client_id"),
        *required(sa.String(255), "name", "scopes"),
        *optional(sa.Integer(), "requests_per_minute"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "revoked_at"),
        sa.UniqueConstraint("client_id"),
        *indexes("account_id"),
    )
    op.create_table(
        "client_secrets",
        *key(Id, "id"),
        *required(Id, "api_client_id", to="api_clients.id"),
        *required(sa.LargeBinary(32), "secret_hash"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "revoked_at", "expires_at"),
        *optional(IsoDate(), "last_used_on"),
        *indexes("api_client_id"),
    )
    op.create_table(
        "access_tokens",
        *key(sa.LargeBinary(32), "token_hash"),
        *required(Id, "api_client_id", to="api_clients.id"),
        *required(sa.String(255), "scopes"),
        *required(UtcTime(), "created_at", "expires_at"),
        *indexes("api_client_id expires_at", "expires_at"),
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
        *indexes("subject_hash failed_at"),
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
        *indexes("provider_group_id"),
    )


def _create_queues() -> None:
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
        *indexes("at", "visit provider_group_id at"),
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
        *indexes(
            "last_event_at",
            "plan_id joined_at",
            "plan_id state ended_at",
            "provider_group_id state joined_at",
        ),
    )
    op.create_table(
        "duties",
        *key(Id, "id"),
        *required(Id, "provider_group_id", to="provider_groups.id"),
        *required(sa.String(255), "doctor"),
        *required(sa.Boolean(), "on_duty"),
        *optional(UtcTime(), "on_at", "off_at"),
        *optional(sa.String(255), "on_event"),
        *optional(Json, "plan_ids"),
        *required(sa.Integer(), "capacity"),
        sa.UniqueConstraint("doctor", "provider_group_id"),
        *indexes("provider_group_id on_duty"),
    )


def _create_estimates() -> None:
    op.create_table(
        "queue_snapshots",
        *key(Id, "account_id", to="accounts.id"),
        *required(UtcTime(), "taken_at", "expires_at"),
        *required(Json, "queues"),
        *optional(Json, "records"),
    )
    op.create_table(
        "estimate_log",
        *key(Id, "id"),
        *required(Id, "plan_id", to="plans.id"),
        *required(UtcTime(), "taken_at", "expires_at"),
        *required(sa.Integer(), "estimate_seconds"),
        *optional(sa.Integer(), "low_seconds", "high_seconds"),
        *indexes("plan_id taken_at", "taken_at"),
    )


def _create_members() -> None:
    op.create_table(
        "installation",
        *key(sa.Integer(), "id"),
        *required(sa.String(7), "uniqueness"),
        *required(sa.String(64), "row_digest_key"),
        *optional(sa.LargeBinary(), "written"),
    )
    op.create_table(
        "members",
        *key(Id, "id"),
        *required(Id, "account_id", "plan_id", "uniqueness_scope"),
        *required(sa.String(255), "external_id", "member_id"),
        *required(sa.String(100), "first_name", "last_name"),
        *optional(sa.String(100), "middle_name"),
        *required(IsoDate(), "dob", "effective_date"),
        *required(sa.String(7), "gender"),
        *optional(sa.String(254), "email"),
        *optional(sa.String(10), "phone"),
        *required(sa.String(10), "zipcode"),
        *optional(sa.String(255), "city", "county", "state", "medical_plan_description", "payor_name"),
        *optional(sa.String(255), "payor_plan_name", "relationship_code", "relationship_code_hipaa"),
        *optional(IsoDate(), "expiry_date", "expiry_before_absence"),
        *optional(sa.String(5), "medical_eligibility", "medical_enrollment"),
        *optional(sa.String(9), "subscriber_relationship"),
        *required(Json, "metadata"),
        *optional(sa.String(508), "email_folded"),
        *optional(sa.String(32), "row_digest", "family_digest", "person_digest"),
        *optional(Id, "merged_into"),
        *required(UtcTime(), "created_at", "updated_at"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        sa.UniqueConstraint("email_folded", "uniqueness_scope"),
        sa.UniqueConstraint("external_id", "uniqueness_scope"),
        sa.UniqueConstraint("member_id", "uniqueness_scope"),
        *indexes("plan_id id"),
        *(
            partial_index(f"ix_members_{column}", column, where=f"{column} IS NOT NULL")
            for column in ("family_digest", "person_digest", "merged_into")
        ),
        postgresql_with={"fillfactor": 80},
    )


def _create_history() -> None:
    op.create_table(
        "member_history",
        *key(Id, "id"),
        *required(Id, "member_id", to="members.id"),
        *required(sa.String(9), "outcome"),
        *required(Id, "plan_id"),
        *required(Json, "changes"),
        *required(sa.String(64), "client", "request_id"),
        *optional(Id, "file_id"),
        *required(UtcTime(), "changed_at"),
        *indexes("member_id id"),
    )
    op.create_table(
        "distinct_members",
        *key(Id, "lower_id", "higher_id", to="members.id"),
        *required(Id, "account_id"),
        *indexes("higher_id"),
    )
    op.create_table(
        "uniqueness_probes",
        *key(sa.String(64), "client"),
        *required(Id, "account_id"),
        *required(sa.String(10), "day"),
        *required(sa.Integer(), "taken"),
    )
    op.create_table(
        "audit_entries",
        *key(Id, "id"),
        *required(UtcTime(), "at"),
        *optional(Id, "account_id", "subject_id"),
        *required(sa.String(64), "actor", "request_id"),
        *required(sa.String(40), "action"),
        *optional(Json, "detail"),
        *indexes("subject_id"),
    )


def _create_files() -> None:
    op.create_table(
        "eligibility_files",
        *key(Id, "id"),
        *required(Id, "account_id", "plan_id", "size_bytes"),
        *optional(Id, "undoes_id", to="eligibility_files.id"),
        *optional(sa.String(8), "format"),
        *optional(sa.String(32), "encoding"),
        *optional(sa.String(1), "delimiter"),
        *optional(sa.String(255), "file_name", "idempotency_key"),
        *optional(Json, "mapping", "problem"),
        *optional(sa.String(64), "mapping_name", "sha256", "idempotency_digest"),
        *required(sa.String(7), "mode"),
        *optional(sa.String(7), "asked_mode"),
        *required(sa.Boolean(), "dry_run", "approved"),
        *required(sa.String(9), "state"),
        *required(sa.String(5), "step"),
        *optional(IsoDate(), "file_date"),
        *optional(sa.Integer(), "rows_total", "members_before", "members_missing"),
        *required(sa.Integer(), "rows_done", "chunks_done", "epoch"),
        *required(Json, "counts", "ignored"),
        sa.Column("codes", Json, nullable=False, server_default="{}"),
        *required(sa.String(64), "client", "request_id"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "started_at", "finished_at", "lease_until"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        *indexes(
            "account_id id",
            "account_id sha256 id",
            "account_id state id",
            "plan_id id",
            "state id",
            "undoes_id",
        ),
        sa.Index(
            "uq_eligibility_files_account_id_idempotency_key", "account_id", "idempotency_key", unique=True
        ),
        partial_index(
            "uq_eligibility_files_account_id", "account_id", where="state = 'running'", unique=True
        ),
    )


def _create_file_contents() -> None:
    op.create_table(
        "eligibility_mappings",
        *key(Id, "account_id", to="accounts.id"),
        *key(sa.String(64), "name"),
        *required(Json, "mapping"),
        *required(sa.Boolean(), "is_default"),
        *required(UtcTime(), "changed_at"),
        partial_index("uq_eligibility_mappings_account_id", "account_id", where="is_default", unique=True),
    )
    op.create_table(
        "file_settings",
        *key(Id, "account_id", to="accounts.id"),
        *required(sa.Boolean(), "reopen_absent"),
        sa.Column("second_approver", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_table("file_turns", *key(Id, "account_id", to="accounts.id"), *required(UtcTime(), "taken_at"))
    op.create_table(
        "file_parts",
        *key(Id, "file_id", to="eligibility_files.id"),
        *key(sa.Integer(), "number"),
        *required(sa.LargeBinary(), "content"),
    )


def _create_reports() -> None:
    op.create_table(
        "file_rows",
        *key(Id, "file_id"),
        *key(sa.Integer(), "chunk", "position"),
        *optional(sa.Integer(), "place"),
        *optional(Id, "member_id", "left_plan_id"),
        *optional(sa.String(255), "external_id"),
        *required(sa.String(16), "outcome"),
        *optional(Json, "changed", "faults", "warnings"),
        *indexes("member_id"),
        partial_index(
            "ix_file_rows_external_id", "external_id", where="member_id IS NULL AND external_id IS NOT NULL"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "file_unchanged",
        *key(Id, "file_id"),
        *key(sa.Integer(), "chunk"),
        *required(sa.LargeBinary(), "content"),
    )


def _create_invitations() -> None:
    op.create_table(
        "suppressions",
        *key(sa.String(508), "address_folded"),
        *required(sa.String(32), "reason"),
        *required(UtcTime(), "created_at"),
        *optional(Id, "account_id"),
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
        *optional(UtcTime(), "due_at", "offered_at", "settled_at"),
        *required(sa.Integer(), "epoch", "attempts", "losses", server_default="0"),
        *optional(sa.String(255), "message_id"),
        *optional(sa.String(32), "reason"),
        *optional(sa.Integer(), "relay_code"),
        *optional(sa.String(508), "address_folded"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        sa.UniqueConstraint("member_id", "kind"),
        sa.UniqueConstraint("message_id"),
        *indexes("state account_id id"),
        partial_index(
            "ix_invitations_in_hand",
            "account_id",
            where="state IN ('claimed', 'offered') AND delivery = 'batched'",
        ),
        partial_index(
            "ix_invitations_lapsing",
            "due_at",
            where="state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL",
        ),
        partial_index("ix_invitations_mailed", "address_folded", where="offered_at IS NOT NULL"),
        partial_index(
            "ix_invitations_next", "delivery account_id plan_id due_at id", where="state = 'pending'"
        ),
    )


def _create_mails() -> None:
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
        "invitation_links",
        *key(sa.String(64), "registration_hash"),
        *required(sa.String(64), "unsubscribe_hash"),
        *required(sa.String(255), "message_id"),
        *required(Id, "invitation_id", to="invitations.id"),
        *required(UtcTime(), "created_at"),
        sa.UniqueConstraint("unsubscribe_hash"),
        *indexes("invitation_id", "message_id"),
    )
    op.create_table(
        "invitation_templates",
        *key(Id, "account_id", to="accounts.id"),
        *optional(sa.String(500), "subject"),
        *optional(sa.Text(), "text", "html"),
        *required(UtcTime(), "updated_at"),
    )
    op.create_table(
        "delivery_reports",
        *key(sa.String(255), "message_id"),
        *key(sa.String(16), "kind"),
        *required(Id, "invitation_id", to="invitations.id"),
        *optional(sa.String(11), "status"),
        *required(UtcTime(), "received_at"),
    )


def _create_delivery() -> None:
    op.create_table(
        "invitation_events",
        *key(Id, "id"),
        *required(Id, "invitation_id"),
        *required(UtcTime(), "at"),
        *required(sa.String(9), "from_state", "to_state"),
        *required(sa.String(32), "reason"),
        *optional(sa.Integer(), "code"),
        *indexes("invitation_id id"),
    )
    op.create_table(
        "caught_messages",
        *key(Id, "id"),
        *required(sa.String(255), "message_id"),
        *required(sa.String(254), "sender", "recipient"),
        *required(sa.String(10), "outcome"),
        *required(sa.LargeBinary(), "content"),
        *required(UtcTime(), "caught_at"),
        *indexes("message_id"),
    )
    op.create_table(
        "delivery_windows",
        *key(Id, "account_id", to="accounts.id"),
        *required(sa.BigInteger(), "version", "measured_us"),
        *required(UtcTime(), "wall_at"),
        *optional(sa.BigInteger(), "batch_us"),
        *required(sa.Integer(), "batch_left"),
        *required(Json, "sent"),
    )
    op.create_table(
        "delivery_home",
        *key(sa.Integer(), "id"),
        *optional(sa.String(255), "home"),
        *required(sa.BigInteger(), "offers"),
        *optional(sa.String(32), "held_reason"),
    )


def _create_privacy() -> None:
    op.create_table(
        "erasures",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(UtcTime(), "erased_at"),
        *required(sa.String(9), "cause"),
        *required(sa.String(64), "actor", "request_id"),
    )
    op.create_table(
        "legal_holds",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(sa.String(100), "reference"),
        *required(UtcTime(), "held_at"),
        *required(sa.String(64), "actor"),
        *indexes("account_id"),
    )
    op.create_table(
        "audit_prunings",
        sa.Column("through_id", Id, primary_key=True, autoincrement=False),
        *required(sa.String(64), "chain"),
        *required(UtcTime(), "pruned_at"),
    )
    op.create_table("retention_positions", *key(sa.String(32), "kind"), *required(Id, "position"))
