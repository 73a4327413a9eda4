"""The actions on an eligibility file: begin, show, list, approve, accept a mapping, cancel, undo."""

from typing import Any

from frontdesk import audit
from frontdesk.access.accounts import refuse_unless_active
from frontdesk.audit.model import Requester
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, NotFound
from frontdesk.files import store
from frontdesk.files.mappings import DEFAULT_NAME, mapping_of, save_mapping
from frontdesk.files.model import (
    EligibilityFile,
    FileFilter,
    FileQuota,
    FileState,
    FileStep,
    MappingName,
    NewFile,
    SecondPersonNeeded,
    TooManyBytes,
    TooManyFiles,
    WrongState,
)
from frontdesk.formats.model import FileMode
from frontdesk.mapping.parser import SECTION_834, parse_mapping
from frontdesk.plans import get_plan

FILE_NAME_LENGTH = 255


def begin_file(
    tx: Tx, new: NewFile, requester: Requester, *, quota: FileQuota | None = None
) -> EligibilityFile:
    """A file that receives its content; `Upload.finish` lets it wait for a worker. Raises NotFound, Suspended, Invalid,
    TooManyFiles, TooManyBytes. Uploads that begin at the same moment don't see one another and may exceed the quota."""
    refuse_unless_active(tx, new.account_id)
    get_plan(tx, new.account_id, new.plan_id)
    if quota is not None:
        count, size_bytes = store.find_backlog(tx, new.account_id)
        if count >= quota.files:
            raise TooManyFiles(quota.files)
        if size_bytes >= quota.size_bytes:
            raise TooManyBytes(quota.size_bytes)
    mapping_name, mapping = mapping_of(tx, new)
    return store.insert_file(
        tx,
        requester,
        account_id=new.account_id,
        plan_id=new.plan_id,
        state=FileState.RECEIVING,
        format=new.format,
        encoding=new.encoding,
        file_name=_checked_name(new.file_name),
        mapping=mapping,
        mapping_name=mapping_name,
        mode=new.mode or FileMode.CHANGE,
        asked_mode=new.mode,
        dry_run=new.dry_run,
    )


def _checked_name(name: str | None) -> str | None:
    """The name that the caller has for a file. Raises Invalid."""
    if name is not None and not (0 < len(name) <= FILE_NAME_LENGTH and name.isprintable()):
        rule = f"must have 1 to {FILE_NAME_LENGTH} characters, and no control character"
        raise Invalid([Fault("file_name", "not_allowed", rule)])
    return name


def get_file(
    tx: Tx, file_id: int, *, account_id: int | None, plan_id: int | None = None, lock: bool = False
) -> EligibilityFile:
    """The file; with `lock` it is locked until the transaction ends.

    Raises NotFound, also for a file of another account or plan than those that are given.
    """
    file = store.find_file(tx, file_id, lock=lock)
    if file is None or account_id not in (None, file.account_id) or plan_id not in (None, file.plan_id):
        raise NotFound("eligibility file")
    return file


def find_files(tx: Tx, wanted: FileFilter) -> list[EligibilityFile]:
    """The files, the newest first. Raises NotFound for another account's plan."""
    if wanted.plan_id is not None:
        get_plan(tx, wanted.account_id, wanted.plan_id)
    return store.list_files(tx, wanted)


