"""Runs files: loads or undoes one, and stores how it ended. A worker runs several in turns (files.turns); the command line runs
its own."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from frontdesk.audit.model import Requester
from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.db.races import WriteInOne
from frontdesk.db.service_role import ANALYSED
from frontdesk.db.statistics import refresh_statistics
from frontdesk.eligibility import restore
from frontdesk.eligibility.model import Outcome, RestoredMember, UndoRequest
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.files import store
from frontdesk.files.brakes import ApprovalNeeded
from frontdesk.files.chunks import faults_of
from frontdesk.files.claims import FileClaim, LeaseRenewer, LostClaim, RunOptions, Stopped, claim_next
from frontdesk.files.content import delete_abandoned_uploads, delete_content
from frontdesk.files.jobs import get_file, record_audit
from frontdesk.files.load import run_load
from frontdesk.files.mappings import mapping_origin
from frontdesk.files.model import (
    FILE_PROBLEMS,
    NOT_ROWS,
    NOT_STORED,
    FileMode,
    FileState,
    FileStep,
    RowOutcome,
    Unreadable,
)
from frontdesk.files.report import read_outcomes

SWITCH_SECONDS = 0.0005
COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time

_WRITTEN = set(Outcome) - {Outcome.UNCHANGED}


def run_next(db: Database, clock: Clock, options: RunOptions, *, only: int | None = None) -> bool:
    """Work on one file, or the one that is named, until it ends or `options.should_stop()`; False if there is none to work on.
    Raises Unavailable.

    After an error the next worker goes on after the last committed chunk, once the lease has run out. A fault of the
    service fails the file and is raised, so that it is logged.
    """
    claim = claim_next(db, clock, options, only=only)
    if claim is None:
        delete_abandoned_uploads(db, clock())
        return False
    with at_full_speed():
        run_file(claim, LeaseRenewer(db))
    return True


@contextmanager
def at_full_speed() -> Iterator[None]:
    """No search for cycles, and a thread that comes back from the database should not wait 5 ms for the one that reads."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def run_file(claim: FileClaim, leases: LeaseRenewer) -> None:
    """Work on the claimed file until it ends or is given back. Raises as `run_next`."""
    # After a lost claim another worker has the file; what was committed before counts.
    with suppress(LostClaim), leases.renewing(claim):
        _run(claim)
        with suppress(Unavailable):  # autovacuum will do it
            _refresh_statistics(claim)
    claim.db.announce_work()  # not for each chunk: looking for invitations would slow the load down


def _run(claim: FileClaim) -> None:
    try:
        if claim.file.undoes_id is not None:
            _undo(claim, claim.file.undoes_id)
        else:
            run_load(claim)
    except Stopped:
        claim.give_back()
    except Unreadable as error:
        _end(claim, FileState.FAILED, error.code, error.detail, error.place)
    except Invalid as error:
        fault = error.faults[0]
        _end(claim, FileState.FAILED, "bad_mapping", f"The mapping's {fault.field} {fault.message}.")
    except ApprovalNeeded as error:
        state = FileState.DONE if claim.file.dry_run else FileState.HELD
        _end(claim, state, error.code, str(error))
    except (FrontdeskError, LostClaim):
        raise
    except Exception:
        _end(claim, FileState.FAILED, "internal", FILE_PROBLEMS["internal"])
        raise
    else:
        _end(claim, FileState.DONE)


def _end(
    claim: FileClaim, state: FileState, code: str | None = None, message: str = "", place: int | None = None
) -> None:
    """Store the file's last state (a held one may go on) and its problem, with one audit entry of the counts."""
    file, now = claim.file, claim.clock()
    finished_at = None if state is FileState.HELD else now
    with claim.db.write() as tx:
        if origin := mapping_origin(tx, file, code):
            message = f"{message.removesuffix('.')}. {origin}"
        problem = None if code is None else {"code": code, "message": message, "place": place}
        claim.save(tx, state=state, problem=problem, finished_at=finished_at)
        if finished_at is not None:
            store.delete_parts(tx, file.id)
        requester = Requester(file.client, file.request_id, now)
        record_audit(tx, f"file.{state.value}", file, requester, counts=file.counts)
    if finished_at is not None:
        delete_content(claim.db, file.id)
    claim.refresh()


def _refresh_statistics(claim: FileClaim) -> None:
    file = claim.file
    written = sum(count for outcome, count in file.counts.items() if outcome in _WRITTEN)
    if written and not file.dry_run and file.mode is not FileMode.COMPARE:
        refresh_statistics(claim.db, ANALYSED, written=written)


def _undo(claim: FileClaim, undone_id: int) -> None:
    """Take back a file chunk by chunk, from its last to its first. Raises Stopped, LostClaim, Unavailable."""
    undone = claim.db.ask(lambda tx: get_file(tx, undone_id, account_id=None))
    if claim.file.started_at is None:
        rows = sum(undone.counts[name] for name in undone.counts if name not in NOT_ROWS)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    file, options = claim.file, claim.options
    last = undone.chunks_done - 1 - file.chunks_done
    for chunk in read_outcomes(claim.db, undone.id, first=last, backwards=True):
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        changed = [outcome for outcome in reversed(chunk) if outcome.member_id]
        request = UndoRequest(
            undone.id, file.id, file.client, file.request_id, claim.clock(), options.uniqueness
        )
        for attempt in WriteInOne[RowOutcome, RestoredMember](claim.db, changed):
            with attempt:
                store.forget_shared_numbers(attempt.tx, undone)
                for part in attempt.parts():
                    with part:
                        ids = [outcome.member_id for outcome in part.items]
                        part.results = restore(part.tx, ids, request, options.probe_limit)
                outcomes = [_restored(*pair) for pair in zip(changed, attempt.results, strict=True)]
                claim.save_chunk(attempt.tx, outcomes, rows_done=len(chunk))
        claim.refresh()


def _restored(outcome: RowOutcome, result: RestoredMember | Exception) -> RowOutcome:
    if isinstance(result, Exception):
        return RowOutcome.refused(outcome.place, outcome.external_id, faults_of(result))
    if result.outcome is None:
        return RowOutcome.refused(outcome.place, outcome.external_id, [result.fault or NOT_STORED])
    return RowOutcome(outcome.place, outcome.external_id, result.outcome.value, outcome.member_id)
