"""Runs files: loads or undoes one, and stores how it ended. The command line runs its own.

A worker runs several, because accounts take turns: it pauses the load of one file while files of other accounts have theirs. A
paused load keeps its file, and all that it has read: nothing is read twice. Each load is a greenlet, which pauses at a
checkpoint; one of a worker's loads runs at a time.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

from greenlet import greenlet

from frontdesk import events
from frontdesk.audit import Requester, record_action
from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, refresh_statistics, write_in_one
from frontdesk.db.service_role import ANALYSED
from frontdesk.eligibility import restore
from frontdesk.eligibility.enrol import UndoRequest
from frontdesk.eligibility.model import Enrolled
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.files import model, store
from frontdesk.files.actions import delete_content, get_file
from frontdesk.files.check import ApprovalNeeded
from frontdesk.files.claims import FileClaim, LostClaim, RunOptions, Stopped, claim_next, renewing
from frontdesk.files.load import faults_of, run_load
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.x12 import MappingNeeded

SWITCH_SECONDS = 0.0005
MOST_OPEN = 8  # loads of a worker; each keeps 16 bytes a row, and two chunks
COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time

# Faults of a file that its mapping may have caused.
MAPPING_FAULTS = frozenset(
    ("no_header", "no_key_column", "missing_column", "repeated_column", "bad_mapping", "no_rows", "all_refused",
     "looks_like_ssn")
)  # fmt: skip
READ_BY = (
    "The file was read by the account's mapping {}. If that is the cause, correct it, or load the file with another one; "
    "`{{}}` is none."
)


def run_next(db: Database, clock: Clock, options: RunOptions, *, only: int | None = None) -> bool:
    """Work on one file, or the one that is named, until it ends or `options.should_stop()`; False if there is none to work on.
    Raises Unavailable.

    After an error the next worker goes on after the last committed chunk, once the lease has run out. A fault of the
    service fails the file and is raised, so that it is logged.
    """
    claim = claim_next(db, clock, options, only=only)
    if claim is None:
        return False
    with at_full_speed():
        run_file(claim)
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


def run_file(claim: FileClaim) -> None:
    """Work on the claimed file until it ends or is given back. Raises as `run_next`."""
    # After a lost claim another worker has the file; what was committed before counts.
    with suppress(LostClaim), renewing(claim):
        _run(claim)
        file = claim.file
        written = sum(count for outcome, count in file.counts.items() if outcome in model.CHANGED)
        if written and not file.dry_run and file.mode is not FileMode.COMPARE:
            with suppress(Unavailable):  # autovacuum will do it
                refresh_statistics(claim.db, ANALYSED, written=written)
    claim.db.announce_work()  # not for each chunk: looking for invitations would slow the load down


def _run(claim: FileClaim) -> None:
    _tell(claim, "file_started")
    try:
        if claim.file.undoes_id is not None:
            _undo(claim, claim.file.undoes_id)
        else:
            run_load(claim)
    except Stopped:
        claim.update(state=model.FileState.WAITING)
    except Unreadable as error:
        _end(claim, model.FileState.FAILED, error.code, error.detail, place=error.place)
    except Invalid as error:
        fault = error.faults[0]
        _end(claim, model.FileState.FAILED, "bad_mapping", f"The mapping's {fault.field} {fault.message}.")
    except MappingNeeded as error:
        _end(claim, model.FileState.HELD, model.NEEDS_MAPPING, suggestion=error.suggestion)
    except ApprovalNeeded as error:
        _end(claim, model.FileState.HELD, *error.args)
    except (FrontdeskError, LostClaim):
        raise
    except Exception:
        _end(claim, model.FileState.FAILED, "internal")
        raise
    else:
        file = claim.file
        is_compared = file.format is Format.X12 and file.mode is FileMode.COMPARE and file.asked_mode is None
        _end(claim, model.FileState.DONE, model.ONLY_COMPARED if is_compared else None)


def _end(
    claim: FileClaim, state: model.FileState, code: str | None = None, message: str | None = None, **more: Any
) -> None:
    """Store the file's last state (a held one may go on) and its problem, with one audit entry of the counts."""
    file, now, problem = claim.file, claim.clock(), None
    if state is model.FileState.HELD and file.dry_run:
        state = model.FileState.DONE
    finished_at = None if state is model.FileState.HELD else now
    if code is not None:
        message = message or model.FILE_PROBLEMS[code]
        if code in MAPPING_FAULTS and file.mapping_name is not None:
            message = f"{message.removesuffix('.')}. {READ_BY.format(file.mapping_name)}"
        problem = {"code": code, "message": message, "place": None} | more
    with claim.db.write() as tx:
        claim.save(tx, state=state, problem=problem, finished_at=finished_at)
        requester = Requester(file.client, file.request_id, now)
        record_action(tx, requester, f"file.{state.value}", file.account_id, file.id, counts=file.counts)
        ids = {"file_id": file.id, "plan_id": file.plan_id}
        told = NewEvent(file.account_id, AccountEventType(f"file.{state.value}"), ids, file.request_id)
        events.publish(tx, [told], now=now)
    if finished_at is not None:
        delete_content(claim.db, file.id)
    claim.refresh()
    level = "info" if state is model.FileState.DONE else "warning"
    _tell(claim, f"file_{state.value}", level=level, code=code)


def _tell(claim: FileClaim, event: str, **more: object) -> None:
    file = claim.file
    claim.options.tell(event, file_id=file.id, account_id=file.account_id, rows=file.rows_done, **more)


