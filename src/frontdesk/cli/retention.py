"""`frontdesk retention`: erases or deletes what has been kept long enough (docs/erasure.md)."""

from typing import Annotated

import typer

from frontdesk.cli.command_group import migrated_database, new_request, printing
from frontdesk.cli.output import Output, settings, table
from frontdesk.clock import system_clock
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import RetentionTurn, kept_days


def _retention(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
) -> Output:
    """Erase or delete now what has been kept long enough; workers do it every night.

    Example: frontdesk retention --dry-run
    """
    config = settings()
    kept = kept_days(config)
    with migrated_database(config, index_scans=True) as db:
        turn = RetentionTurn(db, system_clock, kept, new_request())
        counts = turn.count() if dry_run else turn.run()
    rows = [
        {"kind": kind, "kept_days": kept.get(kind), "count": counts.get(kind, 0)} for kind in RetentionKind
    ]
    heads = ("kind", "kept days", "would go" if dry_run else "gone")
    return Output(rows, [table(heads, [[*row.values()] for row in rows])])


retention = printing(_retention)
