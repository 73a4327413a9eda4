"""The way of a file, from its claim to its last state. This page reads downwards.

1. Claim (`run_next`): commits a lease and the next epoch of the file. When a worker dies, its lease
   runs out, and another worker begins here.
2. Check (`check_file`): reads the whole file and writes nothing. `_save_check` then commits what was
   found, and that the rows come next. After a death the next worker checks the file again.
3. Apply (`apply_rows`): commits chunk after chunk; members, outcomes and the file's position are in
   ONE transaction. After a death the next worker continues after the last committed chunk. Before
   the first row a file may be held (`_hold_if_needed`); then nothing of it is applied.
4. End (`_end_missing`): commits, chunk by chunk, the end of the members that a full file omits. After
   a death the next worker ends the remaining ones.
5. Finish (`_finish`): commits the last state with its problem, audit entry and event; then deletes
   the content. After a death in between a worker deletes the content later
   (`actions.delete_left_content`).

A dry run writes its decisions to a scratch database that ends with the process, so after a death it
begins again. An undo has no content: `undo` takes the place of steps 2 to 4, and may hold it too.
`turns` decides which file of a worker runs.
"""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from frontdesk import codes, eligibility, events
from frontdesk.audit import Requester, record_action
from frontdesk.clock import Clock
from frontdesk.codes import Code
from frontdesk.db import Database, Tx
from frontdesk.db.engine import refresh_statistics
from frontdesk.db.service_role import ANALYSED
from frontdesk.eligibility.dry_run import DryRun, dry_run
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.files import model, store
from frontdesk.files.absence import find_ends, find_missing
from frontdesk.files.actions import delete_content
from frontdesk.files.brakes import ApprovalNeeded, find_reasons, list_affected
from frontdesk.files.check import CheckResult, check_file
from frontdesk.files.claims import FileClaim, LostClaim, RunOptions, Stopped, claim_next, renewing
from frontdesk.files.load import ChunkWriter, apply_rows
from frontdesk.files.undo import undo_rows
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.mapping.x12 import MappingNeeded
from frontdesk.usage import counter_of

SWITCH_SECONDS = 0.0005
COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time

