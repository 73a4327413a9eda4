"""The family of an 834 that a member belongs to, and the mode that the caller of a file asked for.

Members of before have no family; the next file that names them gives it. Files of before did not keep what was asked.
"""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index, optional

revision = "0016"
down_revision = "0015"

_INDEX = "ix_members_family_digest"


def upgrade() -> None:
    op.add_column("members", *optional(sa.String(32), "family_digest"))
    create_partial_index(_INDEX, "members", "family_digest", where="family_digest IS NOT NULL")
    op.add_column("eligibility_files", *optional(sa.String(7), "asked_mode"))


def downgrade() -> None:
    op.drop_index(_INDEX, "members")
    # SQLite drops a column in place; alembic's copy of the table would take as long as a backup.
    op.execute("ALTER TABLE members DROP COLUMN family_digest")
    op.execute("ALTER TABLE eligibility_files DROP COLUMN asked_mode")