def approve_file(
    tx: Tx, file_id: int, requester: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """Let a held file go on: with all that it would move and end.

    Raises NotFound; WrongState when it is not held, or a newer file says now what holds (`newer_file`);
    SecondPersonNeeded (docs/decisions/0092).
    """
    file = get_file(tx, file_id, account_id=account_id, plan_id=plan_id, lock=True)
    if file.state is not FileState.HELD:
        raise WrongState(f"The file is {file.state}; only one that is held can be approved.")
    if file.needs_mapping:
        raise WrongState(
            f"The file needs a mapping. Accept the suggested one: frontdesk file accept {file_id}"
        )
    if (newer := newer_file(tx, file)) is not None:
        raise WrongState(overtaken_by(newer, file_id))
    if file.client == requester.actor and store.get_file_settings(tx, file.account_id).second_approver:
        raise SecondPersonNeeded
    record_audit(tx, "file.approved", file, requester)
    return store.change_file(tx, file_id, state=FileState.WAITING, approved=True, problem=None)


def accept_mapping(  # noqa: PLR0913 - one parameter per option of the callers
    tx: Tx,
    file_id: int,
    requester: Requester,
    *,
    account_id: int | None,
    plan_id: int | None = None,
    mapping: dict[str, Any],
    keep: bool = True,
) -> EligibilityFile:
    """Let a file that is held for a mapping go on: with the suggested one if `mapping` is empty, else with this one. With `keep`
    it becomes the account's default.

    Raises NotFound; WrongState when the file needs no mapping; Invalid with the faults of the mapping.
    """
    file = get_file(tx, file_id, account_id=account_id, plan_id=plan_id, lock=True)
    if file.state is not FileState.HELD or not file.needs_mapping or file.problem is None:
        raise WrongState(f"The file is {file.state} and needs no mapping.")
    suggested = file.problem["suggestion"]["mapping"][SECTION_834]
    content = mapping or _with_834(file.mapping, suggested)
    if parse_mapping(content).identify is None:
        rule = 'must say how the file names its members, for example {"834": {"identify": "REF*23"}}'
        raise Invalid([Fault(f"{SECTION_834}.identify", "required", rule)])
    if keep:
        default = store.find_mapping(tx, file.account_id, None)
        kept = mapping or _with_834(default.mapping if default else None, suggested)
        key = MappingName(file.account_id, default.name if default else DEFAULT_NAME)
        save_mapping(tx, key, kept, requester, default=True)
    record_audit(tx, "file.mapping_accepted", file, requester, kept=keep)
    return store.change_file(tx, file_id, state=FileState.WAITING, mapping=content, problem=None)


def _with_834(mapping: dict[str, Any] | None, suggested: dict[str, Any]) -> dict[str, Any]:
    mapping = mapping or {}
    return {**mapping, SECTION_834: {**mapping.get(SECTION_834, {}), **suggested}}


def cancel_file(
    tx: Tx, file_id: int, requester: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """Give up a file that waits, runs or is held; what it has applied stays until it is undone. Raises NotFound, WrongState.

    The worker of a running one loses its claim: it stops after the chunk in hand, which it can't commit any more.
    """
    file = get_file(tx, file_id, account_id=account_id, plan_id=plan_id, lock=True)
    if file.state not in (FileState.WAITING, FileState.RUNNING, FileState.HELD):
        raise WrongState(f"The file is {file.state}; only one that waits, runs or is held can be cancelled.")
    store.delete_parts(tx, file_id)
    record_audit(tx, "file.cancelled", file, requester)
    return store.change_file(tx, file_id, state=FileState.CANCELLED, finished_at=requester.now)


def undo_file(
    tx: Tx, file_id: int, requester: Requester, *, account_id: int | None, plan_id: int | None = None
) -> EligibilityFile:
    """A new file that takes back what the file changed; it can itself be undone.

    Raises NotFound; WrongState when there is nothing to take back.
    """
    file = get_file(tx, file_id, account_id=account_id, plan_id=plan_id, lock=True)
    if file.dry_run:
        raise WrongState("The file was a dry run: it has changed nothing.")
    if file.state not in (FileState.DONE, FileState.FAILED, FileState.CANCELLED):
        raise WrongState(f"The file is {file.state}. Let it end, or cancel it, before it is undone.")
    if file.counts and not store.has_report(tx, file_id):
        raise WrongState("The file is too old to be undone: retention has deleted its report.")
    undos = _undos(tx, file_id)
    if len(undos) % 2:
        raise WrongState(f"The file is undone already, by file {undos[-1]}.")
    if undos:
        raise WrongState(
            f"File {undos[-1]} brought back what the undo of this file, file {undos[-2]}, took back. "
            f"Undo file {undos[-1]} instead."
        )
    undo = store.insert_file(
        tx,
        requester,
        account_id=file.account_id,
        plan_id=file.plan_id,
        undoes_id=file_id,
        state=FileState.WAITING,
        step=FileStep.APPLY,
    )
    record_audit(tx, "file.undo_asked", undo, requester, undoes=file_id)
    return undo


def newer_file(tx: Tx, file: EligibilityFile, *, started: bool = False) -> int | None:
    """The newest file of the plan after this one that says now what holds: it was applied and not undone, or it is a full one.

    `started` leaves out full files that wait.
    """
    newer = store.newer_files(tx, file.plan_id, file.id, started=started)
    return next((file_id for file_id in newer if len(_undos(tx, file_id)) % 2 == 0), None)


def overtaken_by(newer: int, file_id: int) -> str:
    return f"A newer file of the plan, file {newer}, has come since. Cancel this one: frontdesk file cancel {file_id}"


def record_audit(tx: Tx, action: str, file: EligibilityFile, requester: Requester, **detail: Any) -> None:
    """Add one audit entry about the file."""
    audit.record_action(tx, requester, action, file.account_id, file.id, **detail)


def _undos(tx: Tx, file_id: int) -> list[int]:
    """The undo of the file, the undo of that, and so on. The last of them says what holds: after an odd number of them the
    file is undone."""
    undos: list[int] = []
    while (undo := store.find_undo(tx, undos[-1] if undos else file_id)) is not None:
        undos.append(undo)
    return undos
