"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits."""

from collections.abc import Generator
from contextlib import nullcontext
from functools import partial

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open
from frontdesk.eligibility.dry_run import DryRun, dry_run
from frontdesk.errors import Fault
from frontdesk.files import store
from frontdesk.files.brakes import end_missing, hold_if_needed
from frontdesk.files.check import CheckResult, check_file
from frontdesk.files.chunks import ChunkWriter
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import (
    REFUSED,
    REPEATED,
    ChunkItem,
    ChunkRow,
    EligibilityFile,
    FileMode,
    FileStep,
    RowOutcome,
    Unreadable,
)
from frontdesk.files.producer import GoOn, Producer
from frontdesk.files.rows import parse_rows

# Rows that a chunk writes. SQLite has one writer, so others wait while a chunk is written (docs/decisions/0137).
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 1000
# SQLite lets go of the interpreter at every row; a thread that parses meanwhile would make each transaction longer.
SQLITE_AHEAD, POSTGRESQL_AHEAD = 0, 2
ROWS_TO_JUDGE_BY = 10_000


def run_load(claim: FileClaim) -> None:
    """Do what is left to do of the file. Raises Unreadable, ApprovalNeeded, Stopped, LostClaim, Unavailable."""
    options = claim.options
    check = check_file(claim)
    rehearsal = dry_run(options.uniqueness, probe_limit=options.probe_limit)
    with rehearsal if claim.file.dry_run else nullcontext() as scratch:
        _apply(claim, check, scratch)


def _apply(claim: FileClaim, check: CheckResult, scratch: DryRun | None) -> None:
    with claim.db.write() as tx:
        _start(tx, claim, check)
    claim.refresh()
    writer = ChunkWriter(claim, scratch, reopens_absent=_reopens_absent(claim))
    if claim.file.step is FileStep.APPLY:
        if not (claim.file.rows_done or claim.file.dry_run):
            hold_if_needed(claim, check)
        _write_rows(claim, check, writer)
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        # Of an 834 the check counts the rows of a member once, even where two people share its identifier.
        claim.update(step=FileStep.END, rows_total=claim.file.rows_done)
    if claim.file.dry_run:
        hold_if_needed(claim, check)
    elif check.mode is FileMode.FULL:
        end_missing(claim, writer, check)


def _reopens_absent(claim: FileClaim) -> bool:
    """Whether members come back that a full file before this one has ended by omitting them."""
    account_id = claim.file.account_id
    return claim.file.mode is FileMode.FULL and claim.db.ask(
        lambda tx: store.get_file_settings(tx, account_id).reopen_absent
    )


def _start(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store what the check found. A dry run starts anew, since the scratch database of an earlier worker is gone."""
    file = claim.file
    if file.dry_run:
        store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    elif file.step is not FileStep.CHECK:
        return
    members_before = file.members_before
    if check.mode is FileMode.FULL and members_before is None:
        members_before = count_members_open(tx, file.plan_id, check.file_date)
    claim.save(
        tx,
        step=FileStep.APPLY,
        format=check.header.format,
        encoding=check.header.encoding,
        delimiter=check.header.delimiter,
        mode=check.mode,
        file_date=check.file_date,
        ignored=list(check.header.ignored),
        rows_total=check.rows,
        members_before=members_before,
        started_at=file.started_at or claim.clock(),
    )


def _write_rows(claim: FileClaim, check: CheckResult, writer: ChunkWriter) -> None:
    """Write the rows that are not applied yet, a chunk at a time, while the next ones are parsed."""

    def look_up() -> None:
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)

    ahead = SQLITE_AHEAD if claim.db.is_sqlite else POSTGRESQL_AHEAD
    with Producer(partial(_parse, claim, check), claim.running, ahead=ahead) as producer:
        for rows in producer.items(look_up):
            look_up()
            writer.write(rows)
            _check_refusals(claim.file)


def _parse(claim: FileClaim, check: CheckResult, go_on: GoOn) -> Generator[list[ChunkItem]]:
    """Rows of one identifier that differ can't all be meant, so each is refused."""
    rows = SQLITE_ROWS if claim.db.is_sqlite else POSTGRESQL_ROWS
    chunks = parse_rows(
        claim.db,
        claim.file,
        go_on,
        chunk_rows=claim.options.chunk_rows or rows,
        today=claim.clock().date().isoformat(),
        apart=check.apart,
    )
    for chunk in chunks:
        yield [_refused_if_repeated(row, check) for row in chunk] if check.identifiers.differing else chunk


def _refused_if_repeated(row: ChunkItem, check: CheckResult) -> ChunkItem:
    if row.external_id is None or not check.is_contradictory(row.external_id):
        return row
    faults = [] if isinstance(row, ChunkRow) else [Fault(*fault) for fault in row.faults]
    return RowOutcome.refused(row.place, row.external_id, [*faults, REPEATED])


def _check_refusals(file: EligibilityFile) -> None:
    """Raises Unreadable for a file that begins with nothing but refused rows: it is another list, or it needs a mapping."""
    if file.rows_done >= ROWS_TO_JUDGE_BY and file.counts.get(REFUSED) == file.rows_done:
        message = f"The first {file.rows_done:,} rows were all refused; the report says why. The rest was not looked at."
        raise Unreadable("all_refused", message)
