"""Delivery of invitations: leases, attempts and answers of each, its timeline, the hourly windows, the delivery's home."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.schema import Id, UtcTime

revision = "0003"
down_revision = "0002"

TABLES = ("invitation_events", "delivery_windows", "delivery_counts", "delivery_home")
COLUMNS = (
    "due_at",
    "epoch",
    "attempts",
    "losses",
    "message_id",
    "offered_at",
    "settled_at",
    "reason",
    "relay_code",
)
INDEXES = ("ix_invitations_next", "ix_invitations_lapsing", "ix_invitations_in_hand")


def upgrade() -> None:
    _add_columns()
    op.execute("UPDATE invitations SET due_at = created_at WHERE state = 'pending'")
    _create_indexes()
    op.create_table(
        "invitation_events",
        sa.Column("id", Id, nullable=False),
        sa.Column("invitation_id", Id, nullable=False),
        sa.Column("at", UtcTime(), nullable=False),
        sa.Column("from_state", sa.String(length=9), nullable=False),
        sa.Column("to_state", sa.String(length=9), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation_events")),
    )
    op.create_index("ix_invitation_events_invitation_id_id", "invitation_events", ["invitation_id", "id"])
    _create_windows()
    op.create_table(
        "delivery_home",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("home", sa.String(length=255), nullable=True),
        sa.Column("offers", sa.BigInteger(), nullable=False),
        sa.Column("held_reason", sa.String(length=32), nullable=True),
        sa.Column("held_at", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delivery_home")),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    for index in INDEXES:
        op.drop_index(index, "invitations")
    # What the older version does not know is in line again, or can't be there at all: it delivers nothing.
    op.execute("UPDATE invitations SET state = 'pending'")
    with op.batch_alter_table("invitations") as batch:
        batch.drop_constraint(op.f("uq_invitations_message_id"), type_="unique")
        for column in reversed(COLUMNS):
            batch.drop_column(column)


def _add_columns() -> None:
    with op.batch_alter_table("invitations") as batch:
        batch.add_column(sa.Column("due_at", UtcTime(), nullable=True))
        for counter in ("epoch", "attempts", "losses"):
            batch.add_column(sa.Column(counter, sa.Integer(), nullable=False, server_default="0"))
        batch.add_column(sa.Column("message_id", sa.String(length=255), nullable=True))
        batch.add_column(sa.Column("offered_at", UtcTime(), nullable=True))
        batch.add_column(sa.Column("settled_at", UtcTime(), nullable=True))
        batch.add_column(sa.Column("reason", sa.String(length=32), nullable=True))
        batch.add_column(sa.Column("relay_code", sa.Integer(), nullable=True))
        batch.create_unique_constraint(op.f("uq_invitations_message_id"), ["message_id"])


def _create_indexes() -> None:
    parts = {
        "ix_invitations_next": (
            ["delivery", "account_id", "plan_id", "due_at", "id"],
            sa.text("state = 'pending'"),
        ),
        "ix_invitations_lapsing": (
            ["due_at"],
            sa.text("state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL"),
        ),
        "ix_invitations_in_hand": (
            ["account_id"],
            sa.text("state IN ('claimed', 'offered') AND delivery = 'batched'"),
        ),
    }
    for name, (columns, where) in parts.items():
        op.create_index(name, "invitations", columns, sqlite_where=where, postgresql_where=where)


def _create_windows() -> None:
    op.create_table(
        "delivery_windows",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("measured_us", sa.BigInteger(), nullable=False),
        sa.Column("wall_at", UtcTime(), nullable=False),
        sa.Column("batch_us", sa.BigInteger(), nullable=True),
        sa.Column("batch_left", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_delivery_windows_account_id")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_delivery_windows")),
    )
    op.create_table(
        "delivery_counts",
        sa.Column("account_id", Id, nullable=False),
        sa.Column("slice", sa.BigInteger(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_delivery_counts_account_id")),
        sa.PrimaryKeyConstraint("account_id", "slice", name=op.f("pk_delivery_counts")),
    )
