"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits.

Members, the outcomes of the rows and the file's position are written in ONE transaction per chunk. A kill before the commit
leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report is complete. One thread writes
the chunks, in the order of the file.
"""

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from functools import partial

from frontdesk.db import Tx
from frontdesk.db.races import WriteInOne
from frontdesk.eligibility import count_members_open, enrol
from frontdesk.eligibility.decide import NOT_ENROLLED
from frontdesk.eligibility.dry_run import DryRun, dry_run
from frontdesk.eligibility.fields import FIELDS, REQUIRED
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, WARNING_MARK, Action, Enrolled, Outcome, Submission
from frontdesk.eligibility.probes import TooManyTaken
from frontdesk.errors import Fault, Invalid, NotFound, Unavailable
from frontdesk.files import store
from frontdesk.files.brakes import end_missing, hold_if_needed
from frontdesk.files.check import CheckResult, check_file
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import (
    NO_PLAN,
    NOT_NOW,
    NOT_STORED,
    NOTHING_TO_END,
    REFUSED,
    SKIPPED,
    WARNED_FIELDS,
    ChunkItem,
    ChunkRow,
    EligibilityFile,
    FileStep,
    RowOutcome,
)
from frontdesk.files.producer import GoOn, Producer
from frontdesk.files.rows import parse_rows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import REPEATED
from frontdesk.mapping.parser import remedy_for

# Rows that a chunk writes. SQLite has one writer, so others wait while a chunk is written (docs/decisions/0137).
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 1000
# SQLite lets go of the interpreter at every row; a thread that parses meanwhile would make each transaction longer.
SQLITE_AHEAD, POSTGRESQL_AHEAD = 0, 2
ROWS_TO_JUDGE_BY = 10_000
_MISSING = {(name, "required") for name in REQUIRED if name != "external_id"}


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
        end_missing(claim, check, writer.write)


def _reopens_absent(claim: FileClaim) -> bool:
    """Whether members come back that a full file before this one has ended by omitting them."""
    account_id = claim.file.account_id
    return claim.file.mode is FileMode.FULL and claim.db.ask(
        lambda tx: store.get_file_settings(tx, account_id).reopen_absent
    )


def _start(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store what the check found. The report begins anew before the first row: a held file listed what it would do, and the
    scratch database of an earlier worker's dry run is gone."""
    file = claim.file
    if file.dry_run or (file.step is not FileStep.END and not file.rows_done):
        store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    if file.step is not FileStep.CHECK and not file.dry_run:
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


def _write_rows(claim: FileClaim, check: CheckResult, writer: "ChunkWriter") -> None:
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
        yield [_refused_if_repeated(row, check) for row in chunk] if check.contradictory else chunk


def _refused_if_repeated(row: ChunkItem, check: CheckResult) -> ChunkItem:
    if row.external_id is None or hash(row.external_id) not in check.contradictory:
        return row
    faults = [] if isinstance(row, ChunkRow) else [Fault(*fault) for fault in row.faults]
    return RowOutcome.refused(row.place, row.external_id, [*faults, REPEATED])


