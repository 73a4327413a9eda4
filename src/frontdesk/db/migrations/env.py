"""What Alembic runs for each migration command; the connection and the settings come from
`migrate`.
"""

from alembic import context

from frontdesk.db.schema import load_tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=load_tables(),
    transaction_per_migration=False,
    render_as_batch=True,
)
context.run_migrations()
