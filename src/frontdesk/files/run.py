"""One piece of work on eligibility files: claim the oldest that can be run, run it to its end, and say how it ended.

A worker calls `run_next` again and again; the command line calls it for its own file. It knows no door.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.files import store
from frontdesk.files.absence import ApprovalNeeded
from frontdesk.files.claims import LEASE_SECONDS, FileClaim, LostClaim, claim_next
from frontdesk.files.content import forget_unfinished
from frontdesk.files.jobs import record_deed
from frontdesk.files.load import RunOptions, Stopped, run_load
from frontdesk.files.model import EligibilityFile, FileState, Requester, Unreadable
from frontdesk.files.undo import run_undo

COLLECT_AFTER = 200_000
SWITCH_SECONDS = 0.0005


def run_next(
    db: Database,
    clock: Clock,
    turn: RunOptions,
    *,
    only: int | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> bool:
    """Work on one file until it is done or `turn.stop()`; False when there was none to work on. Raises Unavailable.

    What is raised leaves the file to the next worker, after the last committed chunk, once the lease has run out. A
    fault of the service fails the file and is raised, so that it is logged.
    """
    claim = claim_next(db, clock, only=only, lease_seconds=lease_seconds)
    if claim is None:
        forget_unfinished(db, clock())
        return False
    # A lost claim is another worker's now; what was committed before is all that counts.
    with suppress(LostClaim), _at_full_speed(), claim.kept():
        _run(claim, turn)
    return True


@contextmanager
def _at_full_speed() -> Iterator[None]:
    """Rows make no cycles, and looking for some took a third of the time. A thread that comes back from the database
    should not wait 5 ms for the one that reads."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def _run(claim: FileClaim, turn: RunOptions) -> None:
    try:
        if claim.file.undoes_id is not None:
            run_undo(claim, turn)
        else:
            run_load(claim, turn)
    except Stopped:
        claim.update(state=FileState.WAITING.value)
    except Unreadable as error:
        _end(claim, FileState.FAILED, {"code": error.code, "message": error.detail, "place": error.place})
    except Invalid as error:
        fault = error.faults[0]
        message = f"The mapping's {fault.field} {fault.message}."
        _end(claim, FileState.FAILED, {"code": "bad_mapping", "message": message, "place": None})
    except ApprovalNeeded as brake:
        problem = {"code": "brake", "message": brake.message, "place": None}
        _end(claim, FileState.DONE if claim.file.dry_run else FileState.HELD, problem)
    except (FrontdeskError, LostClaim):
        raise
    except Exception:
        message = "A fault of the service; what was applied so far stands, and the report lists it."
        _end(claim, FileState.FAILED, {"code": "internal", "message": message, "place": None})
        raise
    else:
        _end(claim, FileState.DONE, None)


def _end(claim: FileClaim, state: FileState, problem: dict[str, Any] | None) -> None:
    """The file's last word (a held one may get another): its state, and one audit entry with the counts."""
    now = claim.clock()
    with claim.db.write() as tx:
        if state is FileState.HELD:
            claim.save(tx, state=state.value, problem=problem)
        else:
            claim.save(tx, state=state.value, problem=problem, finished_at=now)
            store.delete_parts(tx, claim.file.id)
        _record(tx, claim.file, state, now)
    claim.refresh()


def _record(tx: Tx, file: EligibilityFile, state: FileState, now: Any) -> None:
    asked = Requester(file.client, file.request_id, now)
    record_deed(tx, f"file.{state.value}", file, asked, counts=file.counts)
