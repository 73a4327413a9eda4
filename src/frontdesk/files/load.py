"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open
from frontdesk.errors import Fault
from frontdesk.files import report_store, store
from frontdesk.files.check import CheckResult
from frontdesk.files.chunks import ChunkWriter
from frontdesk.files.claims import FileClaim
from frontdesk.files.missing import end_missing, hold_moves
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
from frontdesk.files.open_loads import Chunks, OpenLoad
from frontdesk.files.pace import ChunkPace
from frontdesk.files.parsing_process import parse_in_process
from frontdesk.files.rows import ParseOptions, parse_rows
from frontdesk.files.threads import ordered_commit, prefetch

CHUNK_ROWS = 2000  # which are to be written; a ChunkPace cuts them on SQLite
# Two writers on two processors left single POSTs too little: their p99 was 7 times the quiet one (docs/decisions/0094).
POSTGRESQL_THREADS = 2 if (os.cpu_count() or 1) > 2 else 1
ROWS_TO_JUDGE_BY = 10_000


def run_load(claim: FileClaim, load: OpenLoad) -> None:
    """Do what is left to do of the file. Raises Unreadable, ApprovalNeeded, Stopped, LostClaim, Unavailable."""
    check = load.check.finish(claim)
    with claim.db.write() as tx:
        _start(tx, claim, check, is_resumed=load.has_started)
    load.has_started = True
    claim.refresh()
    pace = load.pace if claim.options.chunk_rows is None else None
    writer = ChunkWriter(claim, load.scratch, pace, reopens_absent=_reopens_absent(claim))
    if claim.file.step is FileStep.APPLY:
        if not (claim.file.rows_done or claim.file.dry_run):
            hold_moves(claim, check)
        alone = claim.db.is_sqlite or claim.file.dry_run
        threads = 1 if alone else POSTGRESQL_THREADS
        ordered_commit(
            _chunks(claim, load, check, pace), writer.write, keys_of=writer.keys_of, threads=threads
        )
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        claim.update(step=FileStep.END)
    if claim.file.dry_run:
        hold_moves(claim, check)
    if check.mode is FileMode.FULL:
        end_missing(claim, writer, check, pace)


def _reopens_absent(claim: FileClaim) -> bool:
    """Whether members come back that a full file before this one has ended by omitting them."""
    account_id = claim.file.account_id
    return claim.file.mode is FileMode.FULL and claim.db.ask(
        lambda tx: store.get_file_settings(tx, account_id).reopen_absent
    )


def _start(tx: Tx, claim: FileClaim, check: CheckResult, *, is_resumed: bool) -> None:
    """Store what the check found. A dry run starts anew when its scratch database is gone."""
    file = claim.file
    if file.dry_run and not is_resumed:
        report_store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    elif file.step is not FileStep.CHECK:
        return
    members_before = file.members_before
    if check.mode is FileMode.FULL and members_before is None:
        members_before = count_members_open(tx, file.plan_id, check.file_date)
    if not file.dry_run and check.mode is not FileMode.COMPARE:
        store.add_shared_numbers(tx, file, check.shared)
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


def _chunks(
    claim: FileClaim, load: OpenLoad, check: CheckResult, pace: ChunkPace | None
) -> Iterator[Sequence[ChunkItem]]:
    """The rows that are not applied yet. Rows of one identifier that differ can't all be meant, so each is refused.

    A turn ends between two chunks, so the next turn goes on with the chunk after the last that was committed.
    """
    load.begin_rows(claim.file.rows_done, partial(_parse, claim, check, pace))
    while True:
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        _check_refusals(claim.file)
        while not (rows := load.next_chunk()):
            if rows is None:
                return
            claim.checkpoint(FileStep.APPLY, claim.file.rows_done, is_reading=True)
        yield [_refused_if_repeated(row, check) for row in rows] if check.identifiers.differing else rows


def _refused_if_repeated(row: ChunkItem, check: CheckResult) -> ChunkItem:
    if row.external_id is None or not check.is_contradictory(row.external_id):
        return row
    faults = [] if isinstance(row, ChunkRow) else [Fault(*fault) for fault in row.faults]
    return RowOutcome.refused(row.place, row.external_id, [*faults, REPEATED])


def _parse(claim: FileClaim, check: CheckResult, pace: ChunkPace | None) -> Chunks:
    """The chunks of rows that are not applied yet, parsed while the database writes."""
    chunks = _parse_where_it_pays(claim, check)
    return chunks if pace is None else pace.cut(chunks)


def _parse_where_it_pays(claim: FileClaim, check: CheckResult) -> Chunks:
    """A process of its own parses what is left of a large file from where most rows are unknown: to recognise those before
    costs less than to start it."""
    file, db, options = claim.file, claim.db, claim.options
    parse: ParseOptions = {
        "chunk_rows": options.chunk_rows or CHUNK_ROWS,
        "today": claim.clock().date().isoformat(),
        "apart": check.apart,
        "shared": check.shared,
    }
    here = parse_rows(db, file, **parse, leave_from_rows=options.subprocess_from_rows)
    # SQLite lets go of the interpreter at every row, and would wait for the parsing thread each time.
    with closing(here if db.is_sqlite else prefetch(here)) as chunks:
        rows_done = file.rows_done
        for chunk in chunks:
            rows_done += len(chunk)
            yield chunk
    if rows_done < (file.rows_total or 0):
        yield from parse_in_process(db, replace(file, rows_done=rows_done), **parse)


def _check_refusals(file: EligibilityFile) -> None:
    """Raises Unreadable for a file that begins with nothing but refused rows: it is another list, or it needs a mapping."""
    if file.rows_done >= ROWS_TO_JUDGE_BY and file.counts.get(REFUSED) == file.rows_done:
        message = f"The first {file.rows_done:,} rows were all refused; the report says why. The rest was not looked at."
        raise Unreadable("all_refused", message)
