"""Loads a file: checks it, applies its rows by the chunk from where the last worker stopped, ends the members that it omits.

Rows that equal the same member's last row are recognised, the others are parsed into submissions by the rules and codes of a
POST (docs/decisions/0075). A member stores the digest of the row that it agrees with, and every write of the member sets or
clears it. A row with a stored digest is `unchanged`, without a warning: its outcome depends on nothing else.

Members, the outcomes of the rows and the file's position are written in ONE transaction per chunk. A kill before the commit
leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report is complete. One thread writes
the chunks, in the order of the file.
"""

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from hashlib import blake2b
from itertools import repeat
from typing import Any

import orjson

from frontdesk import eligibility
from frontdesk.db import Database, Tx, sets
from frontdesk.db.engine import write_in_one
from frontdesk.eligibility.decide import NOT_ENROLLED, TooManyTaken
from frontdesk.eligibility.enrol import DryRun, dry_run
from frontdesk.eligibility.fields import FIELDS, REQUIRED
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, WARNING_MARK, Action, Enrolled, Outcome, Submission
from frontdesk.errors import Fault, Invalid, NotFound, Unavailable
from frontdesk.files import model, store
from frontdesk.files.check import CheckResult, check_file, end_missing, hold_if_needed, open_rows
from frontdesk.files.claims import FileClaim, GoOn, reading_ahead
from frontdesk.files.families import ROW_MEANING_VERSION, FamilyRecogniser, KnownRows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.model import REPEATED, Row, UnreadRows, keys_of, read_loops
from frontdesk.mapping.parser import remedy_for
from frontdesk.plans import list_plans
from frontdesk.text import keyed_hash
from frontdesk.tracing import TRACES

# Rows that a chunk writes. SQLite has one writer, so other writes wait for a chunk (docs/decisions/0137).
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 1000
# SQLite releases the interpreter's lock at every row; a parsing thread would make each transaction longer.
SQLITE_AHEAD, POSTGRESQL_AHEAD = 0, 2
LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report
ROWS_TO_JUDGE_BY = 10_000
DIGEST_BYTES = 16
_MISSING = {(name, "required") for name in REQUIRED if name != "external_id"}


def run_load(claim: FileClaim) -> None:
    """Do the remaining work on the file. Raises Unreadable, ApprovalNeeded, Stopped, LostClaim, Unavailable."""
    check = check_file(claim)
    with claim.db.write() as tx:
        _start(tx, claim, check)
    claim.refresh()
    claim.options.act(claim.file)
    with dry_run(claim.options.uniqueness) if claim.file.dry_run else nullcontext() as scratch:
        writer = ChunkWriter(claim, scratch)
        if claim.file.step is model.FileStep.APPLY:
            if not (claim.file.rows_done or claim.file.dry_run):
                hold_if_needed(claim, check)
            _write_rows(claim, check, writer)
            claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
            # Of an 834 the check counts the rows of a member once, even where two people share its identifier.
            claim.update(step=model.FileStep.END, rows_total=claim.file.rows_done)
        if claim.file.dry_run:
            hold_if_needed(claim, check)
        elif check.mode is FileMode.FULL:
            end_missing(claim, check, writer.write)


