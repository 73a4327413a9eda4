"""Writes the chunks of a file: members, the outcomes of the rows and the file's position, in ONE transaction per chunk.

A kill before the commit leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report
is complete. On PostgreSQL two chunks are written at once and committed in order; rows are read ahead of their use.
"""

import time
from collections.abc import Sequence
from functools import partial

from frontdesk.db.races import WriteInOne
from frontdesk.db.sqlite import others_wrote
from frontdesk.eligibility import enrol
from frontdesk.eligibility.decide import NOT_ENROLLED
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.fields import REQUIRED, UNIQUE
from frontdesk.eligibility.model import WARNING_MARK, Action, Enrolled, Outcome, Submission
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
from frontdesk.files.pace import ChunkPace
from frontdesk.files.rules import remedy_for
from frontdesk.files.threads import CommitTurn, OutOfTurn

_MISSING = {(name, "required") for name in REQUIRED if name != "external_id"}
PROBES = "\0probes"  # no member has this key


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are. A pace is told of each chunk.
    `reopens_absent` as in `enrol`."""

    def __init__(
        self, claim: FileClaim, dry_run: DryRun | None, pace: ChunkPace | None, *, reopens_absent: bool
    ) -> None:
        self._claim, self._pace, self._dry_run = claim, pace, dry_run
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

    def keys_of(self, rows: Sequence[ChunkItem]) -> set[str]:
        """Every value by which the rows can find a member. Chunks without a common one do not affect one another.

        Those of a client with probes have one in common: they are counted under one lock: a later chunk would hold it while it
        waits for an earlier one.
        """
        records = [row.submission.record for row in rows if isinstance(row, ChunkRow)]
        keys = {
            key
            for column in UNIQUE.values()
            for record in records
            if (key := record.given.get(column)) is not None
        }
        for record in records:
            if record.hints:
                keys.update(record.hints.subscriber_keys)
                if record.hints.family and record.hints.family.digest:
                    keys.add(record.hints.family.digest)
        if (limit := self._claim.options.probe_limit) is not None and limit.has_told(self._claim.file.client):
            keys.add(PROBES)
        return keys

    def write(self, rows: Sequence[ChunkItem], turn: CommitTurn) -> None:
        """Write the rows, move the file's position, and commit when it is the chunk's turn.

        Raises LostClaim, Unavailable; then nothing is written.
        """
        try:
            seconds, others = self._write(rows, turn)
        except OutOfTurn:
            turn.wait()
            seconds, others = self._write(rows, turn)
        if self._pace is not None:
            written = sum(isinstance(row, ChunkRow) for row in rows)
            self._pace.note(written, seconds, others_wrote=others)
        self._claim.refresh()

    def _write(self, rows: Sequence[ChunkItem], turn: CommitTurn) -> tuple[float, bool]:
        """The seconds of the transaction, and on SQLite whether others have written since the last one."""
        claim = self._claim
        submissions = [row.submission for row in rows if isinstance(row, ChunkRow)]
        began, others = 0.0, False
        for attempt in WriteInOne[Submission, Enrolled](claim.db, submissions):
            began = time.monotonic()
            with attempt:
                if self._dry_run is not None:
                    self._dry_run.begin_chunk()
                others = claim.db.is_sqlite and others_wrote(attempt.tx)
                for part in attempt.parts():
                    with part:
                        part.results = self._enrol(part.tx, part.items, now=claim.clock())
                results = iter(attempt.results)
                outcomes = [
                    _outcome(row, next(results), claim.file) if isinstance(row, ChunkRow) else row
                    for row in rows
                ]
                turn.take()
                rows_done = sum(row.place is not None for row in rows)
                claim.save_chunk(attempt.tx, outcomes, rows_done=rows_done)
        if self._dry_run is not None:
            self._dry_run.keep_chunk()
        return time.monotonic() - began, others


def _outcome(row: ChunkRow, result: Enrolled | Exception, file: EligibilityFile) -> RowOutcome:
    if not isinstance(result, Enrolled):
        hints = row.submission.record.hints
        shown = None if hints and hints.hides_key else row.external_id
        faults = faults_of(result)
        if (
            row.submission.action is Action.END
            and file.format is not Format.X12
            and [*faults] == [NOT_ENROLLED]
        ):
            # An HR export lists employees who left before they were members. An 834 ends only whom its sender has enrolled.
            return RowOutcome(row.place, shown, SKIPPED, warnings=[("external_id", NOTHING_TO_END)])
        if file.format is not Format.X12:
            faults = [*map(_with_remedy, faults)]
        return RowOutcome.refused(row.place, shown, faults)
    codes = (*row.warnings, *result.warnings)
    if row.place is None and result.outcome is Outcome.UNCHANGED:
        codes = ()  # a newer change kept the member from being ended, so the warning did not come true
    warnings: list[Sequence[str]] = [_warning(*code.split(WARNING_MARK, 1)) for code in codes]
    submission, values = row.submission, result.stored.values
    if submission.action is Action.COMPARE:
        warnings += [(name, "differs") for name in result.changes]
    elif (
        "expiry_date" not in submission.record.given
        and values["expiry_date"] is not None
        and values["expiry_date"] <= max(file.file_date or "", values["effective_date"])
    ):
        # Else it would not be seen that a member that came back to a full file still has no access.
        warnings.append(("expiry_date", "still_ended"))
    member_id = 0 if result.outcome is Outcome.UNCHANGED else int(values["id"] or 0)
    return RowOutcome(row.place, values["external_id"], result.outcome.value, member_id, (), warnings)


def _with_remedy(fault: Fault) -> Fault:
    """The fault of a table's row; of a required field it says which rule of a mapping gives one."""
    if fault[:2] not in _MISSING:
        return fault
    return fault._replace(message=f"{fault.message}; {remedy_for(fault.field)}")


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
