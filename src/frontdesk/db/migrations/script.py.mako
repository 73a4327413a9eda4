"""${message}."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.schema import Id, IsoDate, Json, UtcTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
BACKWARD_COMPATIBLE = False  # whether the version before can go on with the new schema


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
