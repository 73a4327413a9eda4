"""Around the delivery of invitations: links, templates, delivery reports, and what the sandbox caught."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.schema import Id, UtcTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "invitation_links",
        sa.Column("registration_hash", sa.String(length=64), nullable=False),
        sa.Column("unsubscribe_hash", sa.String(length=64), nullable=False),
        sa.Column("message_id", sa.String(length=255), nullable=False),
        sa.Column("invitation_id", Id, nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invitation_id"], ["invitations.id"], name=op.f("fk_invitation_links_invitation_id")
        ),
        sa.PrimaryKeyConstraint("registration_hash", name=op.f("pk_invitation_links")),
        sa.UniqueConstraint("unsubscribe_hash", name=op.f("uq_invitation_links_unsubscribe_hash")),
    )
    op.create_index(op.f("ix_invitation_links_message_id"), "invitation_links", ["message_id"], unique=False)
    op.create_table(
        "invitation_templates",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("subject", sa.String(length=500), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_invitation_templates_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_invitation_templates")),
    )
    op.create_table(
        "delivery_reports",
        sa.Column("message_id", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("invitation_id", Id, nullable=False),
        sa.Column("status", sa.String(length=11), nullable=True),
        sa.Column("received_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invitation_id"], ["invitations.id"], name=op.f("fk_delivery_reports_invitation_id")
        ),
        sa.PrimaryKeyConstraint("message_id", "kind", name=op.f("pk_delivery_reports")),
    )
    op.create_table(
        "caught_messages",
        sa.Column("id", Id, nullable=False),
        sa.Column("message_id", sa.String(length=255), nullable=False),
        sa.Column("sender", sa.String(length=254), nullable=False),
        sa.Column("recipient", sa.String(length=254), nullable=False),
        sa.Column("outcome", sa.String(length=10), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("caught_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_caught_messages")),
    )
    op.create_index(op.f("ix_caught_messages_message_id"), "caught_messages", ["message_id"], unique=False)


def downgrade() -> None:
    for table in ("caught_messages", "delivery_reports", "invitation_templates", "invitation_links"):
        op.drop_table(table)
