"""The database knows its home before anything is put in line; the address of every invitation as addresses are compared."""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.database_identity import database_identity, read_counter, set_counter
from frontdesk.text import fold_email

revision = "0008"
down_revision = "0007"

TOGETHER = 5000

_home = sa.table("delivery_home", *map(sa.column, ("id", "home", "offers")))
_invitations = sa.table("invitations", *map(sa.column, ("id", "address", "address_folded")))


def upgrade() -> None:
    connection = op.get_bind()
    _fold_addresses(connection)
    _be_at_home(connection)


def downgrade() -> None:
    """What was written here the older version would have written itself."""


def _fold_addresses(connection: sa.Connection) -> None:
    """What was in line before 0007 has none, and would not be seen among what its address was mailed."""
    columns = _invitations.c
    without = sa.select(columns.id, columns.address).where(columns.address_folded.is_(None))
    folding = (
        sa.update(_invitations)
        .where(columns.id == sa.bindparam("of"))
        .values(address_folded=sa.bindparam("folded"))
    )
    after = 0
    while rows := list(
        connection.execute(without.where(columns.id > after).order_by(columns.id).limit(TOGETHER))
    ):
        connection.execute(folding, [{"of": row.id, "folded": fold_email(row.address)} for row in rows])
        after = rows[-1].id


def _be_at_home(connection: sa.Connection) -> None:
    """A backup of it that is restored elsewhere, however early it was taken, is recognised by that."""
    row = connection.execute(sa.select(_home.c.home, _home.c.offers)).first()
    if row is None:
        connection.execute(sa.insert(_home).values(id=1, home=None, offers=0))
    home, offers = (row.home, row.offers) if row else (None, 0)
    here, mark = database_identity(connection, "delivery_home"), read_counter(connection)
    is_empty = connection.execute(sa.select(_invitations.c.id).limit(1)).first() is None
    if home is None and (is_empty or not mark):
        connection.execute(sa.update(_home).values(home=here))
        set_counter(connection, offers)
    elif home == here and mark is None:
        set_counter(connection, offers)
