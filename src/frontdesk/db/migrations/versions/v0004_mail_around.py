"""Around the delivery of invitations: links, templates, delivery reports, and what the sandbox caught."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, optional, required
from frontdesk.db.schema import Id, UtcTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "invitation_links",
        *key(sa.String(64), "registration_hash"),
        *required(sa.String(64), "unsubscribe_hash"),
        *required(sa.String(255), "message_id"),
        *required(Id, "invitation_id", to="invitations.id"),
        *required(UtcTime(), "created_at"),
        sa.UniqueConstraint("unsubscribe_hash"),
        sa.Index(None, "message_id"),
    )
    op.create_table(
        "invitation_templates",
        *key(Id, "account_id", to="accounts.id"),
        *optional(sa.String(500), "subject"),
        *optional(sa.Text(), "text", "html"),
        *required(UtcTime(), "updated_at"),
    )
    op.create_table(
        "delivery_reports",
        *key(sa.String(255), "message_id"),
        *key(sa.String(16), "kind"),
        *required(Id, "invitation_id", to="invitations.id"),
        *optional(sa.String(11), "status"),
        *required(UtcTime(), "received_at"),
    )
    op.create_table(
        "caught_messages",
        *key(Id, "id"),
        *required(sa.String(255), "message_id"),
        *required(sa.String(254), "sender", "recipient"),
        *required(sa.String(10), "outcome"),
        *required(sa.LargeBinary(), "content"),
        *required(UtcTime(), "caught_at"),
        sa.Index(None, "message_id"),
    )


def downgrade() -> None:
    for table in ("caught_messages", "delivery_reports", "invitation_templates", "invitation_links"):
        op.drop_table(table)
