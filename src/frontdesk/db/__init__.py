"""The database: connections and transactions, set statements, group commit, migrations."""

from frontdesk.db.engine import Database, Tx, open_database

__all__ = ["Database", "Tx", "open_database"]
