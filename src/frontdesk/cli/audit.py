"""`frontdesk audit`: lists the audit trail, exports it as a file, and detects later changes of the
file.
"""

import os
from collections import deque
from datetime import datetime, timedelta
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from frontdesk.audit import AuditQuery, entries_after, last_entry_id, list_entries
from frontdesk.audit.chain import BrokenChain, ChainEnd, ends_of, first_line, sealed
from frontdesk.cli.command_group import CommandGroup, change_in, migrated_database
from frontdesk.cli.layout import progress
from frontdesk.cli.options import (
    OnlyAccount,
    argument,
    end_of,
    id_option,
    option,
    reach_of,
    start_of,
)
from frontdesk.cli.output import Output, fail, listing, opened_file, settings
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.errors import FrontdeskError
from frontdesk.privacy import has_pruned, last_pruning

# A transaction that began this long ago has ended: no entry can still appear before those that are
# exported.
SETTLED_SECONDS = 60
PAGE_ENTRIES = 10_000

File = Annotated[Path, argument("FILE", "The file of JSON lines.", dir_okay=False)]

commands = CommandGroup("audit")


@commands.query("list", "--account 1 --action client --since 2026-11-01 --limit 20")
def list_(  # noqa: PLR0913, PLR0917 - one parameter per option
    tx: Tx,
    account: OnlyAccount = None,
    actor: Annotated[
        str | None, option("A client_id, `cli:` and a login name, or `user:` and a user's id.")
    ] = None,
    action: Annotated[
        str | None, option("An action, or its first word: `client` for everything done to clients.")
    ] = None,
    subject: Annotated[int | None, id_option("--subject", "The id of the changed row.")] = None,
    since: Annotated[
        datetime | None, option("A date, or a time in UTC.", metavar="TIME", parser=start_of)
    ] = None,
    until: Annotated[
        datetime | None, option("A date or a time, to its end.", metavar="TIME", parser=end_of)
    ] = None,
    limit: Annotated[int, option("The largest number of entries.", min=1, max=1_000_000)] = 100,
) -> Output:
    """List the audit entries, newest first: time, action, actor, subject and request."""
    query = AuditQuery(actor, action, subject, since, until)
    rows = list_entries(tx, reach_of(account), query, limit=limit)
    nothing = "There is no such entry." if account or any(query) else "The audit trail is empty."
    return listing(rows, "at action actor account_id subject_id request_id detail", nothing=nothing)


@commands.standalone("export", "audit.jsonl")
def export(path: File) -> Output:
    """Write the trail to a file of JSON lines, or continue a file that is there. Entries of the
    last minute come next time.

    Keep the printed `chain` elsewhere: with it, `audit verify` finds any later change of the file.
    """
    with migrated_database(settings()) as db:
        before = _end_of_file(path) if path.exists() else ChainEnd()
        _refuse_foreign_beginning(db, before)
        pruning = db.ask(last_pruning)
        if pruning and 0 < before.entry_id < pruning.pruned_through:
            through = pruning.pruned_through
            fail(
                f"Entries up to {through} were pruned since. Keep the file, and export to another one."
            )
        with opened_file(path, "ab", "The file can't be written: {}.") as file:
            file.truncate(before.size_bytes)  # a line that a killed export began
            if not before.entry_id and pruning:
                line, before = first_line(pruning)
                file.write(line)
            end, count = _append(db, file, before)
        detail: dict[str, Any] = {"entries": count, "in_file": end.entries, "chain": end.chain}
        change_in(db, lambda context: context.record("audit.exported", **detail))
    return Output(
        detail | {"last_id": end.entry_id}, [f"{count:,} entries written. {_described(end)}"]
    )


