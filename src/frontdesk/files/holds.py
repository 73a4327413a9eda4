"""Holds a file, or an undo, for a person's approval: its report lists the members and rows for which
it is held, and the numbers that were shown are kept with it.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.files import model, row_store
from frontdesk.files.brakes import ApprovalNeeded, Reason
from frontdesk.files.claims import FileClaim
from frontdesk.files.forecast import Tally


def day_begun(tx: Tx, file: model.EligibilityFile) -> str:
    """The day on which the file began, where the members live, at the earliest: a day that may
    still last counts as lost.
    """
    account = get_account(tx, file.account_id)
    return account_day(file.started_at or file.created_at, account.time_zone).earliest


def shown_losses(claim: FileClaim) -> Sequence[int]:
    """The ids, in order, of the members with a loss of access that a person has approved."""
    if not claim.file.approved:
        return ()
    return claim.db.ask(partial(row_store.shown_losses, file_id=claim.file.id))


def hold(
    claim: FileClaim,
    reasons: Sequence[Reason],
    tally: Tally,
    lists: Iterable[Sequence[model.RowOutcome]],
) -> None:
    """Write the lists and raise ApprovalNeeded; nothing without a reason. Raises Stopped, LostClaim,
    Unavailable too.

    Each batch of lines is committed by itself; after a death the file is decided again.
    """
    if not reasons:
        return
    shown = {str(reason.code): reason.number for reason in reasons}
    with claim.write() as tx:
        if not claim.file.dry_run:
            row_store.delete_outcomes(tx, claim.file.id)
            claim.save(tx, chunks_done=0, counts={}, codes={})
        claim.save(tx, approved=False, shown=shown)
    for lines in lists:
        claim.checkpoint(model.FileStep.CHECK, claim.file.rows_done)
        claim.save_list(lines)
    if not claim.file.dry_run:  # that has counted its rows
        of_members = {model.LOST: tally.lost, model.GAINED: tally.gained}
        claim.update(counts=claim.file.counts | {name: n for name, n in of_members.items() if n})
    raise ApprovalNeeded(reasons)
