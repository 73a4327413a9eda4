"""Accounts can be suspended and closed; secrets of API clients can expire, and keep the day of their last use."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import optional
from frontdesk.db.schema import IsoDate, UtcTime

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # A default in the statement fills the rows that exist in place, on both databases.
    op.add_column("accounts", sa.Column("state", sa.String(16), nullable=False, server_default="active"))
    op.add_column("client_secrets", *optional(UtcTime(), "expires_at"))
    op.add_column("client_secrets", *optional(IsoDate(), "last_used_on"))


def downgrade() -> None:
    for table, column in (
        ("client_secrets", "last_used_on"),
        ("client_secrets", "expires_at"),
        ("accounts", "state"),
    ):
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
