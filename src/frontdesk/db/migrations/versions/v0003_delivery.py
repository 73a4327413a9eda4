"""Delivery of invitations: leases, attempts and answers of each, its timeline, the hourly windows, the delivery's home."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index, key, optional, required
from frontdesk.db.schema import Id, UtcTime

revision = "0003"
down_revision = "0002"

TABLES = ("invitation_events", "delivery_windows", "delivery_counts", "delivery_home")
INDEXES = (
    ("ix_invitations_next", ("delivery", "account_id", "plan_id", "due_at", "id"), "state = 'pending'"),
    (
        "ix_invitations_lapsing",
        ("due_at",),
        "state IN ('claimed', 'offered', 'ambiguous') AND due_at IS NOT NULL",
    ),
    ("ix_invitations_in_hand", ("account_id",), "state IN ('claimed', 'offered') AND delivery = 'batched'"),
)


def upgrade() -> None:
    with op.batch_alter_table("invitations") as batch:
        for column in _added_columns():
            batch.add_column(column)
        batch.create_unique_constraint(op.f("uq_invitations_message_id"), ["message_id"])
    op.execute("UPDATE invitations SET due_at = created_at WHERE state = 'pending'")
    for name, columns, where in INDEXES:
        create_partial_index(name, "invitations", *columns, where=where)
    op.create_table(
        "invitation_events",
        *key(Id, "id"),
        *required(Id, "invitation_id"),
        *required(UtcTime(), "at"),
        *required(sa.String(9), "from_state", "to_state"),
        *required(sa.String(32), "reason"),
        *optional(sa.Integer(), "code"),
        sa.Index(None, "invitation_id", "id"),
    )
    op.create_table(
        "delivery_windows",
        *key(Id, "account_id", to="accounts.id"),
        *required(sa.BigInteger(), "version", "measured_us"),
        *required(UtcTime(), "wall_at"),
        *optional(sa.BigInteger(), "batch_us"),
        *required(sa.Integer(), "batch_left"),
    )
    op.create_table(
        "delivery_counts",
        *key(Id, "account_id", to="accounts.id"),
        *key(sa.BigInteger(), "slice"),
        *required(sa.Integer(), "sent"),
    )
    op.create_table(
        "delivery_home",
        *key(sa.Integer(), "id"),
        *optional(sa.String(255), "home"),
        *required(sa.BigInteger(), "offers"),
        *optional(sa.String(32), "held_reason"),
        *optional(UtcTime(), "held_at"),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    for name, _, _ in INDEXES:
        op.drop_index(name, "invitations")
    # What the older version does not know is in line again, or can't be there at all: it delivers nothing.
    op.execute("UPDATE invitations SET state = 'pending'")
    with op.batch_alter_table("invitations") as batch:
        batch.drop_constraint(op.f("uq_invitations_message_id"), type_="unique")
        for column in reversed(_added_columns()):
            batch.drop_column(column.name)


def _added_columns() -> list[sa.Column[Any]]:
    counters = ("epoch", "attempts", "losses")
    return [
        *optional(UtcTime(), "due_at"),
        *(sa.Column(name, sa.Integer(), nullable=False, server_default="0") for name in counters),
        *optional(sa.String(255), "message_id"),
        *optional(UtcTime(), "offered_at", "settled_at"),
        *optional(sa.String(32), "reason"),
        *optional(sa.Integer(), "relay_code"),
    ]
