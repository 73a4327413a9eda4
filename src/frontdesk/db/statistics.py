"""The planner's statistics after many rows were written. Autovacuum comes a minute later, where it comes at all."""

from collections.abc import Sequence

from frontdesk.db.engine import Database

# As autovacuum does it: after changes to a tenth of the rows that the statistics know of.
_OUTDATED = """
    SELECT relname FROM pg_class WHERE oid = ANY(%s::text[]::regclass[]) AND %s > 50 + greatest(reltuples, 0) / 10
    ORDER BY relname
"""


def refresh_statistics(db: Database, tables: Sequence[str], *, written: int) -> None:
    """Have those of the tables analysed whose statistics are outdated by `written` rows. Raises Unavailable.

    The service's own statements do not depend on it (docs/decisions/0067); people's queries do. On PostgreSQL only an owner
    analyses a table: the server skips one of somebody else's, and one that another session analyses now. It samples 30,000 pages
    of a large table at most. SQLite is left without statistics: then it uses every index, while those of a small table make it
    scan that table for as long as they last.
    """
    if db.is_sqlite:
        return
    for name in db.ask(lambda tx: tx.exec_driver_sql(_OUTDATED, (list(tables), written)).scalars().all()):
        with db.write() as tx:
            tx.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {name}")
