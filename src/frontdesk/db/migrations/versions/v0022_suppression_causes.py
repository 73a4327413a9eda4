"""A suppression names the account that mailed the address. Earlier ones get it if only one account did."""

from alembic import op

from frontdesk.db.migrations.ddl import optional
from frontdesk.db.schema import Id

revision = "0022"
down_revision = "0021"

_FILL = """
UPDATE suppressions SET account_id = (
  SELECT min(account_id) FROM invitations
  WHERE invitations.address_folded = suppressions.address_folded AND offered_at IS NOT NULL
  HAVING min(account_id) = max(account_id))
WHERE reason <> 'by_hand'
"""


def upgrade() -> None:
    op.add_column("suppressions", *optional(Id, "account_id"))
    op.execute(_FILL)


def downgrade() -> None:
    op.execute("ALTER TABLE suppressions DROP COLUMN account_id")
