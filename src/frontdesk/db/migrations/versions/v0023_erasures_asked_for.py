"""Erasures that wait for a worker; and no token is kept as revoked any more: such a token is deleted."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id, UtcTime

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "erasure_requests",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(sa.String(64), "actor", "request_id"),
        *optional(sa.String(64), "network"),
        *required(UtcTime(), "asked_at"),
    )
    op.execute("DELETE FROM access_tokens WHERE revoked")
    op.execute("ALTER TABLE access_tokens DROP COLUMN revoked")


def downgrade() -> None:
    op.execute("ALTER TABLE access_tokens ADD COLUMN revoked BOOLEAN NOT NULL DEFAULT false")
    op.drop_table("erasure_requests")
