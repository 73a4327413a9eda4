"""A column that is written to see whether the database stores anything."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import optional

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("installation", *optional(sa.LargeBinary(), "written"))


def downgrade() -> None:
    op.execute("ALTER TABLE installation DROP COLUMN written")
