"""The log of estimates keeps the interval that was told beside each of them."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import optional

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for column in optional(sa.Integer(), "low_seconds", "high_seconds"):
        op.add_column("estimate_log", column)
    # An older version can't be asked for intervals; the snapshots are taken anew.
    op.execute("DELETE FROM queue_snapshots")


def downgrade() -> None:
    op.drop_column("estimate_log", "high_seconds")
    op.drop_column("estimate_log", "low_seconds")
    op.execute("DELETE FROM queue_snapshots")
