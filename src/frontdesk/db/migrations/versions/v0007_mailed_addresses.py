"""The address of each invitation as addresses are compared, and the way from an address to what it was mailed."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index

revision = "0007"
down_revision = "0006"

_INDEX = "ix_invitations_mailed"


def upgrade() -> None:
    with op.batch_alter_table("invitations") as batch:
        batch.add_column(sa.Column("address_folded", sa.String(length=508), nullable=True))
    # What is older than the column is folded by the database: near enough for a cool-down of one day.
    op.execute("UPDATE invitations SET address_folded = lower(address) WHERE offered_at IS NOT NULL")
    create_partial_index(_INDEX, "invitations", "address_folded", where="offered_at IS NOT NULL")


def downgrade() -> None:
    op.drop_index(_INDEX, table_name="invitations")
    with op.batch_alter_table("invitations") as batch:
        batch.drop_column("address_folded")
