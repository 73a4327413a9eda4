"""What Alembic runs for each migration command; the connection and the settings come from `migrate`."""

from alembic import context

from frontdesk.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
    render_as_batch=True,
)
context.run_migrations()