@commands.standalone("verify", "audit.jsonl")
def verify(
    path: File,
    chain: Annotated[
        str | None, option("The `chain` that the last export printed.", metavar="HEX")
    ] = None,
    entries: Annotated[
        int | None, option("The `entries` that the last export printed.", metavar="COUNT")
    ] = None,
) -> Output:
    """Check that no line of an exported trail was changed, dropped or added. Status 1 if one was,
    or if the file has no line.

    With --chain any change is detected, without a database. Without it, missing lines at the end
    are detected only with --entries, and a file that was rewritten as a whole is not detected; a
    file that begins after a pruning needs the service's database.
    """
    end = _end_of_file(path, whole=True)
    if not end.entries:
        fail(
            "There is nothing to verify: the file has no entry. If an export has written entries "
            "to it, they are gone."
        )
    if entries is not None and entries != end.entries:
        fail(
            f"The file has {end.entries} entries and not {entries}: lines are missing, or it was rewritten."
        )
    if chain is None and end.pruning is not None:
        _refuse_unknown_beginning(end)
    if chain is not None and chain.strip().lower() != end.chain:
        fail("The file does not end with this chain: lines are missing, or it was rewritten.")
    parts = [f"Every line is as it was written. {_described(end)}"]
    if chain is None:
        parts.append("Without --chain, a file that was rewritten as a whole is not detected.")
    detail = {"last_id": end.entry_id, "entries": end.entries, "chain": end.chain}
    return Output(detail | {"pruned_through": end.pruning and end.pruning.pruned_through}, parts)


def _described(end: ChainEnd) -> str:
    pruned = end.pruning and end.pruning.pruned_through
    begins = (
        f"begins after entry {pruned}, through which the trail was pruned, and " if pruned else ""
    )
    return (
        f"The file {begins}ends with entry {end.entry_id}.\nentries: {end.entries}\n"
        f"chain: {end.chain or '-'}"
    )


def _refuse_unknown_beginning(end: ChainEnd) -> None:
    """Whether the beginning of a file was pruned or cut off is shown by its chain, or by the
    service's database.
    """
    try:
        with migrated_database(settings()) as db:
            _refuse_foreign_beginning(db, end)
    except FrontdeskError as error:
        fail(
            "The file begins after a pruning. Give --chain, or run this where the database of "
            f"its service is: only they tell that nothing else was cut off. ({error.detail})"
        )


def _refuse_foreign_beginning(db: Database, end: ChainEnd) -> None:
    pruning = end.pruning
    if pruning is not None and not db.ask(lambda tx: has_pruned(tx, pruning)):
        fail(
            "This installation has not pruned its trail there: the beginning of the file was cut "
            "off, or it is another one's."
        )


def _end_of_file(path: Path, *, whole: bool = False) -> ChainEnd:
    """The end of the file's chain. Ends the command where the chain is broken. Unless the file is
    to be `whole`, a last line without its end is left out.
    """
    with opened_file(path, "rb", "The file can't be read: {}.") as file, progress() as bar:
        tracked: Any = bar.wrap_file(file, total=path.stat().st_size, description="verifying")
        lines = BufferedReader(tracked)  # moving the bar at each line would take 10 µs
        try:
            ends = deque(ends_of(line for line in lines if whole or line.endswith(b"\n")), maxlen=1)
        except BrokenChain as broken:
            fail(
                f"Line {broken.line} is not what was exported there. Keep the file, "
                "and export to another one."
            )
    return ends[0] if ends else ChainEnd()


def _append(db: Database, file: BinaryIO, end: ChainEnd) -> tuple[ChainEnd, int]:
    """Write the entries that follow; the new end and their number."""
    settled = timedelta(seconds=SETTLED_SECONDS)
    count = 0
    until, last = db.ask(lambda tx: (database_time(tx) - settled, last_entry_id(tx)))
    with progress() as bar:
        task = bar.add_task("exporting", total=last - end.entry_id)
        while page := db.ask(
            partial(entries_after, entry_id=end.entry_id, until=until, limit=PAGE_ENTRIES)
        ):
            lines, ends = zip(*sealed(page, end), strict=True)
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
            bar.advance(task, ends[-1].entry_id - end.entry_id)
            end = ends[-1]
            count = count + len(page)
    return end, count
