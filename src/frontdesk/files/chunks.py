"""Writes one chunk of a file: its members, the outcomes of its rows and the file's position, in ONE transaction.

A kill before the commit leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report
is complete.
"""

from collections.abc import Sequence

from frontdesk.db import Tx
from frontdesk.db.races import WriteInOne
from frontdesk.eligibility import enrol
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import Action, Enrolled, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.files.claims import FileClaim
from frontdesk.files.codes import NO_PLAN, NOT_NOW, NOT_STORED, WARNED_FIELDS
from frontdesk.files.model import ChunkRow, RowOutcome
from frontdesk.files.pipeline import CommitTurn, OutOfTurn
from frontdesk.files.report import count_outcomes, pack, refused


def keys_of(rows: Sequence[ChunkRow]) -> set[str]:
    """Every value by which the rows can find a member. Chunks without a common one do not affect one another."""
    given = [row.submission.record.given for row in rows if row.submission is not None]
    return {key for column in UNIQUE.values() for values in given if (key := values.get(column)) is not None}


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are."""

    def __init__(self, claim: FileClaim, dry_run: DryRun | None) -> None:
        self._claim = claim
        self._dry_run = dry_run

    def write(self, rows: Sequence[ChunkRow], *, rows_done: int, turn: CommitTurn) -> None:
        """Write the rows, move the file's position by `rows_done`, and commit when it is the chunk's turn.

        Raises LostClaim, Unavailable; then nothing is written.
        """
        claim = self._claim
        submissions = [row.submission for row in rows if row.submission is not None]
        while True:
            try:
                for attempt in WriteInOne[Submission, Enrolled](claim.db, submissions):
                    with attempt:
                        for part in attempt.parts():
                            with part:
                                part.results = self._enrol(part.tx, part.items)
                        outcomes = self._outcomes(rows, attempt.results)
                        packed, counts = pack(outcomes), count_outcomes(outcomes)
                        turn.take()
                        claim.save_chunk(attempt.tx, packed, counts, rows=rows_done)
                break
            except OutOfTurn:
                turn.wait()
        claim.refresh()

    def _enrol(self, tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
        now, uniqueness = self._claim.clock(), self._claim.options.uniqueness
        if self._dry_run is not None:
            return self._dry_run.enrol(tx, submissions, now=now)
        return enrol(tx, submissions, now=now, uniqueness=uniqueness, audited=False)

    def _outcomes(
        self, rows: Sequence[ChunkRow], results: Sequence[Enrolled | Exception]
    ) -> list[RowOutcome]:
        answers = iter(results)
        return [
            refused(row.place, row.external_id, row.faults)
            if row.submission is None
            else self._outcome(row, row.submission, next(answers))
            for row in rows
        ]

    def _outcome(self, row: ChunkRow, submission: Submission, result: Enrolled | Exception) -> RowOutcome:
        if not isinstance(result, Enrolled):
            return refused(row.place, row.external_id, faults_of(result))
        codes = (*row.warnings, *result.warnings)
        if row.place is None and result.outcome is Outcome.UNCHANGED:
            codes = ()  # a newer change kept the member from being ended, so the warning did not come true
        warnings = [(WARNED_FIELDS.get(code, "external_id"), code) for code in codes]
        if submission.action is Action.COMPARE:
            warnings += [(name, "differs") for name in result.changes]
        elif self._stays_ended(submission, result):
            warnings.append(("expiry_date", "still_ended"))
        values = result.stored.values
        member_id = 0 if result.outcome is Outcome.UNCHANGED else int(values["id"] or 0)
        return RowOutcome(row.place, row.external_id, result.outcome.value, member_id, (), warnings)

    def _stays_ended(self, submission: Submission, result: Enrolled) -> bool:
        """True if the row names a member whose access has ended, and has no expiry_date: the stored one is kept.

        Without a warning it would not be seen that a member that came back to a full file still has no access.
        """
        values = result.stored.values
        if "expiry_date" in submission.record.given or values["expiry_date"] is None:
            return False
        return bool(values["expiry_date"] <= max(self._claim.file.file_date or "", values["effective_date"]))


def faults_of(error: Exception) -> Sequence[Fault]:
    """The faults of a row that could not be written."""
    if isinstance(error, Invalid):
        return error.faults
    if isinstance(error, NotFound):
        return [NO_PLAN]
    # The database would not take the row even alone.
    return [NOT_NOW if isinstance(error, Unavailable) else NOT_STORED]
