"""The steps of an upload that is decided before it is applied. This page reads downwards.

1. `begin_draft`, then `DraftUpload`: the content, stored by the MiB.
2. `set_plan_and_mode`: *changes only*, or *everyone in this plan*; there is no default.
3. `suggest` looks at the first rows; `set_mapping` says how the file is read: a text, or what a person has
   made of the suggestion (`mapping.suggest.accepted`).
4. `dry_run`: a file that reads the draft's content and changes nothing.
5. `apply`: the file that is applied. It reads the same content and meets the brakes of every file.

Each step names the version of the draft that its caller has seen, so that two windows don't undo each
other's steps. What changes the plan, the mode or the mapping asks for another dry run. A draft lives
24 h after its last step; its content stays as long as a file has to read it.
"""

import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from frontdesk import audit, codes
from frontdesk.access.accounts import refuse_unless_active
from frontdesk.audit import Requester
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Fault, Invalid, NotFound, RateLimited
from frontdesk.files import model
from frontdesk.files import store as files_store
from frontdesk.files.actions import (
    FILE_NAME_LENGTH,
    RETRY_AFTER_SECONDS,
    cancel_file,
    refuse_too_many_files,
)
from frontdesk.files.content import MOST_BYTES, ContentUpload
from frontdesk.files.drafts import store
from frontdesk.formats.model import FileMode, Format
from frontdesk.formats.source import detect_content
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.suggest.apart import suggest_apart
from frontdesk.plans import get_plan
from frontdesk.reach import Reach

LIVES = timedelta(hours=24)  # after its last step
# Of a draft whose content arrives, between two parts: a sender at the slowest pace takes 160 s for one.
SILENT = timedelta(minutes=10)
MOST_DRAFTS = 20  # of an account
SAMPLE_BYTES = 2 * 1024 * 1024
WORKBOOK_BYTES = 64 * 1024 * 1024

WHICH_SHEET = (
    "Say which sheet of the workbook is read: the people of the other sheets are omitted, and a file of "
    "everyone in this plan ends those."
)

SILENT_MINUTES = SILENT.seconds // 60
ENDS_BY_ITSELF = f"An upload that broke off ends {SILENT_MINUTES} minutes after its last part."

Suggest = Callable[..., dict[str, Any]]


class DraftKey(NamedTuple):
    """A draft, and the version of it that the caller has seen."""

    id: int
    version: int


class NewDraft(NamedTuple):
    """What a caller says of the content. Without `format` its first letters decide."""

    account_id: int
    file_name: str | None = None
    format: Format | None = None
    encoding: str = "utf-8"


def begin_draft(tx: Tx, new: NewDraft, requester: Requester) -> model.Draft:
    """Begin a draft that receives its content until `DraftUpload.finish`. Raises NotFound, Suspended,
    Invalid, RateLimited if the account has too many drafts.
    """
    refuse_unless_active(tx, new.account_id)
    counts = count_drafts(tx, new.account_id, now=requester.now)
    if counts.arriving + counts.waiting >= MOST_DRAFTS:
        detail = f"The account has {MOST_DRAFTS} uploads that are not applied: discard one."
        if counts.arriving:
            detail = f"{detail} Or wait: arriving are {counts.arriving}. {ENDS_BY_ITSELF}"
        fault = ("body", codes.faults.TOO_MANY_FILES)
        raise RateLimited(detail, retry_after_seconds=RETRY_AFTER_SECONDS, fault=fault)
    name = new.file_name
    if name is not None and not (0 < len(name) <= FILE_NAME_LENGTH and name.isprintable()):
        rule = f"must have 1 to {FILE_NAME_LENGTH} characters, and no control character"
        raise Invalid([Fault("file_name", codes.faults.NOT_ALLOWED, rule)])
    return store.insert_draft(
        tx,
        **new._asdict(),
        state=model.DraftState.RECEIVING,
        client=requester.actor,
        created_at=requester.now,
        changed_at=requester.now,
    )


def count_drafts(tx: Tx, account_id: int, *, now: datetime) -> store.DraftCounts:
    """The account's drafts that count against its limits."""
    return store.count_drafts(tx, account_id, silent_since=now - SILENT)


