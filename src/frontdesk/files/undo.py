"""Taking back a file, chunk by chunk from its last to its first; how a member is taken back is `eligibility.restore`'s."""

from collections import Counter
from collections.abc import Sequence

from frontdesk.db.races import WriteInOne
from frontdesk.eligibility import restore
from frontdesk.eligibility.model import RestoredMember, UndoRequest
from frontdesk.errors import Fault
from frontdesk.files import outcomes, store
from frontdesk.files.claims import FileClaim
from frontdesk.files.codes import NOT_STORED
from frontdesk.files.jobs import get_file
from frontdesk.files.load import RunOptions
from frontdesk.files.model import REFUSED, EligibilityFile, FileStep, RowOutcome
from frontdesk.files.outcomes import read_outcomes


def run_undo(claim: FileClaim, turn: RunOptions) -> None:
    """Go on after the last committed chunk. Raises Stopped, LostClaim, Unavailable."""
    undone = claim.db.ask(lambda tx: get_file(tx, claim.file.undoes_id or 0, account_id=None))
    if claim.file.started_at is None:
        claim.update(
            started_at=claim.clock(), rows_total=sum(undone.counts.values()), file_date=undone.file_date
        )
    last = undone.chunks_done - 1 - claim.file.chunks_done
    for entries in read_outcomes(claim.db, undone.id, backwards_from=last):
        turn.breathe(claim, FileStep.APPLY, claim.file.rows_done)
        changed = [entry for entry in reversed(entries) if entry.member_id]
        _write(claim, undone, changed, turn, rows=len(entries))


def _write(
    claim: FileClaim, undone: EligibilityFile, changed: Sequence[RowOutcome], turn: RunOptions, *, rows: int
) -> None:
    """One chunk, its outcomes and the position in one transaction."""
    file = claim.file
    undoing = UndoRequest(undone.history_key, file.client, file.history_key, claim.clock(), turn.uniqueness)

    for attempt in WriteInOne[RowOutcome, RestoredMember](claim.db, changed):
        with attempt:
            for part in attempt.parts():
                with part:
                    part.results = restore(part.tx, [entry.member_id for entry in part.items], undoing)
            entries = [_entry(*pair) for pair in zip(changed, attempt.results, strict=True)]
            store.insert_outcomes(attempt.tx, file.id, file.chunks_done, file.step, outcomes.pack(entries))
            counts = dict(Counter(file.counts) + outcomes.count(entries))
            claim.save(
                attempt.tx, chunks_done=file.chunks_done + 1, rows_done=file.rows_done + rows, counts=counts
            )
    claim.refresh()


def _entry(entry: RowOutcome, result: RestoredMember | Exception) -> RowOutcome:
    if isinstance(result, RestoredMember) and result.outcome is not None:
        return RowOutcome(entry.place, entry.external_id, result.outcome.value, entry.member_id)
    fault: Fault = (isinstance(result, RestoredMember) and result.fault) or NOT_STORED
    return RowOutcome(entry.place, entry.external_id, REFUSED, 0, [tuple(fault)])
