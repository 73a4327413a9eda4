"""Numbers in 834s that several people carry, and the file that showed it."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, required
from frontdesk.db.schema import Id

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.create_table(
        "shared_numbers",
        *key(Id, "account_id", to="accounts.id"),
        *key(sa.BigInteger(), "number_key"),
        *required(Id, "file_id", to="eligibility_files.id"),
    )
    op.create_index("ix_shared_numbers_file_id_account_id", "shared_numbers", ["file_id", "account_id"])


def downgrade() -> None:
    op.drop_table("shared_numbers")
