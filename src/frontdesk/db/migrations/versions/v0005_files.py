"""Eligibility files: their way, their content in parts, what became of their rows; a plan's members by plan."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index, key, optional, required
from frontdesk.db.schema import Id, IsoDate, Json, UtcTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("ix_members_plan_id_id", "members", ["plan_id", "id"])
    op.create_table(
        "eligibility_files",
        *key(Id, "id"),
        *required(Id, "account_id", "plan_id"),
        *optional(Id, "undoes_id", to="eligibility_files.id"),
        *optional(sa.String(8), "format"),
        *optional(sa.String(32), "encoding"),
        *optional(Json, "mapping"),
        *required(sa.String(7), "mode"),
        *required(sa.Boolean(), "dry_run"),
        *required(sa.String(9), "state"),
        *required(sa.String(5), "step"),
        *required(sa.Boolean(), "approved"),
        *required(Id, "size_bytes"),
        *optional(sa.String(64), "sha256"),
        *optional(IsoDate(), "file_date"),
        *optional(sa.Integer(), "rows_total"),
        *required(sa.Integer(), "rows_done", "chunks_done"),
        *optional(sa.Integer(), "members_before", "members_missing"),
        *required(Json, "counts", "ignored"),
        *optional(Json, "problem"),
        *required(sa.String(64), "client", "request_id"),
        *required(UtcTime(), "created_at"),
        *optional(UtcTime(), "started_at", "finished_at"),
        *required(sa.Integer(), "epoch"),
        *optional(UtcTime(), "lease_until"),
        sa.ForeignKeyConstraint(["account_id", "plan_id"], ["plans.account_id", "plans.id"]),
        sa.Index(None, "state", "id"),
        sa.Index(None, "account_id", "id"),
        sa.Index(None, "plan_id", "id"),
        sa.Index(None, "undoes_id"),
    )
    create_partial_index(
        "uq_eligibility_files_account_id",
        "eligibility_files",
        "account_id",
        where="state = 'running'",
        unique=True,
    )
    _create_contents()


def _create_contents() -> None:
    op.create_table(
        "file_mappings",
        *key(Id, "account_id", to="accounts.id"),
        *required(Json, "mapping"),
        *required(UtcTime(), "changed_at"),
    )
    op.create_table(
        "file_parts",
        *key(Id, "file_id", to="eligibility_files.id"),
        *key(sa.Integer(), "number"),
        *required(sa.LargeBinary(), "content"),
    )
    op.create_table(
        "file_outcomes",
        *key(Id, "file_id", to="eligibility_files.id"),
        *key(sa.Integer(), "number"),
        *required(sa.String(5), "step"),
        *required(sa.LargeBinary(), "content"),
    )


def downgrade() -> None:
    for table in ("file_outcomes", "file_parts", "file_mappings", "eligibility_files"):
        op.drop_table(table)
    op.drop_index("ix_members_plan_id_id", "members")
