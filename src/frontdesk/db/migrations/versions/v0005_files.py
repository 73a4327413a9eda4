"""Eligibility files: their way, their content in parts, what became of their rows; a plan's members by plan."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime

revision = "0005"
down_revision = "0004"

_RUNNING = sa.text("state = 'running'")


def upgrade() -> None:
    op.create_index("ix_members_plan_id_id", "members", ["plan_id", "id"], unique=False)
    op.create_table(
        "eligibility_files",
        sa.Column("id", Id, nullable=False),
        sa.Column("account_id", Id, nullable=False),
        sa.Column("plan_id", Id, nullable=False),
        sa.Column("undoes_id", Id, nullable=True),
        sa.Column("format", sa.String(length=8), nullable=True),
        sa.Column("encoding", sa.String(length=32), nullable=True),
        sa.Column("mapping", Json, nullable=True),
        sa.Column("mode", sa.String(length=7), nullable=False),
        sa.Column("dry_run", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=9), nullable=False),
        sa.Column("step", sa.String(length=5), nullable=False),
        sa.Column("approved", sa.Boolean(), nullable=False),
        sa.Column("size_bytes", Id, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("file_date", IsoDate(), nullable=True),
        sa.Column("rows_total", sa.Integer(), nullable=True),
        sa.Column("rows_done", sa.Integer(), nullable=False),
        sa.Column("chunks_done", sa.Integer(), nullable=False),
        sa.Column("members_before", sa.Integer(), nullable=True),
        sa.Column("members_missing", sa.Integer(), nullable=True),
        sa.Column("counts", Json, nullable=False),
        sa.Column("ignored", Json, nullable=False),
        sa.Column("problem", Json, nullable=True),
        sa.Column("client", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=True),
        sa.Column("finished_at", UtcTime(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id", "plan_id"],
            ["plans.account_id", "plans.id"],
            name=op.f("fk_eligibility_files_account_id_plan_id"),
        ),
        sa.ForeignKeyConstraint(
            ["undoes_id"], ["eligibility_files.id"], name=op.f("fk_eligibility_files_undoes_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eligibility_files")),
    )
    for name, columns in (
        ("state_id", ["state", "id"]),
        ("account_id_id", ["account_id", "id"]),
        ("plan_id_id", ["plan_id", "id"]),
        ("undoes_id", ["undoes_id"]),
    ):
        op.create_index(f"ix_eligibility_files_{name}", "eligibility_files", columns, unique=False)
    op.create_index(
        "uq_eligibility_files_account_id",
        "eligibility_files",
        ["account_id"],
        unique=True,
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    )
    _create_contents()


def _create_contents() -> None:
    op.create_table(
        "file_mappings",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("mapping", Json, nullable=False),
        sa.Column("changed_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_file_mappings_account_id")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_file_mappings")),
    )
    op.create_table(
        "file_parts",
        sa.Column("file_id", Id, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["eligibility_files.id"], name=op.f("fk_file_parts_file_id")),
        sa.PrimaryKeyConstraint("file_id", "number", name=op.f("pk_file_parts")),
    )
    op.create_table(
        "file_outcomes",
        sa.Column("file_id", Id, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("step", sa.String(length=5), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["eligibility_files.id"], name=op.f("fk_file_outcomes_file_id")),
        sa.PrimaryKeyConstraint("file_id", "number", name=op.f("pk_file_outcomes")),
    )


def downgrade() -> None:
    for table in ("file_outcomes", "file_parts", "file_mappings", "eligibility_files"):
        op.drop_table(table)
    op.drop_index("ix_members_plan_id_id", "members")
