"""The digest of the file's row that a member agrees with, and the key of the digests. Members of before have none."""

import secrets

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import optional

revision = "0009"
down_revision = "0008"

KEY_BYTES = 32


def upgrade() -> None:
    op.add_column("members", *optional(sa.String(32), "row_digest"))
    op.add_column("installation", *optional(sa.String(64), "row_digest_key"))
    keep = sa.text("UPDATE installation SET row_digest_key = :key")
    op.execute(keep.bindparams(key=secrets.token_hex(KEY_BYTES)))
    with op.batch_alter_table("installation") as batch:
        batch.alter_column("row_digest_key", existing_type=sa.String(64), nullable=False)


def downgrade() -> None:
    # SQLite drops a column in place; alembic's copy of the table would take as long as a backup.
    op.execute("ALTER TABLE members DROP COLUMN row_digest")
    op.execute("ALTER TABLE installation DROP COLUMN row_digest_key")