class DraftUpload(ContentUpload):
    """Stores the content of a draft. The account's drafts have a limit together. A draft that has
    received nothing for SILENT is deleted, as that of a process that was killed.
    """

    def __init__(self, db: Database, draft: model.Draft, clock: Callable[[], datetime]) -> None:
        super().__init__(db, draft.account_id)
        self._draft = draft
        self._clock = clock

    def _store_part(self, tx: Tx, number: int, packed: bytes) -> None:
        """Raises TooManyBytes, BrokeOff."""
        now = self._clock()
        size = self.size_bytes
        if not store.insert_part(tx, self._draft.id, number, packed, size_bytes=size, now=now):
            raise _broke_off()
        if count_drafts(tx, self.account_id, now=now).size_bytes > MOST_BYTES:
            detail = f"The account's uploads may have {MOST_BYTES} bytes together: discard one."
            raise model.TooManyBytes(detail)

    def finish(self, requester: Requester) -> model.Draft:
        """The content is complete. Raises Invalid: `empty`, TooManyBytes, BrokeOff; then the draft has to
        be discarded.
        """
        sha256 = self._complete()

        def complete(tx: Tx) -> model.Draft:
            changes = {"state": model.DraftState.OPEN, "sha256": sha256}
            draft = store.change_draft(
                tx, self._draft.id, self._draft.version, changed_at=requester.now, **changes
            )
            if draft is None:
                raise _broke_off()
            return draft

        return write_alone(self._db, complete)

    def discard(self) -> None:
        """Delete the draft with its content."""
        _delete_draft(self._db, self._draft.id)


def get_draft(tx: Tx, draft_id: int, reach: Reach, *, now: datetime) -> model.Draft:
    """A draft whose content is stored. Raises NotFound, also for one beyond reach, one that was
    discarded, and one whose last step is over 24 h ago.
    """
    draft = store.find_draft(tx, draft_id)
    if draft is None or not reach.covers(draft.account_id) or not _is_alive(draft, now):
        raise NotFound("eligibility file")
    return draft


def list_drafts(tx: Tx, account_id: int, *, now: datetime) -> list[model.Draft]:
    """The account's drafts that wait for a step, the newest first."""
    drafts = store.list_drafts(tx, account_id)
    is_open = model.DraftState.OPEN
    return [each for each in reversed(drafts) if each.state is is_open and _is_alive(each, now)]


def set_plan_and_mode(
    tx: Tx, key: DraftKey, reach: Reach, requester: Requester, *, plan_id: int, mode: FileMode
) -> model.Draft:
    """Say whose members the file lists, and whether those that it omits end. Raises NotFound,
    DraftChanged, WrongState.
    """
    draft = _open_draft(tx, key, reach, requester.now)
    get_plan(tx, Reach.of(draft.account_id), plan_id)
    _end_dry_run(tx, draft, requester)
    return _change(tx, key, requester.now, plan_id=plan_id, mode=mode, dry_run_id=None)


def suggest(
    db: Database,
    draft_id: int,
    reach: Reach,
    *,
    now: datetime,
    today: str,
    make: Suggest = suggest_apart,
) -> model.Draft:
    """The draft with a suggestion of a mapping, made once of its first rows by a process apart: up to
    8 s, so only a thread may call it. Raises NotFound, WrongState, Unreadable, Unavailable.

    It is no step: the content never changes, so the suggestion overtakes no other window, and the
    draft lives no longer for it.
    """
    draft = db.ask(lambda tx: _unapplied_draft(tx, draft_id, reach, now))
    if draft.suggestion is not None:
        return draft
    suggestion = _make_suggestion(db, draft, make, today=today)

    def keep(tx: Tx) -> model.Draft:
        _unapplied_draft(tx, draft_id, reach, now)
        return store.keep_suggestion(tx, draft_id, suggestion)

    return write_alone(db, keep)


