"""The database: connections and transactions, set statements, group commit, migrations; no product rule is here."""

from frontdesk.db.engine import Database, Tx, open_database

__all__ = ["Database", "Tx", "open_database"]
