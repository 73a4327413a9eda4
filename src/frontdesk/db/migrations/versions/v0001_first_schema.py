"""The first schema: every table of the program, the triggers of `append_only`, and the rows that an
installation starts with.

The tables are those of `db.schema` as long as nothing is deployed. The first migration after that
has to write them out here first (alembic can render them): otherwise this one would already make
what the later one adds, and that fails.
"""

import secrets

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.schema import CreateIndex, CreateTable

from frontdesk.db.database_identity import database_identity, set_counter
from frontdesk.db.migrations.append_only import drop_functions, make_guards
from frontdesk.db.schema import metadata

revision = "0001"
down_revision = None
BACKWARD_COMPATIBLE = False  # whether the version before can go on with the new schema

ROW_DIGEST_KEY_BYTES = 32


def upgrade() -> None:
    for table in metadata.sorted_tables:
        op.execute(CreateTable(table))
        # Of two indexes that cost the same PostgreSQL uses the newer one: the more exact comes
        # last.
        for index in sorted(table.indexes, key=lambda each: (len(each.columns), each.name or "")):
            op.execute(CreateIndex(index))
    make_guards(op.get_bind())
    _insert_first_rows()


def downgrade() -> None:
    """Drop everything."""
    metadata.drop_all(op.get_bind())
    drop_functions(op.get_bind())


def _insert_first_rows() -> None:
    """The installation's rule and its key, and the home of deliveries: by that a restored backup is
    recognised.
    """
    connection = op.get_bind()
    values = {
        "rule": context.config.attributes["uniqueness"],
        "key": secrets.token_hex(ROW_DIGEST_KEY_BYTES),
    }
    add = (
        "INSERT INTO installation (id, uniqueness, row_digest_key, compatible_since) "
        "VALUES (1, :rule, :key, '')"
    )
    connection.execute(sa.text(add), values)
    home = {"home": database_identity(connection, "delivery_home")}
    connection.execute(
        sa.text("INSERT INTO delivery_home (id, home, offers) VALUES (1, :home, 0)"), home
    )
    set_counter(connection, 0)
