"""The shared snapshot of an account's queues keeps how its intervals have held."""

from alembic import op

from frontdesk.db.migrations.ddl import optional
from frontdesk.db.schema import Json

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    for column in optional(Json, "records"):
        op.add_column("queue_snapshots", column)


def downgrade() -> None:
    op.drop_column("queue_snapshots", "records")
