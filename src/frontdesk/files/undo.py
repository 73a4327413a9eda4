"""Takes back what a file has changed, a chunk at a time, from its last chunk to its first.

An undo that would take access from too many members is held before its first chunk, as a file is.
The members, the outcomes and the undo's position are written in ONE transaction per chunk, so
another worker can continue after a death.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from frontdesk import codes, eligibility
from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.db import Tx
from frontdesk.db.engine import write_in_one
from frontdesk.eligibility.access_days import compare_access, day_before
from frontdesk.eligibility.model import Enrolled
from frontdesk.eligibility.undo import AccessForecast, UndoRequest, restore, undo_dry_run
from frontdesk.files import model, store
from frontdesk.files.actions import get_file
from frontdesk.files.brakes import ApprovalNeeded
from frontdesk.files.claims import FileClaim
from frontdesk.files.load import faults_of
from frontdesk.plans import list_plans

# Too many members lose access if they are more than this and more than a tenth of all, or at least
# so many that are half of all.
MOST_MEMBERS = 25
HALF_MEMBERS = 5


def undo_rows(claim: FileClaim, undone_id: int) -> None:
    """Take back the remaining chunks of the undone file. Raises ApprovalNeeded, Stopped, LostClaim,
    Unavailable.
    """
    undone = claim.db.ask(partial(get_file, key=model.FileKey(undone_id)))
    if claim.file.started_at is None:
        rows = sum(undone.counts.get(name, 0) for name in model.CHANGED)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    if claim.file.step is model.FileStep.CHECK:
        if not claim.file.approved:
            hold_if_too_many_lose(claim, undone)
        with claim.write() as tx:  # the report may have the lists of a held undo
            store.delete_outcomes(tx, claim.file.id)
            claim.save(tx, step=model.FileStep.APPLY, chunks_done=0, counts={}, codes={})
    remaining = undone.chunks_done - claim.file.chunks_done
    for chunk in reversed(range(remaining)):
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
        _undo_chunk(claim, undone, chunk)


def forecast_undo(claim: FileClaim, undone: model.EligibilityFile) -> Iterator[AccessForecast]:
    """What the undo would do to the access of each member, by the decisions of the undo, a chunk at
    a time. Members that stay as they are are left out. Raises Stopped, LostClaim, Unavailable.
    """
    done = 0
    with undo_dry_run() as dry_run:
        for chunk in reversed(range(undone.chunks_done)):
            claim.checkpoint(model.FileStep.CHECK, done)
            changed = _changed_rows(claim, undone, chunk)
            member_ids = [row.member_id for row in changed]
            forecasts = dry_run.forecast(claim.db, member_ids, _request(claim, undone))
            yield from (each for each in forecasts if isinstance(each, AccessForecast))
            done += len(changed)
        claim.checkpoint(model.FileStep.CHECK, done)


def hold_if_too_many_lose(claim: FileClaim, undone: model.EligibilityFile) -> None:
    """Raise ApprovalNeeded if the undo would take access from too many members, in one plan or in
    all of the account's together.
    """
    file = claim.file
    account = claim.db.ask(partial(get_account, account_id=file.account_id))
    today = account_day(file.started_at or claim.clock(), account.time_zone).earliest
    lost = Counter[int]()
    first_day = ""
    for member in forecast_undo(claim, undone):
        loss = compare_access(member.before, member.after, today).loss
        if loss is not None:
            lost[member.plan_id] += 1
            first_day = min(first_day or loss.first_day, loss.first_day)
    if not lost:
        return
    plans = claim.db.ask(partial(list_plans, account_id=file.account_id))
    open_members = {
        plan.id: claim.db.ask(
            partial(eligibility.count_members_open_after, plan_id=plan.id, day=day_before(today))
        )
        for plan in plans
    }
    texts = [
        _loss_text(number, open_members[plan_id], f"of plan {plan_id}", first_day)
        for plan_id, number in sorted(lost.items())
        if _is_too_many(number, open_members[plan_id])
    ]
    total = sum(open_members.values())
    if not texts and _is_too_many(lost.total(), total):
        texts = [_loss_text(lost.total(), total, "of the account", first_day)]
    if texts:
        raise ApprovalNeeded(codes.files.TOO_MANY_LOSE_ACCESS, " ".join(texts))


def _is_too_many(number: int, of: int) -> bool:
    is_many = number > MOST_MEMBERS and number * 10 > of
    return is_many or (number >= HALF_MEMBERS and number * 2 >= of)


def _loss_text(number: int, of: int, whose: str, first_day: str) -> str:
    text = f"The undo would take access from {number} of the {of} members {whose}"
    return f"{text}, from {first_day} on."


def _request(claim: FileClaim, undone: model.EligibilityFile) -> UndoRequest:
    return UndoRequest(
        undone_file_id=undone.id,
        file_id=claim.file.id,
        client=claim.file.client,
        request_id=claim.file.request_id,
        now=claim.clock(),
        uniqueness=claim.options.uniqueness,
    )


def _changed_rows(
    claim: FileClaim, undone: model.EligibilityFile, chunk: int
) -> list[model.RowOutcome]:
    """The rows of the chunk that have changed a member, the last row first."""
    outcomes = claim.db.ask(partial(store.chunk_outcomes, file_id=undone.id, chunk=chunk))
    return [outcome for outcome in reversed(outcomes) if outcome.outcome in model.CHANGED]


def _undo_chunk(claim: FileClaim, undone: model.EligibilityFile, chunk: int) -> None:
    """Restore the members that the chunk has changed, in one transaction."""
    changed = _changed_rows(claim, undone, chunk)
    request = _request(claim, undone)

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
