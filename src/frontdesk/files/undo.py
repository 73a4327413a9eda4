"""Takes back what a file has changed, a chunk at a time, from its last chunk to its first.

An undo that would take access from too many members is held before its first chunk, as a file is.
The members, the outcomes and the undo's position are written in ONE transaction per chunk, so
another worker can continue after a death.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone, write_in_one
from frontdesk.eligibility import derive_due
from frontdesk.eligibility.access_days import AccessPair
from frontdesk.eligibility.model import Enrolled
from frontdesk.eligibility.undo import (
    COVERAGES,
    AccessForecast,
    UndoDryRun,
    UndoRequest,
    restore,
    undo_dry_run,
)
from frontdesk.files import model, row_store, store
from frontdesk.files.actions import get_file
from frontdesk.files.brakes import Limits, list_losses, reasons_of_losses
from frontdesk.files.claims import FileClaim
from frontdesk.files.forecast import Cause, Forecast, ForecastPair
from frontdesk.files.holds import day_begun, hold, shown_losses
from frontdesk.files.load import faults_of, note_of
from frontdesk.reach import Reach

# What is counted while a person waits for a page, which is to take 0.15 s.
MOST_COUNTED_ROWS = 200
MOST_COUNTED_CHUNKS = 20
NO_FILE = 0  # the id of an undo that is only counted


def undo_rows(claim: FileClaim, undone_id: int) -> None:
    """Take back the remaining chunks of the undone file. Raises ApprovalNeeded, Stopped, LostClaim,
    Unavailable.
    """
    undone = claim.db.ask(
        partial(get_file, key=model.FileKey(undone_id, Reach.of(claim.file.account_id)))
    )
    if claim.file.started_at is None:
        rows = sum(undone.counts.get(name, 0) for name in model.CHANGED)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    today = claim.db.ask(partial(day_begun, file=claim.file))
    if claim.file.step is model.FileStep.CHECK:
        _hold_if_too_many_lose(claim, undone, today)
        with claim.write() as tx:  # the report may have the lists of a held undo
            row_store.delete_outcomes(tx, claim.file.id)
            empty: dict[str, Any] = {"chunks_done": 0, "counts": {}, "codes": {}}
            claim.save(tx, step=model.FileStep.APPLY, shown=None, **empty)
    remaining = undone.chunks_done - claim.file.chunks_done
    for chunk in reversed(range(remaining)):
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
        _undo_chunk(claim, undone, chunk, today)


def _hold_if_too_many_lose(claim: FileClaim, undone: model.EligibilityFile, today: str) -> None:
    """Raise ApprovalNeeded if the undo would take access from too many members."""
    with undo_dry_run() as dry_run:
        forecast = Forecast(dry_run.scratch, today, shown_losses(claim))
        for pairs in forecast_undo(claim, undone, dry_run):
            forecast.note_pairs(pairs)
        tally = forecast.tally()
        limits = Limits.of(
            claim.db.ask(partial(store.get_file_settings, account_id=undone.account_id))
        )
        find = partial(reasons_of_losses, tally=tally, limits=limits, today=today)
        reasons = claim.db.ask(partial(find, file=claim.file))
        hold(claim, reasons, tally, list_losses(forecast))


def forecast_undo(
    claim: FileClaim, undone: model.EligibilityFile, dry_run: UndoDryRun
) -> Iterator[list[ForecastPair]]:
    """What the undo would do to the access of members, by its own decisions, a chunk at a time."""
    done = 0
    for chunk in reversed(range(undone.chunks_done)):
        claim.checkpoint(model.FileStep.CHECK, done)
        changed = _changed_rows(claim.db, undone, chunk)
        member_ids = [row.member_id for row in changed]
        forecasts = dry_run.forecast(claim.db, member_ids, _request(claim, undone))
        yield [_pair_of(each) for each in forecasts if isinstance(each, AccessForecast)]
        done += len(changed)
    claim.checkpoint(model.FileStep.CHECK, done)


class UndoNumbers(NamedTuple):
    """What an undo would do: the members that it would restore, those that it would leave as they
    are, and those that would lose or gain access.
    """

    restored: int
    left: int
    lost: int
    gained: int


def count_undo(
    db: Database, undone: model.EligibilityFile, *, uniqueness: Uniqueness, now: datetime
) -> UndoNumbers | None:
    """What an undo of the file would do now, by its own decisions; None for a large file, where
    nobody could wait for the answer. Changes nothing. Raises Unavailable.
    """
    rows = sum(undone.counts.get(name, 0) for name in model.CHANGED)
    if rows > MOST_COUNTED_ROWS or undone.chunks_done > MOST_COUNTED_CHUNKS:
        return None
    account = db.ask(partial(get_account, account_id=undone.account_id))
    today = account_day(now, account.time_zone).earliest
    request = UndoRequest(undone.id, NO_FILE, "", "", now, uniqueness)
    members = set[int]()
    left = set[int]()
    with undo_dry_run() as dry_run:
        forecast = Forecast(dry_run.scratch, today)
        for chunk in reversed(range(undone.chunks_done)):
            member_ids = [row.member_id for row in _changed_rows(db, undone, chunk)]
            found = dry_run.forecast(db, member_ids, request)
            forecast.note_pairs(_pair_of(each) for each in found if _is_access(each))
            members.update(member_ids)
            left.update(
                id_ for id_, each in zip(member_ids, found, strict=True) if not _is_access(each)
            )
        tally = forecast.tally()
    return UndoNumbers(len(members - left), len(left), tally.lost, tally.gained)


def _is_access(found: AccessForecast | Exception) -> TypeGuard[AccessForecast]:
    return isinstance(found, AccessForecast)


def _pair_of(found: AccessForecast) -> ForecastPair:
    owner = (found.member_id, found.external_id, found.plan_id)
    return ForecastPair(*owner, AccessPair(found.before, found.after), Cause.UNDO)


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
    db: Database, undone: model.EligibilityFile, chunk: int
) -> list[model.RowOutcome]:
    """The rows of the chunk that have changed a member, the last row first."""
    outcomes = db.ask(partial(row_store.changed_outcomes, file_id=undone.id, chunk=chunk))
    return outcomes[::-1]


def _undo_chunk(claim: FileClaim, undone: model.EligibilityFile, chunk: int, today: str) -> None:
    """Restore the members that the chunk has changed, in one transaction."""
    changed = _changed_rows(claim.db, undone, chunk)
    request = _request(claim, undone)

    is_due = False

    def save(tx: Tx, results: Sequence[Enrolled | Exception]) -> None:
        nonlocal is_due
        is_due = any(isinstance(each, Enrolled) and COVERAGES in each.changes for each in results)
        restored = [
            _restored(row, result, today) for row, result in zip(changed, results, strict=True)
        ]
        claim.save_chunk(tx, restored, rows_done=len(changed))

    member_ids = [outcome.member_id for outcome in changed]
    write_in_one(claim.db, member_ids, partial(restore, undo=request), save=save)
    claim.refresh()
    if is_due:
        _derive_due(claim)


def _derive_due(claim: FileClaim) -> None:
    """Derive the members whose day has come by the coverages from before: until a worker does so,
    they might have no access.
    """
    after = None
    while True:
        page = write_alone(claim.db, partial(derive_due, now=claim.clock(), after=after))
        after = page.next_after
        if after is None:
            return


def _restored(
    outcome: model.RowOutcome, result: Enrolled | Exception, today: str
) -> model.RowOutcome:
    """The line of the undo's report about a row of the undone file."""
    row = (outcome.place, outcome.external_id)
    if not isinstance(result, Enrolled):
        refused = model.RowOutcome.refused(*row, faults_of(result))
        return refused._replace(member_id=outcome.member_id)
    access = note_of(result, today)
    return model.RowOutcome(*row, result.outcome.value, outcome.member_id, access=access)
