"""What refusals told a client of other accounts' values, by day."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.create_table(
        "uniqueness_probes",
        *key(Id, "id"),
        *required(sa.String(10), "day"),
        *required(sa.String(64), "client"),
        *required(Id, "account_id"),
        *optional(Id, "file_id"),
        *required(sa.Integer(), "taken"),
    )
    op.create_index("ix_uniqueness_probes_day_client", "uniqueness_probes", ["day", "client"])


def downgrade() -> None:
    op.drop_table("uniqueness_probes")
