"""What a member's expiry_date was before a full file ended it by omission, and how an account's files are treated.

Members that were ended before have no such date: they stay ended, as they did.
"""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id, IsoDate

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("members", *optional(IsoDate(), "expiry_before_absence"))
    op.create_table(
        "file_settings",
        *key(Id, "account_id", to="accounts.id"),
        *required(sa.Boolean(), "reopen_absent"),
    )


def downgrade() -> None:
    op.drop_table("file_settings")
    # SQLite drops a column in place; alembic's copy of the table would take as long as a backup.
    op.execute("ALTER TABLE members DROP COLUMN expiry_before_absence")
