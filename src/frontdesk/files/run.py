"""The way of a file, from its claim to its last state. This page reads downwards.

1. Claim (`run_next`): commits a lease and the next epoch of the file. When a worker dies, its lease
   runs out, and another worker begins here.
2. Check (`check_file`): reads the whole file and writes nothing. `_save_check` then commits what was
   found, and that the rows come next. After a death the next worker checks the file again.
3. Rehearse (`_rehearse`): decides all rows and writes no member. Then a file may be held for a
   person's approval, and nothing of it is applied. After a death the next worker decides again.
4. Apply (`apply_rows`): commits chunk after chunk; members, outcomes and the file's position are in
   ONE transaction. After a death the next worker continues after the last committed chunk.
5. End (`_end_missing`): commits, chunk by chunk, the end of the members that a full file omits. After
   a death the next worker ends the remaining ones.
6. Finish (`_finish`): commits the last state with its problem, audit entry and event; then deletes
   the content. After a death in between a worker deletes the content later
   (`actions.delete_left_content`).

A dry run ends after the rehearsal. Its decisions are in a scratch database that ends with the
process, so after a death it begins again. An undo has no content: `undo` takes the place of steps 2
to 5, and may hold it too. `turns` decides which file of a worker runs.
"""

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
from frontdesk.eligibility.dry_run import dry_run
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.files import model, row_store
from frontdesk.files.absence import find_ends
from frontdesk.files.actions import delete_content
from frontdesk.files.brakes import ApprovalNeeded, find_reasons, list_affected
from frontdesk.files.check import CheckResult, check_file
from frontdesk.files.claims import FileClaim, LostClaim, RunOptions, Stopped, claim_next, renewing
from frontdesk.files.forecast import Forecast, Tally
from frontdesk.files.holds import day_begun, hold
from frontdesk.files.kept import kept_by_refused, list_kept, list_refused
from frontdesk.files.load import ChunkWriter, apply_rows
from frontdesk.files.rehearsal import needs_rehearsal, rehearse
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
    today = claim.db.ask(partial(day_begun, file=claim.file))
    is_begun = claim.file.rows_done > 0 and not claim.file.dry_run
    is_to_apply = claim.file.step is model.FileStep.APPLY
    if is_to_apply and not is_begun:
        _rehearse(claim, check, today)
    if claim.file.dry_run:
        return is_test
    writer = ChunkWriter(claim, None, today)
    if is_to_apply:
        apply_rows(claim, check, writer)
        # Of an 834 the check counts the rows of a member once, even where two people share its
        # identifier.
        claim.update(step=model.FileStep.END, rows_total=claim.file.rows_done)
    if check.mode is FileMode.FULL:
        _end_missing(claim, check, writer)
    return is_test


def _save_check(tx: Tx, claim: FileClaim, check: CheckResult) -> None:
    """Store the result of the check. The report of a dry run is emptied: its scratch database is
    gone. The lists of a held file stay until its first row is applied.
    """
    file = claim.file
    if file.dry_run:
        row_store.delete_outcomes(tx, file.id)
        claim.save(tx, chunks_done=0, rows_done=0, counts={}, codes={})
    if file.step is not model.FileStep.CHECK and not file.dry_run:
        return
    members_before = file.members_before
    if check.mode is FileMode.FULL and members_before is None:
        members_before = eligibility.count_members_open_after(tx, file.plan_id, check.file_date)
    header = check.header
    claim.rows_checked = None
    claim.save(
        tx,
        rows_checked=None,
        step=model.FileStep.APPLY,
        started_at=file.started_at or claim.clock(),
        mode=check.mode,
        file_date=check.file_date,
        sender=header.sender,
        rows_total=check.rows,
        members_before=members_before,
        format=header.format,
        encoding=header.encoding,
        delimiter=header.columns[0] if header.columns else None,
        ignored=[*header.ignored],
    )


def _rehearse(claim: FileClaim, check: CheckResult, today: str) -> None:
    """Decide what the file would do, and make the report of a dry run. Raise ApprovalNeeded if a
    person has to approve it.
    """
    if not needs_rehearsal(claim.file, check):
        _hold_if_needed(claim, check, None, today)
        return
    with dry_run(claim.options.uniqueness) as scratch:
        forecast = rehearse(claim, check, scratch, today)
        if claim.file.dry_run:
            claim.update(step=model.FileStep.END, rows_total=claim.file.rows_done)
        _hold_if_needed(claim, check, forecast, today)


def _hold_if_needed(
    claim: FileClaim, check: CheckResult, forecast: Forecast | None, today: str
) -> None:
    """Raise ApprovalNeeded if a person has to approve the file. Without a forecast, it changes no
    stored member.
    """
    tally = forecast.tally() if forecast else Tally()
    find = partial(find_reasons, check=check, tally=tally, today=today)
    reasons = claim.db.ask(partial(find, file=claim.file))
    hold(claim, reasons, tally, list_affected(claim.db, check, forecast))


def _end_missing(claim: FileClaim, check: CheckResult, writer: ChunkWriter) -> None:
    """End the members that a full file omits, without those that a refused row may mean."""
    ended = 0
    refused = list_refused(claim.db, claim.file) if claim.file.counts.get(model.REFUSED) else ()
    kept = kept_by_refused(claim, check, refused)
    listed = list_kept(claim.db, claim.file) if kept else ()  # by a worker that died
    for rows in find_ends(claim.db, claim.file, check, kept, listed=listed):
        claim.checkpoint(model.FileStep.END, ended)
        if rows:
            writer.write(rows)
        ended += len(rows)


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
    about: dict[str, Any] = {"file_id": file.id, "plan_id": file.plan_id}
    if problem is not None and state is model.FileState.HELD:
        about |= {"code": problem["code"], "message": problem["message"], "counts": file.counts}
    event = NewEvent(
        file.account_id, AccountEventType(f"file.{state.value}"), about, file.request_id
    )
    with claim.write() as tx:
        claim.save(tx, state=state, problem=problem, finished_at=finished_at)
        detail: dict[str, Any] = {"counts": file.counts}
        if file.dry_run:
            detail["dry_run"] = True  # nobody was changed
        record_action(tx, requester, f"file.{state.value}", file.account_id, file.id, **detail)
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