def _start(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store the result of the check. The report is emptied before the first row: it may have the lines of a held file, or of a
    dry run whose scratch database is gone."""
    file, header = claim.file, check.header
    if file.dry_run or (file.step is not model.FileStep.END and not file.rows_done):
        store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    if file.step is not model.FileStep.CHECK and not file.dry_run:
        return
    found: dict[str, Any] = {"mode": check.mode, "file_date": check.file_date, "rows_total": check.rows}
    delimiter = header.columns[0] if header.columns else None
    found |= {"format": header.format, "encoding": header.encoding, "delimiter": delimiter}
    if check.mode is FileMode.FULL and file.members_before is None:
        found["members_before"] = eligibility.count_members_open(tx, file.plan_id, check.file_date)
    started_at, ignored = file.started_at or claim.clock(), [*header.ignored]
    claim.save(tx, step=model.FileStep.APPLY, started_at=started_at, ignored=ignored, **found)


def _write_rows(claim: FileClaim, check: CheckResult, writer: "ChunkWriter") -> None:
    """Write the remaining rows, a chunk at a time, while the next rows are parsed. Raises Unreadable for a file that begins with
    refused rows only: it is another list, or needs a mapping."""

    def look_up() -> None:
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)

    ahead = SQLITE_AHEAD if claim.db.is_sqlite else POSTGRESQL_AHEAD
    parse = partial(parse_rows, claim, check)
    with reading_ahead(parse, claim.running, look_up=look_up, ahead=ahead) as chunks:
        for rows in chunks:
            look_up()
            writer.write(rows)
            done = claim.file.rows_done
            if done >= ROWS_TO_JUDGE_BY and claim.file.counts.get(model.REFUSED) == done:
                rest = "the report says why. The rest was not read."
                raise Unreadable("all_refused", f"The first {done:,} rows were all refused; {rest}")


def parse_rows(claim: FileClaim, check: CheckResult, go_on: GoOn) -> Generator[list[model.ChunkItem]]:
    """The remaining rows in chunks: parsed rows up to the size of a chunk, together with known rows up to MOST_ROWS. The file's
    mode and date are stored. Calls `go_on` now and then."""
    db, file, today = claim.db, claim.file, f"{claim.clock():%Y-%m-%d}"
    chunk_rows = claim.options.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    recogniser = RowRecogniser(db, file, check, today=today)
    _, unread = open_rows(db, file, go_on, apart=check.apart)
    items = check.families.recognised(unread) if check.families else read_loops(unread)
    chunk, room, unchanged = list[model.ChunkItem](), chunk_rows, Outcome.UNCHANGED.value
    for batch in _batches(items, skip=file.rows_done):
        go_on()
        for item in recogniser.read(batch):
            chunk.append(item)
            room -= isinstance(item, model.ChunkRow) or item.outcome != unchanged
            if room == 0 or len(chunk) == MOST_ROWS:
                yield chunk
                chunk, room = [], chunk_rows
    if chunk:
        yield chunk


FileRows = Row | UnreadRows | KnownRows
# Of rows: their plan, their external_ids, and their digests, None for rows that are always parsed.
SeenRows = tuple[int | None, Sequence[str | None], Sequence[str | None]]


def _batches(items: Iterable[FileRows], *, skip: int) -> Iterator[list[FileRows]]:
    """The items after the first `skip` rows, in batches of at least LOOKUP_ROWS rows but for the last."""
    batch, rows = list[FileRows](), 0
    for item in items:
        size = 1 if isinstance(item, Row) else len(item)
        skip, start = max(skip - size, 0), skip
        if start < size:
            batch.append(item.part(start) if isinstance(item, UnreadRows) else item)
            rows += size - start
        if rows >= LOOKUP_ROWS:
            yield batch
            batch, rows = [], 0
    yield batch


class RowRecogniser:
    """Makes the digests of a file's rows, finds the stored ones, and parses the other rows. Rows with contradictory identifiers
    and rows for an inactive plan are always parsed: each gets a fault or a warning."""

    def __init__(self, db: Database, file: model.EligibilityFile, check: CheckResult, *, today: str) -> None:
        self._db, self._file, self._contradictory, self._today = db, file, check.contradictory, today
        plans = db.ask(lambda tx: list_plans(tx, file.account_id))
        self._plan_ids = {None: file.plan_id} | {plan.external_id: plan.id for plan in plans}
        key = db.ask(sets.installation_key)
        self._hasher = blake2b(ROW_MEANING_VERSION, digest_size=DIGEST_BYTES, key=key)
        self._text_hasher = self._hasher.copy()
        self._families = check.families or FamilyRecogniser(db, file, plans)
        told = (file.plan_id, check.header.columns, file.mapping)
        self._text_hasher.update(orjson.dumps(told, option=orjson.OPT_SORT_KEYS))
        is_compared = file.mode is FileMode.COMPARE
        self._always_parsed = {plan.id for plan in plans if is_compared or not plan.accepting_patients}

    def read(self, items: Sequence[FileRows]) -> Iterator[model.ChunkItem]:
        """In order: the outcomes of unchanged rows, and the other rows, parsed."""
        seen = [(None, (), ()) if isinstance(item, KnownRows) else self._see(item) for item in items]
        keys_to_find = [key for _, keys, digests in seen if any(digests) for key in keys if key]
        find = partial(eligibility.find_row_digests, external_ids=keys_to_find)
        known = self._db.ask(find) if keys_to_find else {}
        unchanged = Outcome.UNCHANGED.value
        for item, (plan_id, keys, digests) in zip(items, seen, strict=True):
            if isinstance(item, KnownRows):
                yield from map(
                    model.RowOutcome, item.places, repeat(None), repeat(unchanged), item.member_ids
                )
                continue
            for position, digest in enumerate(digests):
                if digest in known:
                    yield model.RowOutcome(item.place + position, keys[position], unchanged, known[digest])
                else:
                    yield self._parse(item.row(position), plan_id, digest)

    def _see(self, item: Row | UnreadRows) -> SeenRows:
        """The digests cover the plan and every value, and so the account and the identifier."""
        plan_id, keys = self._plan_ids.get(None if isinstance(item, UnreadRows) else item.plan), keys_of(item)
        digests: Sequence[str | None]
        if plan_id in self._always_parsed:
            digests = [None] * len(keys)
        elif isinstance(item, UnreadRows):
            digests = [keyed_hash(text, self._text_hasher) for text in item.texts]
        else:
            digests = [self._digest_of_row(item, plan_id)]
        if self._contradictory:
            pairs = zip(keys, digests, strict=True)
            digests = [None if hash(key) in self._contradictory else digest for key, digest in pairs]
        return plan_id, keys, digests

    def _digest_of_row(self, row: Row, plan_id: int | None) -> str | None:
        if row.skipped or row.faults or row.is_warned or row.action is not Action.ENROL:
            return None
        if row.part is not None:
            return self._families.digest_of(row.part)
        hasher = self._hasher.copy()
        try:
            person = row.context.person and tuple(row.context.person)
            hasher.update(orjson.dumps((plan_id, row.values, row.values_of_new, person)))
        except TypeError:  # half of a surrogate pair, or a number that no field takes
            return None
        return hasher.hexdigest()

    def _parse(self, row: Row, plan_id: int | None, digest: str | None) -> model.ChunkItem:
        file = self._file
        if row.skipped:
            return model.RowOutcome(row.place, None, model.SKIPPED)
        values, context = row.values, row.context
        if row.action is Action.END and not values.get("expiry_date"):
            values = values | {"expiry_date": file.file_date}
            context = context._replace(keeps_earlier_end=True)
        of_new = row.values_of_new
        given = {**values, **of_new} if of_new else values
        record = eligibility.parse_member(given, today=self._today, lenient=True)
        if of_new:
            given_of_new = {name: record.given.pop(name) for name in of_new if name in record.given}
            context = context._replace(given_of_new=given_of_new)
        faults = list(row.faults)
        if faults:  # they explain a missing identifier
            faults += [fault for fault in record.faults if fault[:2] != ("external_id", "required")]
        if plan_id is None:
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


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are."""

    def __init__(self, claim: FileClaim, dry_run: DryRun | None) -> None:
        self._claim, self._dry_run = claim, dry_run
        file = claim.file
        # Members that an earlier full file has ended by absence are reopened.
        settings = claim.db.ask(lambda tx: store.get_file_settings(tx, file.account_id))
        reopens_absent = file.mode is FileMode.FULL and settings.reopen_absent
        write = partial(eligibility.enrol, uniqueness=claim.options.uniqueness, audited=False)
        self._enrol = partial(dry_run.enrol if dry_run else write, reopens_absent=reopens_absent)

    def write(self, rows: Sequence[model.ChunkItem]) -> None:
        """Write the rows and move the file's position. Raises LostClaim, Unavailable; then nothing is written."""
        claim, began = self._claim, time.monotonic()
        submissions = [row.submission for row in rows if isinstance(row, model.ChunkRow)]

        def save(tx: Tx, results: Sequence[Enrolled | Exception]) -> None:
            left = iter(results)
            outcomes = [
                _outcome(row, next(left), claim.file) if isinstance(row, model.ChunkRow) else row
                for row in rows
            ]
            claim.save_chunk(tx, outcomes, rows_done=sum(row.place is not None for row in rows))

        enrol = partial(self._enrol, now=claim.clock())
        begin = self._dry_run.begin_chunk if self._dry_run else None
        write_in_one(claim.db, submissions, enrol, save=save, begin=begin)
        if self._dry_run is not None:
            self._dry_run.keep_chunk()
        claim.refresh()
        if TRACES.tracer is not None:
            known = {"file_id": claim.file.id, "chunk": claim.file.chunks_done, "rows": len(rows)}
            TRACES.record("file.chunk", time.monotonic() - began, known)


def _outcome(
    row: model.ChunkRow, result: Enrolled | Exception, file: model.EligibilityFile
) -> model.RowOutcome:
    if not isinstance(result, Enrolled):
        return _refusal(row, faults_of(result), is_table=file.format is not Format.X12)
    submission, values = row.submission, result.stored.values
    codes = (*row.warnings, *result.warnings)
    if row.place is None and result.outcome is Outcome.UNCHANGED:
        codes = ()  # a newer change kept the member from being ended, so the warning did not come true
    marked = [code.split(WARNING_MARK, 1) for code in codes]
    warnings: list[Sequence[str]] = [
        (model.WARNED_FIELDS.get(code[0], "external_id"), *code) for code in marked
    ]
    changed: Sequence[str] = ()
    left_plan_id = None  # of a stored member that moved
    if submission.action is Action.COMPARE:
        warnings += [(name, "differs") for name in result.changes]
    else:
        if result.outcome is not Outcome.CREATED and result.changes:
            changed, left_plan_id = [name for name in result.changes if name in FIELDS], result.left_plan_id
        end = None if "expiry_date" in submission.record.given else values["expiry_date"]
        if end is not None and end <= max(file.file_date or "", values["effective_date"]):
            # Otherwise the report would not show that a member in a full file still has no access.
            warnings.append(("expiry_date", "still_ended"))
    member_id = int(values["id"] or 0)
    if member_id >= FIRST_DRY_RUN_ID:
        member_id = 0  # of a dry run
    key, outcome = values["external_id"], result.outcome.value
    return model.RowOutcome(row.place, key, outcome, member_id, (), warnings, changed, left_plan_id)


def _refusal(row: model.ChunkRow, faults: Sequence[Fault], *, is_table: bool) -> model.RowOutcome:
    """The outcome of a row that was not taken. For a required field that is missing it says which rule of a mapping gives one."""
    if row.submission.action is Action.END and is_table and [*faults] == [NOT_ENROLLED]:
        # An HR export lists employees who left before they were members. An 834 ends only whom its sender has enrolled.
        warning = ("external_id", model.NOTHING_TO_END)
        return model.RowOutcome(row.place, row.external_id, model.SKIPPED, warnings=[warning])
    told = [
        fault._replace(message=f"{fault.message}; {remedy_for(fault.field, is_table=is_table)}")
        if fault[:2] in _MISSING
        else fault
        for fault in faults
    ]
    return model.RowOutcome.refused(row.place, row.external_id, told)


def faults_of(error: Exception) -> Sequence[Fault]:
    """The faults of a row that could not be written."""
    if isinstance(error, Invalid | TooManyTaken):
        return error.faults
    if isinstance(error, NotFound):
        return [model.NO_PLAN]
    # The database would not take the row even alone.
    code = "not_now" if isinstance(error, Unavailable) else "not_stored"
    return [Fault("external_id", code, model.REPORT_CODES[code])]
