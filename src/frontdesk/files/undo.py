"""Takes back what a file has changed, a chunk at a time, from its last chunk to its first.

The members, the outcomes and the undo's position are written in ONE transaction per chunk, so
another worker can continue after a death.
"""

from collections.abc import Sequence
from functools import partial

from frontdesk.db import Tx
from frontdesk.db.engine import write_in_one
from frontdesk.eligibility import restore
from frontdesk.eligibility.model import Enrolled
from frontdesk.eligibility.undo import UndoRequest
from frontdesk.files import model, store
from frontdesk.files.actions import get_file
from frontdesk.files.claims import FileClaim
from frontdesk.files.load import faults_of


def undo_rows(claim: FileClaim, undone_id: int) -> None:
    """Take back the remaining chunks of the undone file. Raises Stopped, LostClaim, Unavailable."""
    undone = claim.db.ask(partial(get_file, key=model.FileKey(undone_id)))
    if claim.file.started_at is None:
        rows = sum(undone.counts.get(name, 0) for name in model.CHANGED)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    remaining = undone.chunks_done - claim.file.chunks_done
    for chunk in reversed(range(remaining)):
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
        _undo_chunk(claim, undone, chunk)


def _undo_chunk(claim: FileClaim, undone: model.EligibilityFile, chunk: int) -> None:
    """Restore the members that the chunk has changed, in one transaction."""
    file = claim.file
    outcomes = claim.db.ask(partial(store.chunk_outcomes, file_id=undone.id, chunk=chunk))
    changed = [outcome for outcome in reversed(outcomes) if outcome.outcome in model.CHANGED]
    request = UndoRequest(
        undone_file_id=undone.id,
        file_id=file.id,
        client=file.client,
        request_id=file.request_id,
        now=claim.clock(),
        uniqueness=claim.options.uniqueness,
    )

    def save(tx: Tx, results: Sequence[Enrolled | Exception]) -> None:
        restored = [*map(_restored, changed, results)]
        claim.save_chunk(tx, restored, rows_done=len(changed))

    member_ids = [outcome.member_id for outcome in changed]
    write_in_one(claim.db, member_ids, partial(restore, undo=request), save=save)
    claim.refresh()


def _restored(outcome: model.RowOutcome, result: Enrolled | Exception) -> model.RowOutcome:
    """The line of the undo's report about a row of the undone file."""
    if isinstance(result, Enrolled):
        return model.RowOutcome(
            outcome.place, outcome.external_id, result.outcome.value, outcome.member_id
        )
    refused = model.RowOutcome.refused(outcome.place, outcome.external_id, faults_of(result))
    return refused._replace(member_id=outcome.member_id)
