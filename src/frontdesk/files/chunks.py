"""One chunk of a file: its rows decided and written, with their outcomes and the file's position, in ONE transaction.

A kill before the commit leaves nothing of the chunk, after it everything: no row is applied twice and the report is
complete. What is written is `enrol`'s business.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from frontdesk.db import Tx
from frontdesk.db.races import WriteInOne
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import Action, Enrolled, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.files import outcomes, store
from frontdesk.files.claims import FileClaim
from frontdesk.files.codes import NOT_NOW, NOT_STORED, WARNED_FIELDS
from frontdesk.files.model import REFUSED, ChunkRow, RowOutcome
from frontdesk.files.pipeline import CommitTurn, OutOfTurn

Write = Callable[[Tx, Sequence[Submission]], Sequence[Enrolled | FrontdeskError]]


def keys_of(lines: Sequence[ChunkRow]) -> set[str]:
    """All that the lines can find a member by. Two chunks without a common one don't see one another."""
    given = [line.submission.record.given for line in lines if line.submission is not None]
    return {key for column in UNIQUE.values() for values in given if (key := values.get(column)) is not None}


def write_chunk(
    claim: FileClaim, lines: Sequence[ChunkRow], write: Write, *, rows: int, place: CommitTurn | None = None
) -> None:
    """Write the lines, their outcomes and the position, `rows` further on, and commit when it is the chunk's turn.

    Raises LostClaim, Unavailable; then nothing is written.
    """
    place = place or CommitTurn()
    submissions = [line.submission for line in lines if line.submission is not None]

    def finish(tx: Tx, results: Sequence[Enrolled | Exception]) -> None:
        answers = iter(results)
        entries = [
            _refused(line, line.faults)
            if line.submission is None
            else _entry(line, next(answers), claim.file.file_date or "")
            for line in lines
        ]
        packed = outcomes.pack(entries)
        place.come()
        file = claim.file  # as the chunk before has left it
        store.insert_outcomes(tx, file.id, file.chunks_done, file.step, packed)
        counts = dict(Counter(file.counts) + outcomes.count(entries))
        claim.save(tx, chunks_done=file.chunks_done + 1, rows_done=file.rows_done + rows, counts=counts)

    while True:
        try:
            for attempt in WriteInOne[Submission, Enrolled](claim.db, submissions):
                with attempt:
                    for part in attempt.parts():
                        with part:
                            part.results = write(part.tx, part.items)
                    finish(attempt.tx, attempt.results)
            break
        except OutOfTurn:
            place.stand()
    claim.refresh()


def _refused(line: ChunkRow, faults: Iterable[Fault]) -> RowOutcome:
    return RowOutcome(line.place, line.external_id, REFUSED, 0, [*map(tuple, faults)])


def _entry(line: ChunkRow, result: Enrolled | Exception, file_date: str) -> RowOutcome:
    if isinstance(result, Invalid):
        return _refused(line, result.faults)
    if isinstance(result, NotFound):
        return _refused(line, [Fault("plan", "not_found", "is not a plan of the account")])
    if not isinstance(result, Enrolled):  # the database would not take the row even alone
        return _refused(line, [NOT_NOW if isinstance(result, Unavailable) else NOT_STORED])
    codes = (*line.warnings, *result.warnings)
    if line.place is None and result.outcome is Outcome.UNCHANGED:
        codes = ()  # not named, and left alone: what would have been told did not come about
    warnings = [(WARNED_FIELDS.get(code, "external_id"), code) for code in codes]
    if line.submission is not None and line.submission.action is Action.COMPARE:
        warnings += [(name, "differs") for name in result.changes]
    elif result.stored.values["expiry_date"] is not None and _stays_ended(line, result, file_date):
        warnings.append(("expiry_date", "still_ended"))
    member_id = 0 if result.outcome is Outcome.UNCHANGED else int(result.stored.values["id"] or 0)
    return RowOutcome(line.place, line.external_id, result.outcome.value, member_id, (), warnings)


def _stays_ended(line: ChunkRow, result: Enrolled, file_date: str) -> bool:
    """Whether the file names a member whose access has ended, and says nothing of it: absent is kept. Without a word
    about it nobody would see that who came back to a full file still has no access."""
    if line.submission is None or "expiry_date" in line.submission.record.given:
        return False
    values = result.stored.values
    return bool(values["expiry_date"] <= max(file_date, values["effective_date"]))