def _undo(claim: FileClaim, undone_id: int) -> None:
    """Take back a file chunk by chunk, from its last to its first. Raises Stopped, LostClaim, Unavailable."""
    undone = claim.db.ask(lambda tx: get_file(tx, model.FileKey(undone_id)))
    if claim.file.started_at is None:
        rows = sum(undone.counts.get(name, 0) for name in model.CHANGED)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    file, uniqueness = claim.file, claim.options.uniqueness
    for chunk in reversed(range(undone.chunks_done - file.chunks_done)):
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
        found = claim.db.ask(partial(store.find_outcomes, file_id=undone.id, from_chunk=chunk))
        changed = [each for each in reversed(found[1] if found else ()) if each.outcome in model.CHANGED]
        request = UndoRequest(undone.id, file.id, file.client, file.request_id, claim.clock(), uniqueness)
        ids = [each.member_id for each in changed]
        write_in_one(
            claim.db, ids, partial(restore, undo=request), save=partial(_save_undone, claim, changed)
        )
        claim.refresh()


def _save_undone(
    claim: FileClaim, changed: Sequence[model.RowOutcome], tx: Tx, results: Sequence[Enrolled | Exception]
) -> None:
    claim.save_chunk(tx, [*map(_restored, changed, results)], rows_done=len(changed))


def _restored(outcome: model.RowOutcome, result: Enrolled | Exception) -> model.RowOutcome:
    if isinstance(result, Enrolled):
        return model.RowOutcome(outcome.place, outcome.external_id, result.outcome.value, outcome.member_id)
    refused = model.RowOutcome.refused(outcome.place, outcome.external_id, faults_of(result))
    return refused._replace(member_id=outcome.member_id)


class OpenLoad:
    """The load of a claimed file, in a greenlet: at a checkpoint it hands over to the worker until the account's next turn."""

    def __init__(self, claim: FileClaim, is_turn_over: Callable[["OpenLoad"], bool]) -> None:
        self.claim, self._is_turn_over, self._rows_before = claim, is_turn_over, claim.file.rows_done
        self._greenlet = greenlet(run_file)
        claim.yield_turn = self._yield_turn

    @property
    def is_open(self) -> bool:
        return not self._greenlet.dead

    @property
    def can_be_given_back(self) -> bool:
        """It has advanced, and another worker can go on with what it has done."""
        file = self.claim.file
        return file.step is model.FileStep.APPLY and not file.dry_run and file.rows_done > self._rows_before

    def take_turn(self) -> None:
        """Returns when the turn is over, or the load has ended. Raises what the load raised."""
        claim = self.claim
        if self._greenlet:  # it has begun
            with claim.db.write() as tx:
                claim.turn_at = database_time(tx)
                store.take_turn(tx, claim.file.account_id, claim.turn_at)
        claim.running.set()
        self._greenlet.switch(claim)

    def give_back(self) -> None:
        """Let the file wait for another turn, of any worker, which checks the file anew and goes on with its rows."""
        if self.is_open:
            with suppress(Unavailable):  # the lease will run out
                self._greenlet.throw(Stopped)

    def _yield_turn(self) -> None:
        if self._is_turn_over(self):
            self.claim.running.clear()
            self._greenlet.parent.switch()


class FileTurns:
    """What a worker does with files. A turn ends after `slice_seconds` if another account waits."""

    def __init__(self, db: Database, clock: Clock, options: RunOptions, *, slice_seconds: float) -> None:
        self._db, self._clock, self._options, self._slice_seconds = db, clock, options, slice_seconds
        self._loads: list[OpenLoad] = []
        self._slice_began = 0.0

    def take(self) -> bool:
        """Work on one file until it ends or its turn is over: a new one, or the paused one with the oldest turn. False if
        there is none. Raises Unavailable, and faults of the service, so that they are logged."""
        self._loads = [load for load in self._loads if load.is_open]
        load = min(self._loads, key=lambda load: load.claim.turn_at, default=None)
        if (claim := self._claim(None if load is None else load.claim.turn_at)) is not None:
            load = OpenLoad(claim, self._is_turn_over)
            self._loads.append(load)
        if load is None:
            return False
        self._slice_began = time.monotonic()
        with at_full_speed():
            load.take_turn()
        return True

    def close(self) -> None:
        """Give all files back, so that other workers go on with them at once."""
        while self._loads:
            self._loads.pop().give_back()

    def _claim(self, before: datetime | None) -> FileClaim | None:
        """Claim a file of an account with an earlier last turn, if the worker has room for it."""
        if len(self._loads) >= MOST_OPEN:
            # The load with the latest turn: the next turn of its account comes last.
            loads = [load for load in self._loads if load.can_be_given_back]
            last = max(loads, key=lambda load: load.claim.turn_at, default=None)
            if last is None or not self._is_waited_for(before):
                return None
            last.give_back()
            self._loads.remove(last)
        return claim_next(self._db, self._clock, self._options, before=before)

    def _is_turn_over(self, load: OpenLoad) -> bool:
        if time.monotonic() < self._slice_began + self._slice_seconds:
            return False
        if any(other is not load and other.is_open for other in self._loads) or self._is_waited_for():
            return True
        self._slice_began = time.monotonic()
        return False

    def _is_waited_for(self, before: datetime | None = None) -> bool:
        waiting = self._db.ask(lambda tx: store.find_claimable(tx, database_time(tx), before=before))
        return waiting is not None
