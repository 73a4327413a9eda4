"""An account keeps several mappings by name, and one of them may be its default. The one that it had becomes `default`."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import create_partial_index, key, required
from frontdesk.db.schema import Id, Json, UtcTime

revision = "0010"
down_revision = "0009"

_INDEX = "uq_eligibility_mappings_account_id"


def upgrade() -> None:
    op.create_table(
        "eligibility_mappings",
        *key(Id, "account_id", to="accounts.id"),
        *key(sa.String(64), "name"),
        *required(Json, "mapping"),
        *required(sa.Boolean(), "is_default"),
        *required(UtcTime(), "changed_at"),
    )
    create_partial_index(_INDEX, "eligibility_mappings", "account_id", where="is_default", unique=True)
    op.execute(
        "INSERT INTO eligibility_mappings (account_id, name, mapping, is_default, changed_at) "
        "SELECT account_id, 'default', mapping, true, changed_at FROM file_mappings"
    )
    op.drop_table("file_mappings")


def downgrade() -> None:
    """The older version knows the default only."""
    op.create_table(
        "file_mappings",
        *key(Id, "account_id", to="accounts.id"),
        *required(Json, "mapping"),
        *required(UtcTime(), "changed_at"),
    )
    op.execute(
        "INSERT INTO file_mappings (account_id, mapping, changed_at) "
        "SELECT account_id, mapping, changed_at FROM eligibility_mappings WHERE is_default"
    )
    op.drop_table("eligibility_mappings")
