"""Digests of people, merged members, and pairs that are two people. Temporary: the first migration takes it over."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index, key, optional, required
from frontdesk.db.schema import Id

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("members", *optional(sa.String(32), "person_digest"))
    op.add_column("members", *optional(Id, "merged_into"))
    for column in ("person_digest", "merged_into"):
        create_partial_index(f"ix_members_{column}", "members", column, where=f"{column} IS NOT NULL")
    op.create_table(
        "distinct_members",
        *key(Id, "lower_id", "higher_id", to="members.id"),
        *required(Id, "account_id"),
    )
    op.create_index("ix_distinct_members_higher_id", "distinct_members", ["higher_id"])


def downgrade() -> None:
    op.drop_table("distinct_members")
    for column in ("person_digest", "merged_into"):
        op.drop_index(f"ix_members_{column}", "members")
        op.drop_column("members", column)