def suggest_for_sheet(
    db: Database, key: DraftKey, reach: Reach, requester: Requester, *, today: str, sheet: str
) -> model.Draft:
    """The draft with a suggestion for this sheet of its workbook, which the suggested mapping names.
    What was said of the columns of another sheet is gone. Takes and raises as `suggest`, and raises
    DraftChanged.
    """
    draft = db.ask(lambda tx: _open_draft(tx, key, reach, requester.now))
    suggestion = _make_suggestion(db, draft, suggest_apart, today=today, sheet=sheet)

    def keep(tx: Tx) -> model.Draft:
        _end_dry_run(tx, _open_draft(tx, key, reach, requester.now), requester)
        changes = {"suggestion": suggestion, "mapping": None, "dry_run_id": None}
        return _change(tx, key, requester.now, **changes)

    return write_alone(db, keep)


def _make_suggestion(
    db: Database, draft: model.Draft, make: Suggest, *, today: str, sheet: str | None = None
) -> dict[str, Any]:
    options: dict[str, Any] = {"format": draft.format, "encoding": draft.encoding, "sheet": sheet}
    with TemporaryFile() as kept:
        is_cut = _copy_start(db, draft, kept)
        return make(kept, is_cut=is_cut, today=today, **options)


def needs_sheet(draft: model.Draft, mapping: dict[str, Any]) -> bool:
    """Whether somebody has to say which sheet of a workbook is read: the file lists everyone in the
    plan, so that people of another sheet would be ended.
    """
    has_more = "sheets" in (draft.suggestion or {})
    return has_more and draft.mode is FileMode.FULL and "sheet" not in mapping


def _copy_start(db: Database, draft: model.Draft, kept: IO[bytes]) -> bool:
    """Write what a suggestion looks at to the file; whether the content goes on."""
    limit = SAMPLE_BYTES
    copied = number = 0
    while copied < limit:
        part = db.ask(partial(store.content_part, draft_id=draft.id, number=number))
        if part is None:
            break
        data = zlib.decompress(part)
        if number == 0 and (
            draft.format is Format.XLSX or detect_content(data, draft.encoding).is_workbook
        ):
            limit = WORKBOOK_BYTES
        kept.write(data[: limit - copied])
        copied += len(data)
        number += 1
    kept.seek(0)
    return draft.size_bytes > limit


def set_mapping(
    tx: Tx, key: DraftKey, reach: Reach, requester: Requester, *, mapping: dict[str, Any]
) -> model.Draft:
    """Say how the file is read. Raises NotFound, DraftChanged, WrongState; Invalid with the faults of
    the mapping, also for a question that is open.
    """
    draft = _open_draft(tx, key, reach, requester.now)
    parse_mapping(mapping)
    _end_dry_run(tx, draft, requester)
    return _change(tx, key, requester.now, mapping=mapping, dry_run_id=None)


def _end_dry_run(tx: Tx, draft: model.Draft, requester: Requester) -> None:
    """Cancel the dry run of the former plan, mode and mapping, if it is under way."""
    if draft.dry_run_id is not None:
        file = files_store.find_file(tx, draft.dry_run_id, lock=True)
        if file is not None and file.state in files_store.UNFINISHED:
            cancel_file(tx, model.FileKey(file.id, Reach.of(draft.account_id)), requester)


def dry_run(
    tx: Tx, key: DraftKey, reach: Reach, requester: Requester
) -> tuple[model.Draft, model.EligibilityFile]:
    """The dry run of all rows, which waits for a worker. Raises NotFound, DraftChanged; WrongState
    without a plan, a mode and a mapping, or while an earlier dry run is under way.
    """
    draft = _open_draft(tx, key, reach, requester.now)
    before = files_store.find_file(tx, draft.dry_run_id) if draft.dry_run_id else None
    if before is not None and before.state in files_store.UNFINISHED:
        raise model.WrongState("The dry run is under way. Let it end first.")
    file = _make_file(tx, draft, requester, dry_run=True)
    return _change(tx, key, requester.now, dry_run_id=file.id), file


