"""Runs files: loads or undoes one, and stores how it ended. The command line runs its own.

A worker runs several, because accounts take turns: it pauses the load of one file while files of other accounts have theirs. A
paused load keeps its file, and all that it has read: nothing is read twice. Each load has a thread, and one of a worker's loads
runs at a time.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

from frontdesk.audit.model import Requester
from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, refresh_statistics
from frontdesk.db.races import write_in_one
from frontdesk.db.service_role import ANALYSED
from frontdesk.eligibility import restore
from frontdesk.eligibility.enrol import UndoRequest
from frontdesk.eligibility.model import Enrolled
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.files import store
from frontdesk.files.actions import delete_content, get_file, record_audit
from frontdesk.files.check import ApprovalNeeded
from frontdesk.files.claims import FileClaim, LostClaim, RunOptions, Stopped, claim_next, renewing
from frontdesk.files.load import faults_of, run_load
from frontdesk.files.model import (
    CHANGED,
    FILE_PROBLEMS,
    NEEDS_MAPPING,
    ONLY_COMPARED,
    FileKey,
    FileState,
    FileStep,
    RowOutcome,
)
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
REMEDIES = {
    ONLY_COMPARED: ' If the sender means a full file, say so in the mapping: {"834": {"verify": "full"}}'
}


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
        written = sum(count for outcome, count in file.counts.items() if outcome in CHANGED)
        if written and not file.dry_run and file.mode is not FileMode.COMPARE:
            with suppress(Unavailable):  # autovacuum will do it
                refresh_statistics(claim.db, ANALYSED, written=written)
    claim.db.announce_work()  # not for each chunk: looking for invitations would slow the load down


def _run(claim: FileClaim) -> None:
    try:
        if claim.file.undoes_id is not None:
            _undo(claim, claim.file.undoes_id)
        else:
            run_load(claim)
    except Stopped:
        claim.update(state=FileState.WAITING)
    except Unreadable as error:
        _end(claim, FileState.FAILED, error.code, error.detail, place=error.place)
    except Invalid as error:
        fault = error.faults[0]
        _end(claim, FileState.FAILED, "bad_mapping", f"The mapping's {fault.field} {fault.message}.")
    except MappingNeeded as error:
        _end(claim, FileState.HELD, NEEDS_MAPPING, suggestion=error.suggestion)
    except ApprovalNeeded as error:
        _end(claim, FileState.HELD, error.code, str(error))
    except (FrontdeskError, LostClaim):
        raise
    except Exception:
        _end(claim, FileState.FAILED, "internal")
        raise
    else:
        file = claim.file
        is_compared = file.format is Format.X12 and file.mode is FileMode.COMPARE and file.asked_mode is None
        _end(claim, FileState.DONE, ONLY_COMPARED if is_compared else None)


def _end(
    claim: FileClaim, state: FileState, code: str | None = None, message: str | None = None, **more: Any
) -> None:
    """Store the file's last state (a held one may go on) and its problem, with one audit entry of the counts."""
    file, now, problem = claim.file, claim.clock(), None
    if state is FileState.HELD and file.dry_run:
        state = FileState.DONE
    finished_at = None if state is FileState.HELD else now
    if code is not None:
        message = message or FILE_PROBLEMS[code] + REMEDIES.get(code, "")
        if code in MAPPING_FAULTS and file.mapping_name is not None:
            message = f"{message.removesuffix('.')}. {READ_BY.format(file.mapping_name)}"
        problem = {"code": code, "message": message, "place": None} | more
    with claim.db.write() as tx:
        claim.save(tx, state=state, problem=problem, finished_at=finished_at)
        if finished_at is not None:
            store.delete_parts(tx, file.id)
        requester = Requester(file.client, file.request_id, now)
        record_audit(tx, f"file.{state.value}", file, requester, counts=file.counts)
    if finished_at is not None:
        delete_content(claim.db, file.id)
    claim.refresh()


