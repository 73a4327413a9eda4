"""Exports of which a worker finds the places."""

from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id, Json, UtcTime

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.create_table(
        "export_requests",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(UtcTime(), "asked_at"),
        *optional(Json, "places"),
        *optional(UtcTime(), "found_at"),
    )


def downgrade() -> None:
    op.drop_table("export_requests")
