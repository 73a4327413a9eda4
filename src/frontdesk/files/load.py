"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits.

The feared day is the full file that lost half of its rows. So no member is ended when too many would be, until a person
approves it (docs/files.md).
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open, dry_run, list_members_under, parse_member
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.files import store
from frontdesk.files.chunks import ChunkWriter, keys_of
from frontdesk.files.claims import FileClaim
from frontdesk.files.jobs import newer_full_file
from frontdesk.files.model import REPEATED, ChunkRow, FileMode, FileStep
from frontdesk.files.rows import CheckResult, IdentifierIndex, check_file, parse_in_process, parse_rows
from frontdesk.files.threads import CommitTurn, ordered_commit, prefetch

# SQLite has one writer, so its chunks are short for the sake of others that wait to write.
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 2000
POSTGRESQL_THREADS = 2

THRESHOLD_PERCENT, THRESHOLD_MEMBERS = 10, 25  # of the plan's members, and at least so many
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one


class ApprovalNeeded(Exception):
    """No member is ended until a person approves it."""


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
            ordered_commit(_chunks(claim, check.identifiers), writer.write, keys_of=keys_of, threads=threads)
            claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
            claim.update(step=FileStep.END)
        if check.mode is FileMode.FULL:
            _end_missing(claim, writer, check)


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
        claim.save(tx, chunks_done=0, rows_done=0, counts={})
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


def _chunks(claim: FileClaim, identifiers: IdentifierIndex) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, parsed while the database writes. Rows of one identifier that differ can't all be
    meant, so each is refused."""
    file, db, options = claim.file, claim.db, claim.options
    chunk_rows = options.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    in_process = (file.rows_total or 0) - file.rows_done >= options.subprocess_from_rows
    parse = parse_in_process if in_process else parse_rows
    chunks = parse(db, file, chunk_rows=chunk_rows, today=claim.clock().date().isoformat())
    # SQLite lets go of the interpreter at every row, and would wait for the parsing thread each time.
    for rows in chunks if in_process or db.is_sqlite else prefetch(chunks):
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        for row in rows:
            if row.external_id is not None and identifiers.is_contradictory(row.external_id):
                row.faults, row.submission, row.known = [*row.faults, REPEATED], None, False
        yield rows


def _end_missing(claim: FileClaim, writer: ChunkWriter, check: CheckResult) -> None:
    """End the plan's members that the file omits: their expiry_date becomes the file's date. Raises ApprovalNeeded.

    It is never before effective_date (docs/interface.md, Fields of a member): access that was to begin later ends on its
    first day, and the report warns of it. A member that was changed after the work on the file began is left alone: the
    change is newer than the file. Members that are ended already are not found again, so a killed run goes on where it
    stopped.
    """
    missing = 0
    for batch in _missing(claim, check):
        claim.checkpoint(FileStep.END, 0)
        missing += len(batch)
    if claim.file.members_missing is None:
        claim.update(members_missing=missing)
    if not missing:
        return
    claim.db.ask(lambda tx: _check_approval(tx, claim, missing=missing, unnamed=check.unnamed))
    ended = 0
    for batch in _missing(claim, check):
        claim.checkpoint(FileStep.END, ended)
        writer.write([_ending(claim, member, check) for member in batch], CommitTurn())
        ended += len(batch)


def _check_approval(tx: Tx, claim: FileClaim, *, missing: int, unnamed: int) -> None:
    """Files of an account run one at a time, so a newer one has run by now or comes after this one."""
    file = claim.file
    if (newer := newer_full_file(tx, file, started=True)) is not None:
        raise ApprovalNeeded(
            f"A newer full file of the plan, file {newer}, has come since. It may list members that this file omits."
        )
    if file.approved:
        return
    before, rows = file.members_before or 0, file.rows_total or 0
    would_be = f"{missing} of the plan's {before} members would be ended"
    limit = max(before * THRESHOLD_PERCENT // 100, THRESHOLD_MEMBERS)
    if missing > limit:
        raise ApprovalNeeded(f"{would_be}, more than {limit}.")
    last = store.last_full_rows(tx, file.plan_id, file.id)
    if last is not None and rows * SHRUNK_FACTOR < last:
        raise ApprovalNeeded(f"The file has {rows} rows, less than half of the {last} of the last full one.")
    if unnamed:
        raise ApprovalNeeded(
            f"{would_be}. The external_id of {unnamed} rows can't be read; they may be theirs."
        )


def _missing(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, in batches. Each batch is read before the one before it is written over."""
    file, after = claim.file, 0
    while True:
        at = after
        found = claim.db.ask(
            lambda tx, at=at: list_members_under(tx, file.plan_id, after_id=at, limit=SQLITE_ROWS)  # type: ignore[misc]
        )
        if not found:
            return
        after = found[-1].id
        batch = [
            member
            for member in found
            if (member.expiry_date is None or member.expiry_date > _last_day(member, check))
            and (file.started_at is None or member.updated_at <= file.started_at)
            and not check.identifiers.contains(member.external_id)
        ]
        if batch:
            yield batch


def _last_day(member: MemberAccess, check: CheckResult) -> str:
    return max(check.file_date, member.effective_date)


def _ending(claim: FileClaim, member: MemberAccess, check: CheckResult) -> ChunkRow:
    file, day = claim.file, _last_day(member, check)
    record = parse_member({"external_id": member.external_id, "expiry_date": day}, today=check.file_date)
    submission = Submission(
        file.account_id,
        file.plan_id,
        record,
        file.client,
        file.request_id,
        Action.END_ABSENT,
        file.id,
        file.started_at,
    )
    warnings = () if day == check.file_date else ("ends_on_first_day",)
    return ChunkRow(None, member.external_id, submission, (), warnings)
