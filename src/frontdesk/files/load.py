"""Applies the rows of a file by the chunk, from where the last worker stopped.

Rows that equal the same member's last row are recognised, the others are parsed into submissions by
the rules and codes of a POST (docs/decisions/0075). A member stores the digest of the row that it
agrees with, and every write of the member sets or clears it. A row with a stored digest is
`unchanged`, without a warning: its outcome depends on nothing else.

Members, the outcomes of the rows and the file's position are written in ONE transaction per chunk.
A death before the commit leaves nothing of the chunk, a death after it everything: no row is
applied twice, and the report is complete. One thread writes the chunks, in the order of the file.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count, repeat
from typing import Any

from frontdesk import codes, eligibility
from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_in_one
from frontdesk.eligibility.access_days import AccessNote
from frontdesk.eligibility.coverages import ChangeKind, CoverageChange
from frontdesk.eligibility.decide import HOME, NOT_ENROLLED
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.fields import FIELDS, REQUIRED
from frontdesk.eligibility.model import (
    FIRST_DRY_RUN_ID,
    Action,
    Enrolled,
    MemberWarning,
    Outcome,
    Submission,
)
from frontdesk.eligibility.persons import stated_person
from frontdesk.eligibility.probes import TooManyTaken
from frontdesk.eligibility.row_access import FileTerms
from frontdesk.errors import Fault, Invalid, NotFound, Unavailable
from frontdesk.files import model
from frontdesk.files.check import CheckResult, open_rows
from frontdesk.files.claims import FileClaim, GoOn, reading_ahead
from frontdesk.files.families import KnownRows
from frontdesk.files.row_digests import RowDigests, SeenRows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import REPEATED, Row, UnreadRows, read_loops
from frontdesk.mapping.parser import remedy_for
from frontdesk.plans import list_plans
from frontdesk.reach import Reach
from frontdesk.tracing import TRACES

# Rows that a chunk writes. SQLite has one writer, so other writes wait for a chunk
# (docs/decisions/0137).
SQLITE_ROWS = 250
POSTGRESQL_ROWS = 1000
# SQLite releases the interpreter's lock at every row; a parsing thread would make each transaction
# longer.
SQLITE_AHEAD = 0
POSTGRESQL_AHEAD = 2
LOOKUP_ROWS = 1000
COVERAGES = "coverages"  # a stored value that a row of an 834 changes; no field of the interface
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report
ROWS_TO_JUDGE_BY = 10_000
_MISSING = {(name, "required") for name in REQUIRED if name != "external_id"}


def apply_rows(claim: FileClaim, check: CheckResult, writer: "ChunkWriter") -> None:
    """Write the remaining rows, a chunk at a time, while the next rows are parsed. Raises
    Unreadable for a file that begins with refused rows only: it is another list, or needs a
    mapping.
    """
    with reading_chunks(claim, check, model.FileStep.APPLY) as chunks:
        for rows in chunks:
            claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
            writer.write(rows)
            refuse_if_all_refused(claim.file)
    claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)


@contextmanager
def reading_chunks(
    claim: FileClaim, check: CheckResult, step: model.FileStep
) -> Iterator[Iterator[list[model.ChunkItem]]]:
    """The remaining rows in chunks, while a thread parses the next ones. The progress is of the
    step.
    """

    def checkpoint() -> None:
        claim.checkpoint(step, claim.file.rows_done)

    ahead = SQLITE_AHEAD if claim.db.is_sqlite else POSTGRESQL_AHEAD
    parse = partial(parse_rows, claim, check)
    with reading_ahead(parse, claim.running, checkpoint=checkpoint, ahead=ahead) as chunks:
        yield chunks


def refuse_if_all_refused(file: model.EligibilityFile) -> None:
    done = file.rows_done
    if done >= ROWS_TO_JUDGE_BY and file.counts.get(model.REFUSED) == done:
        rest = "the report says why. The rest was not read."
        detail = f"The first {done:,} rows were all refused; {rest}"
        raise Unreadable(codes.files.ALL_REFUSED, detail)


def parse_rows(
    claim: FileClaim, check: CheckResult, go_on: GoOn
) -> Generator[list[model.ChunkItem]]:
    """The remaining rows in chunks: parsed rows up to the size of a chunk, together with known rows
    up to MOST_ROWS. The file's mode and date are stored. Calls `go_on` now and then.
    """
    db = claim.db
    file = claim.file
    account = db.ask(partial(get_account, account_id=file.account_id))
    today = account_day(claim.clock(), account.time_zone).latest
    chunk_rows = claim.options.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    recogniser = RowRecogniser(db, file, check, today=today)
    _, unread = open_rows(db, file, go_on, apart=check.apart)
    items = check.families.recognised(unread) if check.families else read_loops(unread)
    chunk = list[model.ChunkItem]()
    room = chunk_rows
    unchanged = Outcome.UNCHANGED.value
    for batch in _batches(items, skip=file.rows_done):
        go_on()
        for item in recogniser.read(batch):
            chunk.append(item)
            room -= isinstance(item, model.ChunkRow) or item.outcome != unchanged
            if room == 0 or len(chunk) == MOST_ROWS:
                yield chunk
                chunk = []
                room = chunk_rows
    if chunk:
        yield chunk


FileRows = Row | UnreadRows | KnownRows
_NOT_SEEN: SeenRows = (None, (), ())


def _batches(items: Iterable[FileRows], *, skip: int) -> Iterator[list[FileRows]]:
    """The items after the first `skip` rows, in batches of at least LOOKUP_ROWS rows but for the
    last.
    """
    batch = list[FileRows]()
    rows = 0
    for item in items:
        size = 1 if isinstance(item, Row) else len(item)
        skip, start = max(skip - size, 0), skip
        if start < size:
            batch.append(item.part(start) if isinstance(item, UnreadRows) else item)
            rows += size - start
        if rows >= LOOKUP_ROWS:
            yield batch
            batch = []
            rows = 0
    yield batch


class RowRecogniser:
    """Finds the stored digests of a file's rows, and parses the other rows. Rows with contradictory
    identifiers are always parsed: each gets a fault.
    """

    def __init__(
        self, db: Database, file: model.EligibilityFile, check: CheckResult, *, today: str
    ) -> None:
        self._db = db
        self._file = file
        self._contradictory = check.contradictory
        self._today = today
        plans = db.ask(partial(list_plans, reach=Reach.of(file.account_id)))
        self._digests = RowDigests(
            db, file, check.header, plans, mode=check.mode, families=check.families
        )

    def read(self, items: Sequence[FileRows]) -> Iterator[model.ChunkItem]:
        """In order: the outcomes of unchanged rows, and the other rows, parsed."""
        seen = [_NOT_SEEN if isinstance(item, KnownRows) else self._see(item) for item in items]
        known = self._find_digests(seen)
        unchanged = Outcome.UNCHANGED.value
        for item, (plan_id, keys, digests) in zip(items, seen, strict=True):
            if isinstance(item, KnownRows):
                empty = repeat(())
                yield from map(
                    model.RowOutcome,
                    item.places,
                    repeat(None),
                    repeat(unchanged),
                    item.member_ids,
                    *(empty, empty, empty),  # faults, warnings, changed
                    repeat(None),
                    repeat(item.transaction),
                    count(item.ordinal),
                )
                continue
            for position, digest in enumerate(digests):
                if digest is not None and digest in known:
                    known_row = model.RowOutcome(
                        item.place + position, keys[position], unchanged, known[digest]
                    )
                    yield _placed(known_row, item)
                else:
                    yield _placed(self._parse(item.row(position), plan_id, digest), item)

    def _find_digests(self, seen: Sequence[SeenRows]) -> dict[str, int]:
        """The stored digests of the members of these rows, with the members' ids."""
        external_ids = [key for _, keys, digests in seen if any(digests) for key in keys if key]
        if not external_ids:
            return {}
        find = partial(eligibility.find_row_digests, external_ids=external_ids)
        return self._db.ask(find)

    def _see(self, item: Row | UnreadRows) -> SeenRows:
        plan_id, keys, digests = self._digests.see(item)
        if self._contradictory:
            pairs = zip(keys, digests, strict=True)
            digests = [
                None if hash(key) in self._contradictory else digest for key, digest in pairs
            ]
        return plan_id, keys, digests

    def _with_plan(self, change: CoverageChange) -> CoverageChange:
        return change._replace(plan_id=self._digests.plan_of(change.plan))

    def _parse(self, row: Row, plan_id: int | None, digest: str | None) -> model.ChunkItem:
        file = self._file
        if row.skipped:
            warnings = model.stored_warnings(row.warnings)
            return model.RowOutcome(row.place, None, model.SKIPPED, warnings=warnings)
        values = row.values
        context = row.context
        if row.action is Action.END and not values.get("expiry_date") and not context.coverages:
            values = values | {"expiry_date": file.file_date}
            context = context._replace(keeps_earlier_end=True)
        if row.stated_values:
            # What can't be read is no fault of an end.
            stated = eligibility.parse_member(row.stated_values, today=self._today, lenient=True)
            context = context._replace(person=stated_person(stated.given))
        of_new = row.values_of_new
        given = {**values, **of_new} if of_new else values
        record = eligibility.parse_member(given, today=self._today, lenient=True)
        if of_new:
            given_of_new = {name: record.given.pop(name) for name in of_new if name in record.given}
            context = context._replace(given_of_new=given_of_new)
        context = context._replace(coverages=tuple(map(self._with_plan, context.coverages)))
        faults = list(row.faults)
        if faults:  # they explain a missing identifier
            faults += [fault for fault in record.faults if fault[:2] != ("external_id", "required")]
        begin_nowhere = any(
            each.kind is ChangeKind.SET and each.plan_id is None for each in context.coverages
        )
        if plan_id is None or begin_nowhere:
            faults.append(model.NO_PLAN)
        if record.external_id is not None and hash(record.external_id) in self._contradictory:
            faults.append(REPEATED)  # differing rows of one identifier contradict each other
        if faults or plan_id is None:
            return model.RowOutcome.refused(row.place, record.external_id, faults)
        action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
        digest = None if record.faults or record.warnings or row.is_warned else digest
        by = (file.client, file.request_id, action, file.id, None, digest, context)
        submission = Submission(file.account_id, plan_id, record, *by)
        return model.ChunkRow(row.place, record.external_id, submission, row.warnings)


