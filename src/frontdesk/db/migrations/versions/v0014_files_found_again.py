"""Files are listed by state and found again by content or by the caller's key; the report's lines are counted by code; an account
may want a second person's approval."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import optional
from frontdesk.db.schema import Json

revision = "0014"
down_revision = "0013"

_INDEXES = {
    "ix_eligibility_files_account_id_state_id": ["account_id", "state", "id"],
    "ix_eligibility_files_account_id_sha256_id": ["account_id", "sha256", "id"],
}
_OF_KEYS = "uq_eligibility_files_account_id_idempotency_key"


def upgrade() -> None:
    op.add_column("eligibility_files", sa.Column("codes", Json, nullable=False, server_default="{}"))
    op.add_column("eligibility_files", *optional(sa.String(255), "idempotency_key"))
    op.add_column("eligibility_files", *optional(sa.String(64), "idempotency_digest"))
    for name, columns in _INDEXES.items():
        op.create_index(name, "eligibility_files", columns)
    op.create_index(_OF_KEYS, "eligibility_files", ["account_id", "idempotency_key"], unique=True)
    op.add_column(
        "file_settings", sa.Column("second_approver", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    for name in (*_INDEXES, _OF_KEYS):
        op.drop_index(name, "eligibility_files")
    for column in ("codes", "idempotency_key", "idempotency_digest"):
        op.execute(f"ALTER TABLE eligibility_files DROP COLUMN {column}")
    op.execute("ALTER TABLE file_settings DROP COLUMN second_approver")
