"""The rehearsal of a file: its rows are decided once before the first of them is applied, by the
decisions of the load, and no member is written. What it says is what the load will say
(docs/files.md, Decide about a held file).

It is left out where it could say nothing: no row brings news of a stored member, and a full file
omits none. A dry run is a rehearsal with a report.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.db import Tx
from frontdesk.eligibility.access_days import AccessPair, spans_of
from frontdesk.eligibility.coverages import ChangeKind
from frontdesk.eligibility.days import day_before
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, Action, Enrolled, MemberAccess, Submission
from frontdesk.eligibility.persons import names_in
from frontdesk.errors import Invalid
from frontdesk.files import model
from frontdesk.files.absence import access_after, find_missing, kept_line, would_end
from frontdesk.files.check import CheckResult
from frontdesk.files.claims import FileClaim
from frontdesk.files.forecast import Cause, Forecast, ForecastPair
from frontdesk.files.holds import shown_losses
from frontdesk.files.kept import kept_by_refused
from frontdesk.files.load import (
    ChunkWriter,
    file_terms,
    reading_chunks,
    refusal_of,
    refuse_if_all_refused,
)
from frontdesk.formats.model import FileMode

Results = Sequence[Enrolled | Exception]
NAMES = ("first_name", "last_name")
Decide = Callable[[Sequence[model.ChunkItem]], Results]


def needs_rehearsal(file: model.EligibilityFile, check: CheckResult) -> bool:
    """Whether the file has news of stored members, or may omit some."""
    return file.dry_run or check.mode is FileMode.FULL or _has_news(check)


def rehearse(claim: FileClaim, check: CheckResult, dry_run: DryRun, today: str) -> Forecast:
    """What the file would do. The report of a dry run gets the outcomes of its rows, and of the
    members that it omits.
    """
    forecast = Forecast(dry_run.scratch, today, shown_losses(claim))
    writer = ChunkWriter(claim, dry_run, today)
    refused: Sequence[int] = ()
    if claim.file.dry_run:
        refused = _decide_rows(claim, check, forecast, writer.write)
    elif _has_news(check):
        refused = _decide_rows(claim, check, forecast, partial(_decided, claim, dry_run, today))
    if check.mode is FileMode.FULL:
        kept = kept_by_refused(claim, check, refused)
        _note_missing(claim, check, forecast, kept)
    return forecast


def _has_news(check: CheckResult) -> bool:
    """A full file may refuse rows about members that none of its identifiers meets."""
    may_concern = bool(check.met) or check.mode is FileMode.FULL
    return check.mode is not FileMode.COMPARE and check.is_news and may_concern


def _decide_rows(
    claim: FileClaim, check: CheckResult, forecast: Forecast, decide: Decide
) -> Sequence[int]:
    """Returns the numbers of the refused rows, ascending."""
    step = model.FileStep.APPLY if claim.file.dry_run else model.FileStep.CHECK
    done = 0
    refused = array("q")
    with reading_chunks(claim, check, step) as chunks:
        for rows in chunks:
            claim.checkpoint(step, done)
            results = decide(rows)
            _note(forecast, rows, results, is_full=check.mode is FileMode.FULL)
            refused.extend(_refused_of(rows, results, claim.file))
            done += len(rows)
            if claim.file.dry_run:
                refuse_if_all_refused(claim.file)
    claim.checkpoint(step, done)
    return array("q", sorted(refused))


def _refused_of(
    rows: Sequence[model.ChunkItem], results: Results, file: model.EligibilityFile
) -> Iterator[int]:
    remaining = iter(results)
    for row in rows:
        if isinstance(row, model.RowOutcome):
            outcome = row.outcome
        else:
            result = next(remaining)
            if isinstance(result, Enrolled):
                continue
            outcome = refusal_of(row, result, file).outcome
        if outcome == model.REFUSED and row.place is not None:
            yield row.place


def _decided(
    claim: FileClaim, dry_run: DryRun, today: str, rows: Sequence[model.ChunkItem]
) -> Results:
    """The results of the rows that the database decides, without a report."""
    submissions = [row.submission for row in rows if isinstance(row, model.ChunkRow)]
    if not submissions:
        return []

    def decide(tx: Tx) -> Results:
        dry_run.begin_chunk()
        return dry_run.enrol(
            tx,
            submissions,
            now=claim.clock(),
            file=file_terms(claim.file, today),
            counts_probes=False,
        )

    results = claim.db.ask(decide)
    dry_run.keep_chunk()
    return results


def _note(
    forecast: Forecast, rows: Sequence[model.ChunkItem], results: Results, *, is_full: bool
) -> None:
    """Note what the rows do to stored members."""
    decided = [row for row in rows if isinstance(row, model.ChunkRow)]
    pairs = []
    lines = []
    for row, result in zip(decided, results, strict=True):
        if row.submission.action is Action.COMPARE:
            continue
        other = _code_of_other_person(result)
        if other is not None:
            lines.append(_line(row, model.WOULD_BE_OTHER, other))
        if not isinstance(result, Enrolled):
            continue
        if result.stored.is_new or result.stored.values["id"] >= FIRST_DRY_RUN_ID:
            continue
        if is_full and _begins_later(row.submission, result, forecast.today):
            lines.append(_line(row, model.WOULD_BE_LATER, codes.rows.BEGINS_AFTER_TODAY))
        if result.access is not None:
            pairs.append(_pair_of(row, result, result.access))
    forecast.note_pairs(pairs)
    forecast.note_lines(lines)
    forecast.note_nameless(sum(map(_names_nobody, results)))


def _names_nobody(result: Enrolled | Exception) -> bool:
    """Whether a refused row lacks a name for its new identifier, or may have swallowed other rows: a
    cell with a line break has a stray quotation mark.
    """
    if not isinstance(result, Invalid):
        return False
    return any(
        fault.code == codes.faults.CONTROL_CHARACTER
        or (fault.code == codes.faults.REQUIRED and fault.field in NAMES)
        for fault in result.faults
    )


def _pair_of(row: model.ChunkRow, result: Enrolled, access: AccessPair) -> ForecastPair:
    values = result.stored.values
    plan_id = access.before[0].plan_id if access.before else values["plan_id"]
    cause = Cause.END if row.submission.action is Action.END else Cause.DATES
    return ForecastPair(values["id"], values["external_id"], plan_id, access, cause, row.place)


def _begins_later(submission: Submission, result: Enrolled, today: str) -> bool:
    """Whether the row of a full file begins after today, for a member with access under its plan
    today, although that does not end the day before: then the file may be the list of a later day.
    """
    begins = [
        change.begin
        for change in submission.context.coverages
        if change.kind is ChangeKind.SET and change.begin
    ]
    begin = min(begins, default=submission.record.given.get("effective_date"))
    if not begin or begin <= today:
        return False
    before = result.access.before if result.access else spans_of(result.stored.values)
    holding = [
        span
        for span in before
        if span.begin <= today <= span.end and span.plan_id == submission.plan_id
    ]
    return bool(holding) and all(span.end != day_before(begin) for span in holding)


def _code_of_other_person(result: Enrolled | Exception) -> Code | None:
    """The code that says why the row is, or may be, about another person; None if it is not."""
    if isinstance(result, Invalid):
        is_other = any(fault.code == codes.rows.IDENTITY_CONFLICT for fault in result.faults)
        return codes.rows.IDENTITY_CONFLICT if is_other else None
    if not isinstance(result, Enrolled):
        return None
    if any(each.code == codes.rows.FIRST_NAME_CHANGED for each in result.warnings):
        return codes.rows.FIRST_NAME_CHANGED
    before, after = result.changes.get("last_name", (None, None))
    if before and after and names_in(before).isdisjoint(names_in(after)):
        return codes.rows.LAST_NAME_CHANGED
    return None


def _line(row: model.ChunkRow, outcome: str, code: Code) -> model.RowOutcome:
    return model.RowOutcome(
        place=row.place,
        external_id=row.external_id,
        outcome=outcome,
        faults=[(code.field or "external_id", str(code), code.sentence)],
        transaction_number=row.transaction_number,
        member_number=row.member_number,
    )


def _note_missing(
    claim: FileClaim, check: CheckResult, forecast: Forecast, kept: Mapping[int, int]
) -> None:
    """Note the members that a full file would end because it omits them; a dry run lists them.
    `kept` are those that it omits and would not end, with the numbers of their refused rows.
    """
    missing = 0
    for members in find_missing(claim.db, claim.file, check):
        ended = [_absence(member, check) for member in members if member.id not in kept]
        missing += len(ended)
        claim.checkpoint(model.FileStep.END, missing)
        forecast.note_missing(ended)
        if members and claim.file.dry_run:
            lines = (
                kept_line(member, kept[member.id])
                if member.id in kept
                else would_end(member, check, forecast.today)
                for member in members
            )
            claim.save_list([*lines])
    if claim.file.members_missing is None:
        claim.update(members_missing=missing)


def _absence(member: MemberAccess, check: CheckResult) -> ForecastPair:
    access = access_after(member, check)
    return ForecastPair(member.id, member.external_id, member.plan_id, access, Cause.ABSENCE)
