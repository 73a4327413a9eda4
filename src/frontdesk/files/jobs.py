"""An eligibility file as a job: what was asked for, in what state it is, and the few things a person can do to it.

It knows nothing of what stands in a file. Who works on it is `claims`, what is done is `work`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import AuditEntry
from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.files import store
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import (
    EligibilityFile,
    FileMode,
    FileState,
    FileStep,
    NewFile,
    Requester,
    WrongState,
)
from frontdesk.plans import get_plan

_UNDOABLE = (FileState.DONE, FileState.FAILED, FileState.CANCELLED)


def begin_file(tx: Tx, new: NewFile, asked: Requester) -> EligibilityFile:
    """A file that is being received; `Upload.finish` lets it wait for a worker. Raises NotFound."""
    get_plan(tx, new.account_id, new.plan_id)
    values = {
        "format": new.format,
        "encoding": new.encoding,
        "mapping": store.find_mapping(tx, new.account_id) if new.mapping is None else new.mapping,
        "mode": new.mode.value,
        "dry_run": new.dry_run,
    }
    return _insert(tx, new.account_id, new.plan_id, asked, values | {"state": FileState.RECEIVING.value})


def get_file(tx: Tx, file_id: int, *, account_id: int | None, plan_id: int | None = None) -> EligibilityFile:
    """Raises NotFound, also for another account's."""
    file = store.find_file(tx, file_id)
    if file is None or account_id not in (None, file.account_id) or plan_id not in (None, file.plan_id):
        raise NotFound("eligibility file")
    return file


def get_mapping(tx: Tx, account_id: int) -> dict[str, Any] | None:
    """How the account's files name things, where they don't say it themselves."""
    return store.find_mapping(tx, account_id)


def set_mapping(tx: Tx, account_id: int, mapping: dict[str, Any] | None, *, now: datetime) -> None:
    """For the files that come from now on; None takes it away. Raises Invalid."""
    if mapping is not None:
        parse_mapping(mapping)
    store.save_mapping(tx, account_id, mapping, now)


def list_files(tx: Tx, *, account_id: int | None, limit: int) -> list[EligibilityFile]:
    """The newest first."""
    return store.newest_files(tx, account_id, limit)


def approve_file(
    tx: Tx, file_id: int, asked: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """Let a held file end the members that it does not name. Raises NotFound; WrongState when it is not held, or a newer
    one has overtaken it: whom that names may stand in this one no more.
    """
    file = _locked(tx, file_id, account_id=account_id, plan_id=plan_id)
    if file.state == FileState.HELD and (words := overtaken(tx, file)) is not None:
        raise WrongState(f"{words} Cancel this one.")
    changes = {"state": FileState.WAITING.value, "approved": True, "problem": None}
    if not store.change_state(tx, file_id, (FileState.HELD,), changes):
        raise WrongState(f"The file is {file.state}; only one that is held can be approved.")
    record_deed(tx, "file.approved", file, asked)
    return get_file(tx, file_id, account_id=account_id)


def cancel_file(
    tx: Tx, file_id: int, asked: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """Give up a file that waits or is held; what it has applied stays, until it is undone. Raises as `approve_file`."""
    file = _locked(tx, file_id, account_id=account_id, plan_id=plan_id)
    changes = {"state": FileState.CANCELLED.value, "finished_at": asked.now}
    if not store.change_state(tx, file_id, (FileState.WAITING, FileState.HELD), changes):
        raise WrongState(f"The file is {file.state}; only one that waits or is held can be cancelled.")
    store.delete_parts(tx, file_id)
    record_deed(tx, "file.cancelled", file, asked)
    return get_file(tx, file_id, account_id=account_id)


def undo_file(
    tx: Tx, file_id: int, asked: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """A new job that takes back what the file changed; it is itself a file that can be undone.

    Raises NotFound; WrongState when there is nothing to take back.
    """
    file = _locked(tx, file_id, account_id=account_id, plan_id=plan_id)
    if file.dry_run:
        raise WrongState("The file was a dry run: it has changed nothing.")
    if file.state not in _UNDOABLE:
        raise WrongState(f"The file is {file.state}. Let it end, or cancel it, before it is undone.")
    _check_not_undone(tx, file_id)
    values = {"undoes_id": file_id, "state": FileState.WAITING.value, "step": FileStep.APPLY.value}
    undo = _insert(tx, file.account_id, file.plan_id, asked, values)
    record_deed(tx, "file.undo_asked", undo, asked, undoes=file_id)
    return undo


def _check_not_undone(tx: Tx, file_id: int) -> None:
    """An undo may have been undone, and that again: the last of them says what holds. Raises WrongState."""
    undos = _undos(tx, file_id)
    if len(undos) % 2:
        raise WrongState(f"The file is undone already, by file {undos[-1]}.")
    if undos:
        raise WrongState(
            f"File {undos[-1]} brought back what the undo of this file, file {undos[-2]}, took back. "
            f"Undo file {undos[-1]} instead."
        )


def _undos(tx: Tx, file_id: int) -> list[int]:
    """The undo of the file, the undo of that, and so on; of an odd number, the file is undone."""
    undos: list[int] = []
    while (undo := store.find_undo(tx, undos[-1] if undos else file_id)) is not None:
        undos.append(undo)
    return undos


def overtaken(tx: Tx, file: EligibilityFile, *, begun: bool = False) -> str | None:
    """Which newer full file of the plan says by now who is missing, in a sentence; one that was undone does not.

    `begun` leaves out those that wait.
    """
    for newer in store.newer_full_files(tx, file.plan_id, file.id, started=begun):
        if len(_undos(tx, newer)) % 2 == 0:
            return f"A newer full file of the plan, file {newer}, has come since."
    return None


def _locked(tx: Tx, file_id: int, *, account_id: int | None, plan_id: int | None) -> EligibilityFile:
    """As `get_file`; nobody else decides about it until the transaction has ended."""
    store.lock_file(tx, file_id)
    return get_file(tx, file_id, account_id=account_id, plan_id=plan_id)


def record_deed(tx: Tx, action: str, file: EligibilityFile, asked: Requester, **detail: Any) -> None:
    """One audit entry about the file."""
    entry = AuditEntry(
        action=action,
        actor=asked.client,
        request_id=asked.request_id,
        account_id=file.account_id,
        subject_id=file.id,
        detail=detail or None,
    )
    audit.record(tx, [entry], now=asked.now)


def _insert(
    tx: Tx, account_id: int, plan_id: int, asked: Requester, values: Mapping[str, Any]
) -> EligibilityFile:
    row: dict[str, Any] = {
        "account_id": account_id,
        "plan_id": plan_id,
        "mode": FileMode.CHANGE.value,
        "dry_run": False,
        "step": FileStep.CHECK.value,
        "approved": False,
        "size_bytes": 0,
        "rows_done": 0,
        "chunks_done": 0,
        "counts": {},
        "ignored": [],
        "client": asked.client,
        "request_id": asked.request_id,
        "created_at": asked.now,
        "epoch": 0,
    }
    file_id = store.insert_file(tx, row | dict(values))
    return get_file(tx, file_id, account_id=account_id)
