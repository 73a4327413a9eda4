"""Actions of people on eligibility files and mappings: upload, look up, approve, accept a mapping,
cancel, undo; store mappings.

A file's content is stored in the database in parts, and deleted when the file has ended. A file has
a copy of its mapping, so a stored mapping may change or be deleted at any time.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from frontdesk import audit, codes, idempotency
from frontdesk.access.accounts import refuse_unless_active
from frontdesk.audit import Requester
from frontdesk.codes import Remedy
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Fault, Invalid, NotFound, RateLimited
from frontdesk.files import model, row_store, store
from frontdesk.files.approvers import find_obstacle
from frontdesk.files.content import MOST_BYTES, ContentUpload
from frontdesk.formats.model import FileMode
from frontdesk.idempotency.model import Once
from frontdesk.mapping.parser import SECTION_834, parse_mapping
from frontdesk.plans import get_plan
from frontdesk.reach import Reach

MOST_FILES = 100  # of an account, that arrive, wait or run
ABANDONED_AFTER = timedelta(days=1)
FILE_NAME_LENGTH = 255
RETRY_AFTER_SECONDS = 60  # until some of the waiting files may have ended
MOST_MAPPINGS = 50
# An undo stores each of its rows in the history and the report again, for a request without a body.
MOST_UNDOS_IN_A_ROW = 3  # undo, redo, undo: the last one leaves the file undone
MOST_TRIES_OF_AN_UNDO = 5  # of one file, with those that were cancelled or failed
DEFAULT_NAME = "default"
MAPPING_NAME = re.compile("[A-Za-z0-9._-]{1,64}")


def begin_file(
    tx: Tx, new: model.NewFile, requester: Requester, *, is_limited: bool = False
) -> model.EligibilityFile:
    """Begin a file that receives its content until `Upload.finish`. Raises NotFound, Suspended,
    Invalid, RateLimited. Concurrent uploads don't see each other and may exceed the limits.
    """
    refuse_unless_active(tx, new.account_id)
    get_plan(tx, Reach.of(new.account_id), new.plan_id)
    if is_limited:
        refuse_too_many_files(tx, new.account_id)
    mapping_name, mapping = _mapping_of(tx, new)
    name = new.file_name
    if name is not None and not (0 < len(name) <= FILE_NAME_LENGTH and name.isprintable()):
        rule = f"must have 1 to {FILE_NAME_LENGTH} characters, and no control character"
        raise Invalid([Fault("file_name", codes.faults.NOT_ALLOWED, rule)])
    return store.insert_file(
        tx,
        requester,
        state=model.FileState.RECEIVING,
        account_id=new.account_id,
        plan_id=new.plan_id,
        format=new.format,
        encoding=new.encoding,
        dry_run=new.dry_run,
        mode=new.mode or FileMode.CHANGE,
        asked_mode=new.mode,
        file_name=name,
        mapping=mapping,
        mapping_name=mapping_name,
    )


def refuse_too_many_files(tx: Tx, account_id: int) -> None:
    """Raises RateLimited if the account has as many files that wait or run as it may have."""
    files, _ = store.find_backlog(tx, account_id)
    if files >= MOST_FILES:
        detail = (
            f"The account has {MOST_FILES} files that wait or run; "
            "send this one when some of them have ended."
        )
        fault = ("body", codes.faults.TOO_MANY_FILES)
        raise RateLimited(detail, retry_after_seconds=RETRY_AFTER_SECONDS, fault=fault)


def _mapping_of(tx: Tx, new: model.NewFile) -> tuple[str | None, dict[str, Any] | None]:
    """The name (None: not the account's) and content of a new file's mapping: its own, the named
    one, else the account's default; with the sheet and header row of the upload. Raises NotFound,
    Invalid.
    """
    name = None
    content = new.mapping
    if content is None:
        stored = _stored_mapping_of(tx, new)
        if stored is not None:
            name = stored.name
            content = stored.mapping
    of_upload: dict[str, Any] = {}
    if new.sheet is not None:
        of_upload["sheet"] = new.sheet
    if new.header_row is not None:
        of_upload["header_row"] = new.header_row
    parse_mapping({**(new.mapping or {}), **of_upload})
    return name, {**(content or {}), **of_upload} if of_upload else content


def _stored_mapping_of(tx: Tx, new: model.NewFile) -> model.StoredMapping | None:
    """The named mapping, else the account's default. Raises NotFound."""
    if new.mapping_name is None:
        return store.find_mapping(tx, new.account_id, None)
    return get_mapping(tx, model.MappingName(new.account_id, new.mapping_name))


class Upload(ContentUpload):
    """Stores the content of a file. With `is_limited`, the total size of the account's files is
    limited while the content arrives.
    """

    def __init__(
        self, db: Database, file: model.EligibilityFile, *, is_limited: bool = False
    ) -> None:
        super().__init__(db, file.account_id)
        self._file = file
        self._is_limited = is_limited

    def _store_part(self, tx: Tx, number: int, packed: bytes) -> None:
        store.insert_part(tx, self._file.id, number, packed)
        if self._is_limited:
            store.change_file(tx, self._file.id, size_bytes=self.size_bytes)
            _, size_bytes = store.find_backlog(tx, self.account_id)
            if size_bytes > MOST_BYTES:
                detail = (
                    f"The account's files that wait or run may have {MOST_BYTES} bytes together; "
                )
                raise model.TooManyBytes(detail + "send this one when some have ended.")

    def finish(
        self,
        requester: Requester,
        once: Callable[[str], Once[model.EligibilityFile] | None] = lambda _: None,
    ) -> model.EligibilityFile:
        """Complete the content; the file then waits for a worker. `once` makes a keyed request of
        the content's SHA-256.

        Raises Invalid: `empty`, `idempotency_key_reused`; AnsweredBefore if an earlier upload had
        the key. Then the upload has to be discarded.
        """
        sha256 = self._complete()
        finished = partial(self._finish, requester=requester, sha256=sha256, once=once(sha256))
        return write_alone(self._db, finished)

    def _finish(
        self, tx: Tx, requester: Requester, sha256: str, once: Once[model.EligibilityFile] | None
    ) -> model.EligibilityFile:
        if once is not None:
            idempotency.refuse_answered(tx, once)
        account_id = self._file.account_id
        file_id = self._file.id
        size = self.size_bytes
        audit.record_action(tx, requester, "file.received", account_id, file_id, size_bytes=size)
        file = store.change_file(
            tx, file_id, state=model.FileState.WAITING, size_bytes=size, sha256=sha256
        )
        if once is not None:
            idempotency.keep_answers(tx, [(once, file)], now=requester.now)
        return file

    def discard(self) -> None:
        """Delete the file with its content."""
        delete_content(self._db, self._file.id)
        write_alone(self._db, partial(store.delete_file, file_id=self._file.id))


def delete_content(db: Database, file_id: int) -> None:
    """Delete the content of an ended file in small transactions. Raises Unavailable."""
    while write_alone(db, partial(store.delete_parts, file_id=file_id)):
        pass


def delete_left_content(db: Database, now: datetime) -> None:
    """Delete the remaining content of ended files (cancelled large files, or after a kill), and
    uploads that were interrupted more than a day ago. Raises Unavailable.
    """
    for file_id in db.ask(store.ended_files_with_parts):
        delete_content(db, file_id)
    for file_id in db.ask(partial(store.unfinished_uploads, before=now - ABANDONED_AFTER)):
        delete_content(db, file_id)
        write_alone(db, partial(store.delete_file, file_id=file_id))


def get_file(tx: Tx, key: model.FileKey, *, lock: bool = False) -> model.EligibilityFile:
    """The file; with `lock` it is locked until the transaction ends. Raises NotFound, also for one
    out of reach or of another plan than the key's.
    """
    file = store.find_file(tx, key.id, lock=lock)
    if (
        file is not None
        and key.reach.covers(file.account_id)
        and key.plan_id in (None, file.plan_id)
    ):
        return file
    raise NotFound("eligibility file")


def find_files(tx: Tx, file_filter: model.FileFilter) -> list[model.EligibilityFile]:
    """The files, the newest first. Raises NotFound for a plan out of reach."""
    if file_filter.plan_id is not None:
        get_plan(tx, file_filter.reach, file_filter.plan_id)
    return store.list_files(tx, file_filter)


def approve_file(
    tx: Tx, key: model.FileKey, requester: Requester, *, approves_since: datetime | None = None
) -> model.EligibilityFile:
    """Let a held file continue as a whole, for the numbers that it shows. A user of the console has
    held the right to approve since `approves_since`.

    Raises NotFound; WrongState if it is not held, or is a full file that a newer file overtakes
    (`overtaken_by`); SecondPersonNeeded (`approvers`).
    """
    file = get_file(tx, key, lock=True)
    if file.state is not model.FileState.HELD:
        raise model.WrongState(f"The file is {file.state}; only one that is held can be approved.")
    if file.needs_mapping:
        raise model.WrongState(
            "The file needs a mapping. Accept the suggested one, or give another.",
            remedy=Remedy.ACCEPT_MAPPING,
            ids={"plan_id": file.plan_id, "file_id": file.id},
        )
    # A change file and an undo decide about each member, so that a newer file is not in their way.
    if file.mode is not FileMode.CHANGE and (reason := overtaken_by(tx, file)):
        raise model.WrongState(
            reason, remedy=Remedy.CANCEL_FILE, ids={"plan_id": file.plan_id, "file_id": file.id}
        )
    if obstacle := find_obstacle(tx, file, requester.actor, approves_since=approves_since):
        raise model.SecondPersonNeeded(obstacle)
    audit.record_action(tx, requester, "file.approved", file.account_id, file.id)
    waiting = {"state": model.FileState.WAITING, "approved": True, "problem": None}
    return _decide(tx, file, requester, **waiting)


def accept_mapping(
    tx: Tx, key: model.FileKey, requester: Requester, *, mapping: dict[str, Any], keep: bool = True
) -> model.EligibilityFile:
    """Let a file that is held for a mapping continue: with the suggested mapping if `mapping` is
    empty, else with `mapping`. With `keep` it becomes the account's default.

    Raises NotFound; WrongState if the file needs no mapping; Invalid with the faults of the
    mapping.
    """
    file = get_file(tx, key, lock=True)
    if file.state is not model.FileState.HELD or not file.needs_mapping or file.problem is None:
        raise model.WrongState(f"The file is {file.state} and needs no mapping.")
    suggested = file.problem["suggestion"]["mapping"][SECTION_834]
    content = mapping or _with_834(file.mapping, suggested)
    if parse_mapping(content).identify is None:
        rule = (
            'must say how the file names its members, for example {"834": {"identify": "REF*23"}}'
        )
        raise Invalid([Fault(f"{SECTION_834}.identify", codes.faults.REQUIRED, rule)])
    if keep:
        default = store.find_mapping(tx, file.account_id, None)
        new_default = mapping or _with_834(default.mapping if default else None, suggested)
        name = model.MappingName(file.account_id, default.name if default else DEFAULT_NAME)
        check_mapping(name.name, new_default)
        save_mapping(tx, name, new_default, requester, default=True)
    audit.record_action(tx, requester, "file.mapping_accepted", file.account_id, file.id, kept=keep)
    waiting = {"state": model.FileState.WAITING, "mapping": content, "problem": None}
    return _decide(tx, file, requester, **waiting)


def _with_834(mapping: dict[str, Any] | None, suggested: dict[str, Any]) -> dict[str, Any]:
    mapping = mapping or {}
    return {**mapping, SECTION_834: {**mapping.get(SECTION_834, {}), **suggested}}


def cancel_file(tx: Tx, key: model.FileKey, requester: Requester) -> model.EligibilityFile:
    """Cancel a waiting, running or held file; applied rows stay until an undo. Raises NotFound,
    WrongState.

    The worker of a running file loses its claim, so it can't commit the current chunk.
    """
    file = get_file(tx, key, lock=True)
    if file.state not in (model.FileState.WAITING, model.FileState.RUNNING, model.FileState.HELD):
        detail = f"The file is {file.state}; only one that waits, runs or is held can be cancelled."
        raise model.WrongState(detail)
    store.delete_parts(tx, file.id)
    audit.record_action(tx, requester, "file.cancelled", file.account_id, file.id)
    cancelled = {"state": model.FileState.CANCELLED, "finished_at": requester.now}
    return _decide(tx, file, requester, **cancelled)


def _decide(
    tx: Tx, file: model.EligibilityFile, requester: Requester, **changes: Any
) -> model.EligibilityFile:
    """Change the file, and note who decided so, and when."""
    by = {"decided_by": requester.actor, "decided_at": requester.now}
    return store.change_file(tx, file.id, **changes, **by)


def undo_file(tx: Tx, key: model.FileKey, requester: Requester) -> model.EligibilityFile:
    """A new file that undoes the file's changes; it can itself be undone. A file whose undo refused
    records can be undone again: the reason may be gone. Raises NotFound; WrongState if there is
    nothing to undo, or the file was undone as often as it may be.
    """
    file = get_file(tx, key, lock=True)
    refuse_undo(tx, file)
    undo = store.insert_file(
        tx,
        requester,
        account_id=file.account_id,
        plan_id=file.plan_id,
        undoes_id=file.id,
        state=model.FileState.WAITING,
    )
    audit.record_action(tx, requester, "file.undo_asked", undo.account_id, undo.id, undoes=file.id)
    return undo


def refuse_undo(tx: Tx, file: model.EligibilityFile) -> None:
    """Raises WrongState if the file can't be undone now, as `undo_file`."""
    if file.dry_run:
        raise model.WrongState("The file was a dry run: it has changed nothing.")
    if file.state not in (model.FileState.DONE, model.FileState.FAILED, model.FileState.CANCELLED):
        raise model.WrongState(
            f"The file is {file.state}. Let it end, or cancel it, before it is undone."
        )
    if file.counts and row_store.next_chunk(tx, file.id, 0) is None:
        raise model.WrongState(
            "The file is too old to be undone: retention has deleted its report."
        )
    undos = _chain(file.id, partial(store.find_undo, tx))
    if len(undos) % 2:
        undo = get_file(tx, model.FileKey(undos[-1], Reach.of(file.account_id)))
        if undo.state is not model.FileState.DONE:
            raise model.WrongState(f"The undo of this file, file {undo.id}, is {undo.state}.")
        if len(undos) > 1 or model.REFUSED not in undo.counts:
            raise model.WrongState(f"The file is undone already, by file {undo.id}.")
    elif undos:
        raise model.WrongState(
            f"The undo of this file, file {undos[-2]}, was itself undone by file {undos[-1]}. "
            f"Undo file {undos[-1]} instead."
        )
    _refuse_endless_undo(tx, file)


def _refuse_endless_undo(tx: Tx, file: model.EligibilityFile) -> None:
    """Raises WrongState. Undos of undos, and undos that are cancelled and asked for again, would
    fill the disk.
    """
    loaded = file
    undos_in_a_row = 0
    while loaded.undoes_id is not None:
        loaded = get_file(tx, model.FileKey(loaded.undoes_id, Reach.of(file.account_id)))
        undos_in_a_row += 1
    if undos_in_a_row >= MOST_UNDOS_IN_A_ROW:
        raise model.WrongState(
            f"File {loaded.id} was undone, redone and undone again, and this is the last undo. "
            "To apply the file, load it again."
        )
    if store.count_undos(tx, file.id) >= MOST_TRIES_OF_AN_UNDO:
        raise model.WrongState(
            f"The undo of this file was begun {MOST_TRIES_OF_AN_UNDO} times. "
            "Load a file with the right values."
        )


def overtaken_by(tx: Tx, file: model.EligibilityFile) -> str:
    """A sentence that names the newer file of the plan that overtakes this file: the newest that
    was applied and not undone, or a full file that has begun; "" without one. A change file can be
    approved nevertheless.
    """
    newer = store.newer_files(tx, file.plan_id, file.id)
    holding = next((id_ for id_ in newer if not is_undone(tx, id_)), None)
    if holding is None:
        return ""
    reason = f"A newer file of the plan, file {holding}, has come since."
    if file.mode is not FileMode.CHANGE:
        return f"{reason} Cancel this one."
    return (
        f"{reason} Cancel this one, or approve it: then its rows of members that were changed since "
        "it came are refused."
    )


def is_undone(tx: Tx, file_id: int) -> bool:
    """Whether the file was undone, in part at least, and that undo was not. An undo that waits, runs or
    is held has taken nothing back yet, and one that has refused every row never will.
    """
    return len(_chain(file_id, partial(_effective_undo, tx))) % 2 == 1


def undone_by(tx: Tx, file_id: int) -> int | None:
    """The id of the undo by which the file is undone, as `is_undone`, or the newest that has ended and
    has taken nothing back.
    """
    undos = _chain(file_id, partial(_effective_undo, tx))
    if undos:
        return undos[-1] if len(undos) % 2 else None
    return next((undo_id for undo_id, _ in store.done_undos(tx, file_id)), None)


def _effective_undo(tx: Tx, file_id: int) -> int | None:
    """The newest undo of the file that has ended and has taken something back."""
    undos = store.done_undos(tx, file_id)
    return next((undo_id for undo_id, has_changed in undos if has_changed), None)


def _chain(file_id: int, find: Callable[[int], int | None]) -> list[int]:
    """The undo of the file, the undo of that undo, and so on. After an odd number of undos the file
    is undone.
    """
    undos: list[int] = []
    while True:
        undo = find(undos[-1] if undos else file_id)
        if undo is None:
            return undos
        undos.append(undo)


def get_mapping(tx: Tx, key: model.MappingName) -> model.StoredMapping:
    """Raises NotFound, also for a mapping of another account."""
    found = store.find_mapping(tx, *key) if MAPPING_NAME.fullmatch(key.name) else None
    if found is None:
        raise NotFound("eligibility mapping")
    return found


def check_mapping(name: str, content: dict[str, Any]) -> None:
    """Raises Invalid with each fault of a mapping that is to be saved by this name."""
    parse_mapping(content)
    nulls = [part for part, value in content.items() if value is None]
    if nulls:
        raise Invalid([Fault(part, codes.faults.WRONG_TYPE, "must not be null") for part in nulls])
    if not MAPPING_NAME.fullmatch(name):
        rule = "must have 1 to 64 letters, digits, dots, underscores or hyphens"
        raise Invalid([Fault("name", codes.faults.NOT_ALLOWED, rule)])


def save_mapping(
    tx: Tx,
    key: model.MappingName,
    content: dict[str, Any],
    requester: Requester,
    *,
    default: bool | None,
) -> bool:
    """Store a mapping that `check_mapping` has let pass, for later files; True if the name is new.
    `default` True or False makes it the account's default or not; None changes nothing. Raises
    Invalid when the account has too many.

    A race with another writer of the account's mappings is a unique violation: run the transaction
    again.
    """
    known = {
        mapping.name: mapping.is_default for mapping in store.list_mappings(tx, key.account_id)
    }
    if key.name not in known and len(known) >= MOST_MAPPINGS:
        rule = f"must be one of the account's {MOST_MAPPINGS} mappings: delete one that is not used"
        raise Invalid([Fault("name", codes.faults.NOT_ALLOWED, rule)])
    is_default = known.get(key.name, False) if default is None else default
    is_new = key.name not in known
    stored = model.StoredMapping(*key, content, is_default, requester.now)
    store.save_mapping(tx, stored, is_new=is_new)
    audit.record_action(tx, requester, "mapping.saved", key.account_id, name=key.name)
    return is_new


def delete_mapping(tx: Tx, key: model.MappingName, requester: Requester) -> None:
    """Raises NotFound. Earlier files keep their copies."""
    if not MAPPING_NAME.fullmatch(key.name) or not store.delete_mapping(tx, *key):
        raise NotFound("eligibility mapping")
    audit.record_action(tx, requester, "mapping.deleted", key.account_id, name=key.name)
