"""Accounts take turns with their files."""

from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id, UtcTime

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table("file_turns", *key(Id, "account_id", to="accounts.id"), *required(UtcTime(), "taken_at"))
    op.add_column("eligibility_files", *optional(UtcTime(), "kept_until"))


def downgrade() -> None:
    op.drop_table("file_turns")
    # SQLite drops a column in place; alembic's copy of the table would take as long as a backup.
    op.execute("ALTER TABLE eligibility_files DROP COLUMN kept_until")