# Faults of a file that its mapping may have caused.
MAPPING_FAULTS = frozenset(
    (
        "no_header",
        "no_key_column",
        "missing_column",
        "repeated_column",
        "bad_mapping",
        "no_rows",
        "all_refused",
        "looks_like_ssn",
    )
)
READ_BY = (
    "The file was read by the account's mapping {}. If that is the cause, correct it, or load the "
    "file with another one; "
    "`{{}}` is none."
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a file ends: its last state (a held file may go on), and its problem if there is a
    `code`. `more`: what the problem has besides code and message.
    """

    state: model.FileState
    code: Code | None = None
    message: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def run_next(db: Database, clock: Clock, options: RunOptions, *, only: int | None = None) -> bool:
    """Work on one file, or the one that is named, until it ends or `options.should_stop()`; False
    if there is none to work on. Raises Unavailable.

    After an error the next worker goes on after the last committed chunk, once the lease has run
    out. A fault of the service fails the file and is raised, so that it is logged.
    """
    claim = claim_next(db, clock, options, only=only)
    if claim is None:
        return False
    with at_full_speed():
        run_file(claim)
    return True


def run_file(claim: FileClaim) -> None:
    """Work on the claimed file until it ends or is given back. Raises as `run_next`."""
    # After a lost claim another worker has the file; what was committed before counts.
    with suppress(LostClaim), renewing(claim):
        _log(claim, "file_started")
        try:
            ending = _run_steps(claim)
        except Stopped:
            claim.update(state=model.FileState.WAITING)
        except (FrontdeskError, LostClaim):
            raise
        except Exception:
            _finish(claim, Ending(model.FileState.FAILED, codes.files.INTERNAL))
            raise
        else:
            _finish(claim, ending)
        _clear_up(claim)
    claim.db.announce_work()  # not for each chunk: looking for invitations would slow the load down


def _run_steps(claim: FileClaim) -> Ending:
    """Do the remaining steps; returns how the file ends. Raises Stopped, LostClaim, Unavailable."""
    is_test = False
    try:
        if claim.file.undoes_id is None:
            is_test = _load(claim)
        else:
            undo_rows(claim, claim.file.undoes_id)
    except Unreadable as error:
        return Ending(model.FileState.FAILED, error.code, error.detail, more={"place": error.place})
    except Invalid as error:
        fault = error.faults[0]
        message = f"The mapping's {fault.field} {fault.message}."
        return Ending(model.FileState.FAILED, codes.files.BAD_MAPPING, message)
    except MappingNeeded as error:
        return Ending(
            model.FileState.HELD, codes.files.NEEDS_MAPPING, more={"suggestion": error.suggestion}
        )
    except ApprovalNeeded as error:
        return Ending(model.FileState.HELD, error.code, error.detail)
    file = claim.file
    is_834 = file.format is Format.X12
    if is_834 and file.mode is FileMode.COMPARE and file.asked_mode is None:
        return Ending(model.FileState.DONE, codes.files.ONLY_COMPARED)
    if is_test:
        return Ending(model.FileState.DONE, codes.files.ONLY_TESTED)
    return Ending(model.FileState.DONE)


def _load(claim: FileClaim) -> bool:
    """Check the file, apply its rows, end the members that it omits; whether it was a dry run only
    because it says that it is a test. Raises Unreadable, Invalid,
    MappingNeeded, ApprovalNeeded, Stopped, LostClaim, Unavailable.
    """
    check = check_file(claim)
    is_test = check.header.is_test and not claim.options.applies_tests
    if is_test:
        claim.update(dry_run=True)
    with claim.write() as tx:
        _save_check(tx, claim, check)
    claim.options.before_rows(claim.file)
    with _scratch(claim) as scratch:
        writer = ChunkWriter(claim, scratch)
        if claim.file.step is model.FileStep.APPLY:
            if not (claim.file.rows_done or claim.file.dry_run):
                _hold_if_needed(claim, check, writer)
            apply_rows(claim, check, writer)
            # Of an 834 the check counts the rows of a member once, even where two people share its
            # identifier.
            claim.update(step=model.FileStep.END, rows_total=claim.file.rows_done)
        if claim.file.dry_run:
            _hold_if_needed(claim, check, writer)
        elif check.mode is FileMode.FULL:
            _end_missing(claim, check, writer)
    return is_test


def _save_check(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store the result of the check. The report is emptied before the first row: it may have the
    lines of a held file, or of a dry run whose scratch database is gone.
    """
    file = claim.file
    if file.dry_run or (file.step is not model.FileStep.END and not file.rows_done):
        store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    if file.step is not model.FileStep.CHECK and not file.dry_run:
        return
    members_before = file.members_before
    if check.mode is FileMode.FULL and members_before is None:
        members_before = eligibility.count_members_open_after(tx, file.plan_id, check.file_date)
    header = check.header
    claim.save(
        tx,
        step=model.FileStep.APPLY,
        started_at=file.started_at or claim.clock(),
        mode=check.mode,
        file_date=check.file_date,
        rows_total=check.rows,
        members_before=members_before,
        format=header.format,
        encoding=header.encoding,
        delimiter=header.columns[0] if header.columns else None,
        ignored=[*header.ignored],
    )


def _hold_if_needed(claim: FileClaim, check: CheckResult, writer: ChunkWriter) -> None:
    """Raise ApprovalNeeded if a person has to approve the file. The report then lists the affected
    members.

    The members that a full file would end are counted, and listed in a dry run. Each batch of lines
    is committed by itself; after a death the report is emptied, and the file is checked again.
    """
    missing = 0
    if check.mode is FileMode.FULL:
        for batch in find_missing(claim.db, claim.file, check):
            missing += len(batch)
            claim.checkpoint(model.FileStep.END, missing)
        if claim.file.members_missing is None:
            claim.update(members_missing=missing)
    reasons = claim.db.ask(partial(find_reasons, file=claim.file, check=check, missing=missing))
    is_held = bool(reasons)
    lists = list_affected(claim.db, claim.file, check, is_held=is_held, missing=missing)
    for lines in lists:
        claim.checkpoint(model.FileStep.APPLY, claim.file.rows_done)
        if lines:
            writer.write(lines)
    if is_held:
        raise ApprovalNeeded.of(reasons)


def _end_missing(claim: FileClaim, check: CheckResult, writer: ChunkWriter) -> None:
    """End the members that a full file omits."""
    ended = 0
    for rows in find_ends(claim.db, claim.file, check):
        claim.checkpoint(model.FileStep.END, ended)
        if rows:
            writer.write(rows)
        ended += len(rows)


def _scratch(claim: FileClaim) -> AbstractContextManager[DryRun | None]:
    """The scratch database of a dry run; None for a file that is applied."""
    return dry_run(claim.options.uniqueness) if claim.file.dry_run else nullcontext()


def _finish(claim: FileClaim, ending: Ending) -> None:
    """Commit how the file ends, with one audit entry of the counts and an event; then delete its
    content, unless it is held.
    """
    file = claim.file
    now = claim.clock()
    state = ending.state
    if state is model.FileState.HELD and file.dry_run:
        state = model.FileState.DONE
    finished_at = None if state is model.FileState.HELD else now
    problem = _problem_of(file, ending)
    requester = Requester(file.client, file.request_id, now)
    event = NewEvent(
        file.account_id,
        AccountEventType(f"file.{state.value}"),
        {"file_id": file.id, "plan_id": file.plan_id},
        file.request_id,
    )
    with claim.write() as tx:
        claim.save(tx, state=state, problem=problem, finished_at=finished_at)
        record_action(
            tx, requester, f"file.{state.value}", file.account_id, file.id, counts=file.counts
        )
        events.publish(tx, [event], now=now)
    if finished_at is not None:
        delete_content(claim.db, file.id)
    level = "info" if state is model.FileState.DONE else "warning"
    _log(claim, f"file_{state.value}", level=level, code=ending.code)


def _problem_of(file: model.EligibilityFile, ending: Ending) -> dict[str, Any] | None:
    """The problem of the file as JSON, None without a code."""
    code = ending.code
    if code is None:
        return None
    message = ending.message or code.sentence
    if code in MAPPING_FAULTS and file.mapping_name is not None:
        message = f"{message.removesuffix('.')}. {READ_BY.format(file.mapping_name)}"
    return {"code": code, "message": message, "place": None, **ending.more}


def _clear_up(claim: FileClaim) -> None:
    """Save the account's usage, and renew the planner's statistics after many writes."""
    # Now, because the account's next file begins only if the quota is not used up.
    counter_of(claim.db.engine).save_rest(claim.db, claim.clock())
    file = claim.file
    written = sum(count for outcome, count in file.counts.items() if outcome in model.CHANGED)
    if written and not file.dry_run and file.mode is not FileMode.COMPARE:
        with suppress(Unavailable):  # autovacuum will do it
            refresh_statistics(claim.db, ANALYSED, written=written)


def _log(claim: FileClaim, event: str, **more: object) -> None:
    file = claim.file
    claim.options.tell(
        event, file_id=file.id, account_id=file.account_id, rows=file.rows_done, **more
    )


@contextmanager
def at_full_speed() -> Iterator[None]:
    """No search for cycles, and a thread that comes back from the database should not wait 5 ms for
    the one that reads.
    """
    thresholds = gc.get_threshold()
    interval = sys.getswitchinterval()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