def _undo(claim: FileClaim, undone_id: int) -> None:
    """Take back a file chunk by chunk, from its last to its first. Raises Stopped, LostClaim, Unavailable."""
    undone = claim.db.ask(lambda tx: get_file(tx, FileKey(undone_id)))
    if claim.file.started_at is None:
        rows = sum(undone.counts.get(name, 0) for name in CHANGED)
        claim.update(started_at=claim.clock(), rows_total=rows, file_date=undone.file_date)
    file, options = claim.file, claim.options
    for chunk in reversed(range(undone.chunks_done - file.chunks_done)):
        claim.checkpoint(FileStep.APPLY, claim.file.rows_done)
        changed = claim.db.ask(partial(store.find_changed, file_id=undone.id, chunk=chunk))
        request = UndoRequest(
            undone.id, file.id, file.client, file.request_id, claim.clock(), options.uniqueness
        )
        _undo_chunk(claim, changed, request)
        claim.refresh()


def _undo_chunk(claim: FileClaim, changed: Sequence[RowOutcome], request: UndoRequest) -> None:
    def take_back(tx: Tx, outcomes: Sequence[RowOutcome]) -> Sequence[Enrolled | FrontdeskError]:
        return restore(tx, [each.member_id for each in outcomes], request)

    def save(tx: Tx, results: Sequence[Enrolled | Exception]) -> None:
        outcomes = [_restored(*pair) for pair in zip(changed, results, strict=True)]
        claim.save_chunk(tx, outcomes, rows_done=len(changed))

    write_in_one(claim.db, changed, take_back, save=save)


def _restored(outcome: RowOutcome, result: Enrolled | Exception) -> RowOutcome:
    if isinstance(result, Enrolled):
        return RowOutcome(outcome.place, outcome.external_id, result.outcome.value, outcome.member_id)
    refused = RowOutcome.refused(outcome.place, outcome.external_id, faults_of(result))
    return refused._replace(member_id=outcome.member_id)


class OpenLoad:
    """The load of a claimed file, in a thread that runs during the account's turns."""

    def __init__(self, claim: FileClaim, is_turn_over: Callable[["OpenLoad"], bool]) -> None:
        self.claim, self._is_turn_over = claim, is_turn_over
        self._rows_before = claim.file.rows_done
        self._paused = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"file {claim.file.id}", daemon=True)
        claim.yield_turn = self._yield_turn

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    @property
    def can_be_given_back(self) -> bool:
        """It has advanced, and another worker can go on with what it has done."""
        file = self.claim.file
        return file.step is FileStep.APPLY and not file.dry_run and file.rows_done > self._rows_before

    def take_turn(self) -> None:
        """Returns when the turn is over, or the load has ended. Raises what the load raised."""
        claim, is_first = self.claim, self._thread.ident is None
        if not is_first:
            with claim.db.write() as tx:
                claim.turn_at = database_time(tx)
                store.take_turn(tx, claim.file.account_id, claim.turn_at)
        self._paused.clear()
        claim.running.set()
        if is_first:
            self._thread.start()
        while self.is_open and not self._paused.wait(1.0):
            pass  # a lost load may have ended before its turn
        if self._error is not None:
            raise self._error

    def give_back(self) -> None:
        """Let the file wait for another turn, of any worker, which checks the file anew and goes on with its rows."""
        self.claim.interrupt(Stopped)
        self._thread.join()

    def _run(self) -> None:
        try:
            run_file(self.claim)
        except BaseException as error:  # noqa: BLE001 - raised where the turn was taken
            self._error = error
        self._paused.set()

    def _yield_turn(self) -> None:
        if self._is_turn_over(self):
            self.claim.running.clear()
            self._paused.set()
            self.claim.running.wait()


class FileTurns:
    """What a worker does with files. A turn ends after `slice_seconds` if another account waits."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        options: RunOptions,
        *,
        slice_seconds: float,
        most_open: int = MOST_OPEN,
    ) -> None:
        self._db, self._clock, self._options = db, clock, options
        self._slice_seconds, self._most_open = slice_seconds, most_open
        self._loads: list[OpenLoad] = []
        self._slice_began = 0.0

    def take(self) -> bool:
        """Work on one file until it ends or its turn is over: a new one, or the paused one whose turn is longest ago. False if
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
        """Claim a file of an account whose last turn began earlier, if the worker has room for it."""
        if len(self._loads) >= self._most_open:
            # The one whose turn was last: its account's next turn comes after those of the others.
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