def _placed(item: model.ChunkItem, row: Row | UnreadRows) -> model.ChunkItem:
    """The item with its place in the transaction, if it is of an 834."""
    if isinstance(row, UnreadRows) or not row.transaction:
        return item
    if isinstance(item, model.RowOutcome):
        return item._replace(transaction_number=row.transaction, member_number=row.ordinal)
    item.transaction_number = row.transaction
    item.member_number = row.ordinal
    return item


def file_terms(file: model.EligibilityFile, today: str) -> FileTerms:
    """How the rows of the file, which began `today`, are decided in a load and in a dry run. A person
    who approves a file late means what it says of members that have stayed as they were.
    """
    return FileTerms(
        file.file_date or "",
        today,
        may_reopen=file.mode is FileMode.FULL,
        unless_changed_since=file.created_at if file.approved else None,
    )


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are.
    `today` is the day on which the file began.
    """

    def __init__(self, claim: FileClaim, dry_run: DryRun | None, today: str) -> None:
        self._claim = claim
        self._dry_run = dry_run
        self._today = today
        self._results: Sequence[Enrolled | Exception] = ()

    def write(self, rows: Sequence[model.ChunkItem]) -> Sequence[Enrolled | Exception]:
        """Write the rows and move the file's position, in one transaction. Returns the results of
        the ChunkRows among them. Raises LostClaim, Unavailable; then nothing is written.
        """
        claim = self._claim
        began = time.monotonic()
        submissions = [row.submission for row in rows if isinstance(row, model.ChunkRow)]
        write_in_one(
            claim.db,
            submissions,
            partial(self._enrol, now=claim.clock()),
            save=partial(self._save, rows=rows),
            begin=self._dry_run.begin_chunk if self._dry_run else None,
        )
        if self._dry_run is not None:
            self._dry_run.keep_chunk()
        claim.refresh()
        if TRACES.tracer is not None:
            entry = {"file_id": claim.file.id, "chunk": claim.file.chunks_done, "rows": len(rows)}
            TRACES.record("file.chunk", time.monotonic() - began, entry)
        return self._results

    def _enrol(
        self, tx: Tx, submissions: Sequence[Submission], *, now: datetime
    ) -> Iterable[Enrolled | Exception]:
        """In the transaction of a chunk: decide the rows, and write the members."""
        terms = file_terms(self._claim.file, self._today)
        if self._dry_run is not None:
            return self._dry_run.enrol(tx, submissions, now=now, file=terms)
        return eligibility.enrol(
            tx,
            submissions,
            now=now,
            uniqueness=self._claim.options.uniqueness,
            audited=False,
            file=terms,
        )

    def _save(
        self, tx: Tx, results: Sequence[Enrolled | Exception], *, rows: Sequence[model.ChunkItem]
    ) -> None:
        """In the transaction of a chunk, after `_enrol`: write the outcomes and the position."""
        file = self._claim.file
        self._results = results
        remaining = iter(results)
        outcomes = []
        rows_done = 0
        for row in rows:
            rows_done += row.place is not None
            if isinstance(row, model.ChunkRow):
                outcome = _outcome(row, next(remaining), file, self._today)
                if row.transaction_number:
                    outcome = outcome._replace(
                        transaction_number=row.transaction_number, member_number=row.member_number
                    )
                outcomes.append(outcome)
            else:
                outcomes.append(row)
        self._claim.save_chunk(tx, outcomes, rows_done=rows_done)


def _outcome(
    row: model.ChunkRow, result: Enrolled | Exception, file: model.EligibilityFile, today: str
) -> model.RowOutcome:
    if not isinstance(result, Enrolled):
        return refusal_of(row, result, file)
    values = result.stored.values
    warnings = [*row.warnings, *result.warnings]
    if not values[HOME]:  # the stored member keeps an address of its own
        warnings = [each for each in warnings if each.code != codes.rows.ADDRESS_OF_SUBSCRIBER]
    if row.place is None and result.outcome is Outcome.UNCHANGED:
        # A newer change kept the member from being ended, so the warning did not come true.
        warnings = []
    changed: Sequence[str] = ()
    left_plan_id = None  # of a stored member that moved
    if row.submission.action is Action.COMPARE:
        warnings += [MemberWarning(codes.rows.DIFFERS, name) for name in result.changes]
    elif result.outcome is not Outcome.CREATED and result.changes:
        changed = [name for name in result.changes if name in FIELDS or name == COVERAGES]
        left_plan_id = result.left_plan_id
    member_id = int(values["id"] or 0)
    return model.RowOutcome(
        place=row.place,
        external_id=values["external_id"],
        outcome=result.outcome.value,
        member_id=member_id if member_id < FIRST_DRY_RUN_ID else 0,
        warnings=model.stored_warnings(warnings),
        changed=changed,
        left_plan_id=left_plan_id,
        access=note_of(result, today),
    )


def note_of(result: Enrolled, today: str) -> Sequence[Any]:
    """The access before and after for the report, if the days differ."""
    if result.access is None:
        return ()
    note = AccessNote.of(result.access, today)
    return () if note.before == note.after else tuple(note)


def refusal_of(
    row: model.ChunkRow, error: Exception, file: model.EligibilityFile
) -> model.RowOutcome:
    """The outcome of a row that was not taken. For a required field that is missing it says which
    rule of a mapping gives one.
    """
    faults = faults_of(error)
    is_table = file.format is not Format.X12
    if row.submission.action is Action.END and is_table and [*faults] == [NOT_ENROLLED]:
        # An HR export lists employees that left before they were members. An 834 ends only members
        # that its sender has enrolled.
        warning = MemberWarning.of(codes.rows.NOTHING_TO_END)
        return model.RowOutcome(
            row.place, row.external_id, model.SKIPPED, warnings=model.stored_warnings([warning])
        )
    with_remedies = []
    for fault in faults:
        if fault[:2] in _MISSING:
            remedy = remedy_for(fault.field, is_table=is_table)
            with_remedies.append(fault._replace(message=f"{fault.message}; {remedy}"))
        else:
            with_remedies.append(fault)
    return model.RowOutcome.refused(row.place, row.external_id, with_remedies)


def faults_of(error: Exception) -> Sequence[Fault]:
    """The faults of a row that could not be written."""
    if isinstance(error, Invalid | TooManyTaken):
        return error.faults
    if isinstance(error, NotFound):
        return [model.NO_PLAN]
    # The database would not take the row even alone.
    code = codes.rows.NOT_NOW if isinstance(error, Unavailable) else codes.rows.NOT_STORED
    return [Fault("external_id", code, code.sentence)]
