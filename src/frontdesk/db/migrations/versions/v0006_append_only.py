"""SQLite's INSERT OR REPLACE deletes without a trigger; what can only be added to refuses an id that is there already."""

from alembic import op

revision = "0006"
down_revision = "0005"

TABLES = ("member_history", "audit_entries")


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return  # PostgreSQL's ON CONFLICT DO UPDATE is an update, and refused as one
    for table in TABLES:
        # An id that is still to be given is -1 here, so only positive ones are looked for.
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN NEW.id > 0 AND EXISTS "  # noqa: S608 - constants only
            f"(SELECT 1 FROM {table} WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            op.execute(f"DROP TRIGGER {table}_no_replace")
