"""Writes the chunks of a file: members, the outcomes of the rows and the file's position, in ONE transaction per chunk.

A kill before the commit leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report
is complete. One thread writes them, in the order of the file.
"""

from collections.abc import Sequence
from functools import partial

from frontdesk.db.races import WriteInOne
from frontdesk.eligibility import enrol
from frontdesk.eligibility.decide import NOT_ENROLLED
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.fields import FIELDS, REQUIRED
from frontdesk.eligibility.model import FIRST_DRY_RUN_ID, WARNING_MARK, Action, Enrolled, Outcome, Submission
from frontdesk.eligibility.probes import TooManyTaken
from frontdesk.errors import Fault, Invalid, NotFound, Unavailable
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import (
    NO_PLAN,
    NOT_NOW,
    NOT_STORED,
    NOTHING_TO_END,
    SKIPPED,
    WARNED_FIELDS,
    ChunkItem,
    ChunkRow,
    EligibilityFile,
    Format,
    RowOutcome,
)
from frontdesk.files.rules import remedy_for

_MISSING = {(name, "required") for name in REQUIRED if name != "external_id"}


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
    changed, left_plan_id = _changes(result)
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


def _changes(result: Enrolled) -> tuple[Sequence[str], int | None]:
    """The fields of a stored member that changed, and the plan that it left."""
    if result.outcome is Outcome.CREATED or not result.changes:
        return (), None
    return [name for name in result.changes if name in FIELDS], result.left_plan_id


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
