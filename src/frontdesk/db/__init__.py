"""The database: connections and transactions, set statements, group commit, migrations."""

from frontdesk.db.engine import Database as Database
from frontdesk.db.engine import Tx as Tx
from frontdesk.db.engine import open_database as open_database
