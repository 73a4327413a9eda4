"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits."""

from collections.abc import Iterator
from contextlib import nullcontext

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open, dry_run
from frontdesk.files import store
from frontdesk.files.chunks import ChunkWriter, keys_of
from frontdesk.files.claims import FileClaim
from frontdesk.files.missing import end_missing
from frontdesk.files.model import REPEATED, ChunkRow, FileMode, FileStep
from frontdesk.files.rows import CheckResult, check_file, parse_in_process, parse_rows
from frontdesk.files.threads import ordered_commit, prefetch

# SQLite has one writer, so its chunks are short for the sake of others that wait to write.
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 2000
POSTGRESQL_THREADS = 2


def run_load(claim: FileClaim) -> None:
    """Do what is left to do of the file. Raises Unreadable, ApprovalNeeded, Stopped, LostClaim, Unavailable."""
    check = check_file(claim)
    with claim.db.write() as tx:
        _start(tx, claim, check)
    claim.refresh()
    rehearsal = dry_run(claim.options.uniqueness) if claim.file.dry_run else nullcontext()
    with rehearsal as scratch:
        writer = ChunkWriter(claim, scratch, reopens_absent=_reopens_absent(claim))
        if claim.file.step is FileStep.APPLY:
            alone = claim.db.is_sqlite or claim.file.dry_run
            threads = 1 if alone else POSTGRESQL_THREADS
            ordered_commit(_chunks(claim, check), writer.write, keys_of=keys_of, threads=threads)
            claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
            claim.update(step=FileStep.END)
        if check.mode is FileMode.FULL:
            end_missing(claim, writer, check)


def _reopens_absent(claim: FileClaim) -> bool:
    """Whether members come back that a full file before this one has ended by omitting them."""
    account_id = claim.file.account_id
    return claim.file.mode is FileMode.FULL and claim.db.ask(
        lambda tx: store.get_file_settings(tx, account_id).reopen_absent
    )


def _start(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store what the check found. A dry run starts anew each time, since its scratch database is gone."""
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
        mode=check.mode,
        file_date=check.file_date,
        ignored=list(check.header.ignored),
        rows_total=check.rows,
        members_before=members_before,
        started_at=file.started_at or claim.clock(),
    )


def _chunks(claim: FileClaim, check: CheckResult) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, parsed while the database writes. Rows of one identifier that differ can't all be
    meant, so each is refused."""
    file, db, options = claim.file, claim.db, claim.options
    chunk_rows = options.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    in_process = (file.rows_total or 0) - file.rows_done >= options.subprocess_from_rows
    parse = parse_in_process if in_process else parse_rows
    today = claim.clock().date().isoformat()
    chunks = parse(db, file, chunk_rows=chunk_rows, today=today, apart=check.apart)
    # SQLite lets go of the interpreter at every row, and would wait for the parsing thread each time.
    for rows in chunks if in_process or db.is_sqlite else prefetch(chunks):
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        for row in rows:
            if row.external_id is not None and check.is_contradictory(row.external_id):
                row.faults, row.submission, row.known = [*row.faults, REPEATED], None, False
        yield rows
