"""The files of an account as a person looks at them: those that need a decision, those that are
under way, and those that have ended.
"""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.files import store
from frontdesk.files.actions import find_files, get_file, undone_by
from frontdesk.files.model import EligibilityFile, FileFilter, FileKey, FileState
from frontdesk.formats.model import FileMode
from frontdesk.reach import Reach

MOST_SHOWN = 25  # files of a page, and of each part of an overview
FAILED_FOR = timedelta(days=7)  # how long a failed file needs somebody
ENDED_FOR = timedelta(days=30)

UNDER_WAY = (FileState.RUNNING, FileState.WAITING, FileState.RECEIVING)


class FilePage(NamedTuple):
    """Files, the newest first. `next_before` is the id that the next page begins below; None if
    there is none.
    """

    files: list[EligibilityFile]
    next_before: int | None


class FileOverview(NamedTuple):
    """The files of an account by what they need. `held` and `failed` need somebody: the held ones,
    and those that failed in the last 7 days. `ended` are the others that came in the last 30 days.

    Each part has 25 files at most; `more` names the states of which there are more. `older_before`
    is the id that older ended files begin below, None if there are none.
    """

    held: list[EligibilityFile]
    failed: list[EligibilityFile]
    under_way: list[EligibilityFile]
    ended: list[EligibilityFile]
    more: frozenset[FileState]
    older_before: int | None


def read_overview(tx: Tx, account_id: int, *, now: datetime) -> FileOverview:
    """The overview of the account's files."""
    more = set()

    def of_state(state: FileState) -> list[EligibilityFile]:
        page = read_page(tx, Reach.of(account_id), state=state)
        if page.next_before is not None:
            more.add(state)
        return page.files

    failed = [file for file in of_state(FileState.FAILED) if file.created_at >= now - FAILED_FOR]
    if len(failed) < MOST_SHOWN:
        more.discard(FileState.FAILED)
    found = read_ended(tx, account_id, before_id=None, now=now)
    recent = [file for file in found.files if file.created_at >= now - ENDED_FOR]
    older = found.next_before
    if len(recent) < len(found.files):
        older = recent[-1].id if recent else found.files[0].id + 1
    held = of_state(FileState.HELD)
    under_way = [file for state in UNDER_WAY for file in of_state(state)]
    return FileOverview(held, failed, under_way, recent, frozenset(more), older)


def read_ended(tx: Tx, account_id: int, *, before_id: int | None, now: datetime) -> FilePage:
    """The account's files that have ended, without those that failed in the last 7 days."""

    def read(before: int | None, limit: int) -> list[EligibilityFile]:
        # State by state: PostgreSQL would sort all files of the account for several.
        filters = (
            FileFilter(Reach.of(account_id), limit, state=FileState.DONE, before_id=before),
            FileFilter(Reach.of(account_id), limit, state=FileState.CANCELLED, before_id=before),
            FileFilter(
                Reach.of(account_id),
                limit,
                state=FileState.FAILED,
                before_id=before,
                created_before=now - FAILED_FOR,
            ),
        )
        found = [file for each in filters for file in store.list_files(tx, each)]
        return sorted(found, key=attrgetter("id"), reverse=True)[:limit]

    return _page(read, before_id)


def read_page(
    tx: Tx,
    reach: Reach,
    *,
    state: FileState | None = None,
    plan_id: int | None = None,
    before_id: int | None = None,
) -> FilePage:
    """The files within reach in this state and of this plan. Raises NotFound for a plan out of
    reach.
    """

    def read(before: int | None, limit: int) -> list[EligibilityFile]:
        return find_files(tx, FileFilter(reach, limit, plan_id, state, before_id=before))

    return _page(read, before_id)


def find_undos(tx: Tx, files: Collection[EligibilityFile]) -> dict[int, EligibilityFile]:
    """The undos by which files are undone, by the id of the file."""
    asked_for = store.with_undos(tx, [file.id for file in files])
    found = {file.id: _undone_by(tx, file) for file in files if file.id in asked_for}
    return {file_id: undo for file_id, undo in found.items() if undo is not None}


def _undone_by(tx: Tx, file: EligibilityFile) -> EligibilityFile | None:
    undo_id = undone_by(tx, file.id)
    return None if undo_id is None else get_file(tx, FileKey(undo_id, Reach.of(file.account_id)))


def _page(
    read: Callable[[int | None, int], list[EligibilityFile]], before_id: int | None
) -> FilePage:
    found = read(before_id, MOST_SHOWN + 1)
    files = found[:MOST_SHOWN]
    return FilePage(files, files[-1].id if len(found) > MOST_SHOWN else None)


class FileView(NamedTuple):
    """A file and the files about it: the one that it undoes, its own newest undo that neither
    failed nor was cancelled, and the plan's last applied file before it. `undone_by` is the undo that
    has ended and by which the file is undone.
    """

    file: EligibilityFile
    undone: EligibilityFile | None
    undo: EligibilityFile | None
    previous: EligibilityFile | None
    undone_by: EligibilityFile | None

    @property
    def version(self) -> str:
        """What a decision about the file depends on: a word that differs after another decision, or
        after the file was held again. Progress of a file does not change it.
        """
        file = self.file
        if file.state is FileState.HELD:
            return f"held-{file.epoch}"
        if file.state in UNDER_WAY:
            return "under-way"
        return f"{file.state}-{self.undo.id if self.undo else 0}"


def read_view(tx: Tx, key: FileKey, *, lock: bool = False) -> FileView:
    """The view of the file, locked with `lock` until the transaction ends. Raises NotFound."""
    file = get_file(tx, key, lock=lock)
    undo_id = store.find_undo(tx, file.id)
    undone = None if file.undoes_id is None else get_file(tx, FileKey(file.undoes_id, key.reach))
    undo = None if undo_id is None else get_file(tx, FileKey(undo_id, key.reach))
    previous = None if undone else _applied_before(tx, file)
    return FileView(file, undone, undo, previous, _undone_by(tx, file) if undo else None)


def _applied_before(tx: Tx, file: EligibilityFile) -> EligibilityFile | None:
    """The plan's last applied file before this one, among the 25 before it that are done."""
    own = Reach.of(file.account_id)
    before = FileFilter(own, MOST_SHOWN, file.plan_id, FileState.DONE, before_id=file.id)
    return next((each for each in store.list_files(tx, before) if _was_applied(each)), None)


def _was_applied(file: EligibilityFile) -> bool:
    is_undo = file.undoes_id is not None
    return not (is_undo or file.dry_run or file.mode is FileMode.COMPARE)