def apply(
    tx: Tx, key: DraftKey, reach: Reach, requester: Requester
) -> tuple[model.Draft, model.EligibilityFile]:
    """The file that is applied, which waits for a worker, and may be held as every file. Raises
    NotFound, DraftChanged; WrongState unless the dry run of this plan, mode and mapping has ended well.
    """
    draft = _open_draft(tx, key, reach, requester.now)
    dry = files_store.find_file(tx, draft.dry_run_id) if draft.dry_run_id else None
    if dry is None or dry.state is not model.FileState.DONE:
        raise model.WrongState("Let a dry run end first: it shows what the file would do.")
    if dry.needs_mapping:
        raise model.WrongState("The file needs a mapping that says how it names its members.")
    file = _make_file(tx, draft, requester, dry_run=False)
    changes = {"state": model.DraftState.APPLIED, "file_id": file.id}
    return _change(tx, key, requester.now, **changes), file


def _make_file(
    tx: Tx, draft: model.Draft, requester: Requester, *, dry_run: bool
) -> model.EligibilityFile:
    """Raises WrongState for a draft that lacks a step, Suspended, RateLimited."""
    refuse_unless_active(tx, draft.account_id)
    refuse_too_many_files(tx, draft.account_id)
    if draft.plan_id is None or draft.mode is None:
        raise model.WrongState("Say the plan first, and whether the file lists everyone in it.")
    if draft.mapping is None:
        raise model.WrongState("Say first how the columns are read.")
    if needs_sheet(draft, draft.mapping):
        raise model.WrongState(WHICH_SHEET)
    file = files_store.insert_file(
        tx,
        requester,
        state=model.FileState.WAITING,
        account_id=draft.account_id,
        plan_id=draft.plan_id,
        draft_id=draft.id,
        format=draft.format,
        encoding=draft.encoding,
        file_name=draft.file_name,
        mapping=draft.mapping,
        mode=draft.mode,
        asked_mode=draft.mode,
        dry_run=dry_run,
        size_bytes=draft.size_bytes,
        sha256=draft.sha256,
    )
    size = draft.size_bytes
    audit.record_action(
        tx, requester, "file.received", draft.account_id, file.id, size_bytes=size, draft=draft.id
    )
    return file


def discard(tx: Tx, key: DraftKey, reach: Reach, requester: Requester) -> None:
    """End the draft; a worker deletes its content. Raises NotFound, DraftChanged, WrongState."""
    _open_draft(tx, key, reach, requester.now)
    _change(tx, key, requester.now, state=model.DraftState.DISCARDED)


def delete_left_drafts(db: Database, now: datetime) -> None:
    """Delete the drafts that are over, with their content, in small transactions. Raises Unavailable."""
    find = partial(store.drafts_to_delete, before=now - LIVES, silent_since=now - SILENT)
    for draft_id in db.ask(find):
        _delete_draft(db, draft_id)


def _delete_draft(db: Database, draft_id: int) -> None:
    while write_alone(db, partial(store.delete_some_of_draft, draft_id=draft_id)):
        pass


def _is_alive(draft: model.Draft, now: datetime) -> bool:
    is_shown = draft.state in (model.DraftState.OPEN, model.DraftState.APPLIED)
    return is_shown and draft.changed_at >= now - LIVES


def _open_draft(tx: Tx, key: DraftKey, reach: Reach, now: datetime) -> model.Draft:
    """The draft, which may be changed. Raises NotFound, WrongState, DraftChanged."""
    draft = _unapplied_draft(tx, key.id, reach, now)
    if draft.version != key.version:
        raise _changed()
    return draft


def _unapplied_draft(tx: Tx, draft_id: int, reach: Reach, now: datetime) -> model.Draft:
    """Raises NotFound, WrongState."""
    draft = get_draft(tx, draft_id, reach, now=now)
    if draft.state is model.DraftState.APPLIED:
        raise model.WrongState(f"The upload was applied, as file {draft.file_id}.")
    return draft


def _change(tx: Tx, key: DraftKey, now: datetime, **changes: Any) -> model.Draft:
    """Raises DraftChanged if another step came first."""
    draft = store.change_draft(tx, key.id, key.version, changed_at=now, **changes)
    if draft is None:
        raise _changed()
    return draft


def _changed() -> model.DraftChanged:
    return model.DraftChanged(
        "The upload was changed meanwhile, maybe in another window. Nothing of this step was done: "
        "look at the upload as it is now."
    )


def _broke_off() -> model.BrokeOff:
    detail = f"The upload stood still for over {SILENT_MINUTES} minutes, and was ended."
    return model.BrokeOff(detail)
