"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends absent members."""

from collections.abc import Iterator
from contextlib import nullcontext

from frontdesk.eligibility import dry_run
from frontdesk.files import store
from frontdesk.files.absence import end_missing, members_before
from frontdesk.files.check import CheckResult, IdentifierIndex, check_file
from frontdesk.files.chunks import ChunkWriter, keys_of
from frontdesk.files.claims import FileClaim
from frontdesk.files.codes import REPEATED
from frontdesk.files.model import ChunkRow, FileMode, FileStep
from frontdesk.files.parse import ParseJob, parse_in_process, parse_rows
from frontdesk.files.pipeline import ordered_commit, prefetch

# SQLite has one writer, so its chunks are short for the sake of others that wait to write.
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 2000
POSTGRESQL_THREADS = 2


def run_load(claim: FileClaim) -> None:
    """Do what is left to do of the file. Raises Unreadable, ApprovalNeeded, Stopped, LostClaim, Unavailable."""
    check = check_file(claim)
    _start(claim, check)
    rehearsal = dry_run(claim.options.uniqueness) if claim.file.dry_run else nullcontext()
    with rehearsal as scratch:
        writer = ChunkWriter(claim, scratch)
        if claim.file.step is FileStep.APPLY:
            _apply(claim, writer, check.identifiers)
            claim.update(step=FileStep.END)
        if check.mode is FileMode.FULL:
            end_missing(claim, writer, check)


def _start(claim: FileClaim, check: CheckResult) -> None:
    """Store what the check found. A dry run starts anew each time, since its scratch database is gone."""
    file = claim.file
    now = claim.clock()
    with claim.db.write() as tx:
        if file.dry_run:
            store.delete_outcomes(tx, file.id)
            claim.save(tx, step=FileStep.CHECK, chunks_done=0, rows_done=0, counts={})
        if file.step is FileStep.CHECK or file.dry_run:
            claim.save(
                tx,
                step=FileStep.APPLY,
                format=check.header.format,
                mode=check.mode,
                file_date=check.file_date,
                ignored=list(check.header.ignored),
                rows_total=check.rows,
                members_before=members_before(tx, file, check),
                started_at=file.started_at or now,
            )
    claim.refresh()


def _apply(claim: FileClaim, writer: ChunkWriter, identifiers: IdentifierIndex) -> None:
    alone = claim.db.is_sqlite or claim.file.dry_run
    ordered_commit(
        _chunks(claim, identifiers),
        lambda rows, turn: writer.write(rows, rows_done=len(rows), turn=turn),
        keys_of=keys_of,
        threads=1 if alone else POSTGRESQL_THREADS,
    )
    claim.checkpoint(FileStep.APPLY, claim.file.rows_done)


def _chunks(claim: FileClaim, identifiers: IdentifierIndex) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet. Rows of one identifier that differ can't all be meant, so each is refused."""
    for rows in _parsed(claim):
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        for row in rows:
            if row.external_id is not None and identifiers.is_contradictory(row.external_id):
                row.faults, row.submission = [*row.faults, REPEATED], None
        yield rows


def _parsed(claim: FileClaim) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, parsed while the database writes."""
    file, db, options = claim.file, claim.db, claim.options
    size = options.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    job = ParseJob(file.rows_done, size, claim.clock().date().isoformat())
    if (file.rows_total or 0) - file.rows_done >= options.subprocess_from_rows:
        return parse_in_process(db, file, job)
    chunks = parse_rows(db, file, job)
    # SQLite lets go of the interpreter at every row, and would wait for the parsing thread each time.
    return chunks if db.is_sqlite else prefetch(chunks)