def _check_refusals(file: EligibilityFile) -> None:
    """Raises Unreadable for a file that begins with nothing but refused rows: it is another list, or it needs a mapping."""
    if file.rows_done >= ROWS_TO_JUDGE_BY and file.counts.get(REFUSED) == file.rows_done:
        message = f"The first {file.rows_done:,} rows were all refused; the report says why. The rest was not looked at."
        raise Unreadable("all_refused", message)


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are. `reopens_absent` as in
    `enrol`."""

    def __init__(self, claim: FileClaim, dry_run: DryRun | None, *, reopens_absent: bool) -> None:
        self._claim, self._dry_run = claim, dry_run
        decide = (
            dry_run.enrol
            if dry_run
            else partial(
                enrol,
                uniqueness=claim.options.uniqueness,
                probe_limit=claim.options.probe_limit,
                audited=False,
            )
        )
        self._enrol = partial(decide, reopens_absent=reopens_absent)

    def write(self, rows: Sequence[ChunkItem]) -> None:
        """Write the rows and move the file's position. Raises LostClaim, Unavailable; then nothing is written."""
        claim = self._claim
        submissions = [row.submission for row in rows if isinstance(row, ChunkRow)]
        for attempt in WriteInOne[Submission, Enrolled](claim.db, submissions):
            with attempt:
                if self._dry_run is not None:
                    self._dry_run.begin_chunk()
                for part in attempt.parts():
                    with part:
                        part.results = self._enrol(part.tx, part.items, now=claim.clock())
                results = iter(attempt.results)
                outcomes = [
                    _outcome(row, next(results), claim.file) if isinstance(row, ChunkRow) else row
                    for row in rows
                ]
                rows_done = sum(row.place is not None for row in rows)
                claim.save_chunk(attempt.tx, outcomes, rows_done=rows_done)
        if self._dry_run is not None:
            self._dry_run.keep_chunk()
        claim.refresh()


def _outcome(row: ChunkRow, result: Enrolled | Exception, file: EligibilityFile) -> RowOutcome:
    if not isinstance(result, Enrolled):
        faults = faults_of(result)
        is_table = file.format is not Format.X12
        if row.submission.action is Action.END and is_table and [*faults] == [NOT_ENROLLED]:
            # An HR export lists employees who left before they were members. An 834 ends only whom its sender has enrolled.
            return RowOutcome(row.place, row.external_id, SKIPPED, warnings=[("external_id", NOTHING_TO_END)])
        faults = [_with_remedy(fault, is_table=is_table) for fault in faults]
        return RowOutcome.refused(row.place, row.external_id, faults)
    codes = (*row.warnings, *result.warnings)
    if row.place is None and result.outcome is Outcome.UNCHANGED:
        codes = ()  # a newer change kept the member from being ended, so the warning did not come true
    warnings: list[Sequence[str]] = [_warning(*code.split(WARNING_MARK, 1)) for code in codes]
    submission, values = row.submission, result.stored.values
    changed: Sequence[str] = ()
    left_plan_id = None  # of a stored member that moved
    if result.outcome is not Outcome.CREATED and result.changes:
        changed, left_plan_id = [name for name in result.changes if name in FIELDS], result.left_plan_id
    if submission.action is Action.COMPARE:
        warnings += [(name, "differs") for name in result.changes]
        changed, left_plan_id = (), None
    elif (
        "expiry_date" not in submission.record.given
        and values["expiry_date"] is not None
        and values["expiry_date"] <= max(file.file_date or "", values["effective_date"])
    ):
        # Else it would not be seen that a member that came back to a full file still has no access.
        warnings.append(("expiry_date", "still_ended"))
    member_id = int(values["id"] or 0)
    if member_id >= FIRST_DRY_RUN_ID:
        member_id = 0  # of a dry run
    outcome = result.outcome.value
    return RowOutcome(
        row.place, values["external_id"], outcome, member_id, (), warnings, changed, left_plan_id
    )


def _with_remedy(fault: Fault, *, is_table: bool) -> Fault:
    """The fault of a row; of a required field that is missing it says which rule of a mapping gives one."""
    if fault[:2] not in _MISSING:
        return fault
    return fault._replace(message=f"{fault.message}; {remedy_for(fault.field, is_table=is_table)}")


def _warning(code: str, *message: str) -> Sequence[str]:
    return (WARNED_FIELDS.get(code, "external_id"), code, *message)


def faults_of(error: Exception) -> Sequence[Fault]:
    """The faults of a row that could not be written."""
    if isinstance(error, Invalid | TooManyTaken):
        return error.faults
    if isinstance(error, NotFound):
        return [NO_PLAN]
    # The database would not take the row even alone.
    return [NOT_NOW if isinstance(error, Unavailable) else NOT_STORED]
