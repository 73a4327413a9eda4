"""One file: what became of it or would, and what a person decides about it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from frontdesk.audit import Requester
from frontdesk.console import file_words, frame
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.file_people import ListedRow, read_list
from frontdesk.console.live import show_live
from frontdesk.console.times import Times
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError, NotFound
from frontdesk.files import actions
from frontdesk.files.approvers import find_obstacle
from frontdesk.files.drafts.steps import get_draft
from frontdesk.files.faults import FaultGroup, group_faults
from frontdesk.files.model import (
    CHANGED,
    HELD_LISTS,
    Draft,
    EligibilityFile,
    FileKey,
    FileState,
    SecondPersonNeeded,
    WrongState,
)
from frontdesk.files.overview import FileView, read_view
from frontdesk.files.report import ReportCursor, ReportFilter
from frontdesk.files.undo import count_undo
from frontdesk.formats.model import FileMode
from frontdesk.plans import get_plan
from frontdesk.plans.model import Plan
from frontdesk.text import isolated
from frontdesk.users.directory import users_with
from frontdesk.users.model import Right, User
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.response import Response

PAGES = Pages()

_PATH = "/console/accounts/{account_id}/files/{file_id}"
LONGEST_VERSION = 40
LINES_LOOKED_AT = 10  # of the lines with a code, for the fields that they are about
MOST_APPROVERS = 20  # that are named
CANCELLABLE = (FileState.WAITING, FileState.RUNNING, FileState.HELD)

Act = Callable[[Tx, FileKey, Requester], EligibilityFile]


class Approval(NamedTuple):
    """Who may approve a held file. `why_not` says why the reader can't; "" if they can."""

    approvers: Sequence[User]
    why_not: str


class FileDetails(NamedTuple):
    """What the page of a file shows. `names` are those of actors; `held_rows` are the first rows of
    the list for which the file is held. `may_undo`: an undo of the file is possible now. `draft` is
    the upload that the dry run is of, while it goes on from there.
    """

    view: FileView
    plan: Plan
    names: Mapping[str, str]
    groups: Sequence[FaultGroup]
    approval: Approval | None
    held_list: str | None
    held_rows: Sequence[ListedRow]
    may_undo: bool
    draft: Draft | None


@PAGES.get(_PATH, for_=Right.FILES_READ)
async def show_file(visit: Visit) -> Response:
    """Show the state of a file, its numbers, its faults, and what can be done about it."""
    return await _show(visit)


@PAGES.post(_PATH + "/cancel", for_=Right.FILES_WRITE)
async def cancel_file(visit: Visit) -> Response:
    """Cancel a file that waits, runs or is held."""
    return await _decide(visit, actions.cancel_file)


@PAGES.post(_PATH + "/approve", for_=Right.APPROVE)
async def approve_file(visit: Visit) -> Response:
    """Approve a held file for the numbers that its page has shown."""
    since = visit.user.held_since(Right.APPROVE)
    return await _decide(visit, partial(actions.approve_file, approves_since=since))


@PAGES.post(_PATH + "/mapping", for_=Right.APPROVE)
async def accept_mapping(visit: Visit) -> Response:
    """Accept the suggested mapping of a file that is held for one. It becomes the account's
    default.
    """
    return await _decide(visit, partial(actions.accept_mapping, mapping={}))


@PAGES.get(_PATH + "/undo", for_=Right.FILES_WRITE)
async def ask_for_undo(visit: Visit) -> Response:
    """Show what an undo of the file takes back, before it is asked for."""
    page = await visit.app.ask(partial(_read, visit=visit))
    if not page.may_undo:
        return frame.go_to(_path_of(visit))
    app = visit.app
    count = partial(count_undo, uniqueness=app.config.uniqueness, now=visit.now)
    counted = await app.read_much_in_thread(lambda: count(app.db, page.view.file))
    return frame.show(
        visit,
        f"Undo {file_words.title_of(page.view.file).lower()}",
        "files/undo.html",
        page=page,
        counted=counted,
        path=_path_of(visit),
        words=file_words,
    )


@PAGES.post(_PATH + "/undo", for_=Right.FILES_WRITE)
async def undo_file(visit: Visit) -> Response:
    """Ask for the undo of a file, and lead to the undo."""
    return await _decide(visit, actions.undo_file)


class Overtaken(Exception):
    """The file has changed since its page was made."""


async def _decide(visit: Visit, act: Act) -> Response:
    """Do what the form asks if the file is as its page has shown it; lead to the file's page, or
    that of the undo. Else the page says why nothing was done.
    """
    key = _key_of(visit)
    version = visit.form.text("version", longest=LONGEST_VERSION)

    def change(tx: Tx) -> EligibilityFile:
        if read_view(tx, key, lock=True).version != version:
            raise Overtaken
        return act(tx, key, visit.requester)

    try:
        file = await visit.app.write(change)
    except Overtaken:
        return await _show(visit, is_overtaken=True)
    except (WrongState, SecondPersonNeeded) as error:
        return await _show(visit, refusal=error)
    visit.app.db.announce_work()
    return frame.go_to(f"/console/accounts/{visit.account}/files/{file.id}")


async def _show(
    visit: Visit, *, refusal: FrontdeskError | None = None, is_overtaken: bool = False
) -> Response:
    page = await visit.app.ask(partial(_read, visit=visit))
    file = page.view.file
    message = ""
    status = 200
    if is_overtaken:
        status = 409
        message = _overtaken_words(visit, page)
    elif refusal is not None:
        status = PROBLEMS[refusal.kind].status
        message = f"{refusal.detail} Nothing was changed."
    return show_live(
        visit,
        file_words.title_of(file),
        "files/file.html",
        status=status,
        page=page,
        file=file,
        path=_path_of(visit),
        message=message,
        state=file_words.state_words(file, undone_by=page.view.undone_by),
        numbers=file_words.numbers_of(file),
        words=file_words,
        cancellable=CANCELLABLE,
        right=Right,
    )


def _read(tx: Tx, visit: Visit) -> FileDetails:
    view = read_view(tx, _key_of(visit))
    file = view.file
    is_held = file.state is FileState.HELD
    approval = _approval(tx, visit, file) if is_held else None
    held_list = next((word for word in HELD_LISTS if file.counts.get(word)), None)
    held_rows: Sequence[ListedRow] = ()
    if held_list is not None and file.needs_approval:
        first = ReportCursor()
        held_rows = read_list(tx, file, ReportFilter(held_list), after=first, now=visit.now).rows
    actors = {file.client, file.decided_by}
    actors |= {view.undo.client if view.undo else None}
    if approval is not None:
        actors |= {each.invited_by for each in approval.approvers}
    may_write = visit.user.may(Right.FILES_WRITE, visit.account_id)
    is_settled = file.state not in (FileState.RUNNING, FileState.WAITING, FileState.RECEIVING)
    return FileDetails(
        view=view,
        plan=get_plan(tx, visit.reach, file.plan_id),
        names=names_of(tx, actors, visit.reach, visit.user),
        groups=faults_of(tx, file) if is_settled else (),
        approval=approval,
        held_list=held_list,
        held_rows=held_rows,
        may_undo=may_write and _can_be_undone(tx, file),
        draft=_draft_of(tx, visit, file) if may_write else None,
    )


def _draft_of(tx: Tx, visit: Visit, file: EligibilityFile) -> Draft | None:
    """The open upload whose present dry run the file is."""
    if file.draft_id is None:
        return None
    with suppress(NotFound):
        draft = get_draft(tx, file.draft_id, visit.reach, now=visit.now)
        return draft if draft.dry_run_id == file.id and draft.file_id is None else None
    return None


def faults_of(tx: Tx, file: EligibilityFile) -> list[FaultGroup]:
    """The faults by code, without the lists for which a file is held: those are numbers of it."""
    groups = group_faults(tx, file, first=LINES_LOOKED_AT)
    return [group for group in groups if not _is_of_list(group)]


def _is_of_list(group: FaultGroup) -> bool:
    return any(line.outcome in HELD_LISTS for line in group.first)


def _can_be_undone(tx: Tx, file: EligibilityFile) -> bool:
    with suppress(WrongState):
        actions.refuse_undo(tx, file)
        return any(file.counts.get(word) for word in CHANGED)
    return False


def _approval(tx: Tx, visit: Visit, file: EligibilityFile) -> Approval:
    """Who may approve the held file, and why the reader may not."""

    def obstacle(user: User) -> str:
        since = user.held_since(Right.APPROVE)
        return find_obstacle(tx, file, user.actor, approves_since=since)

    holders = users_with(tx, Right.APPROVE, file.account_id)[:MOST_APPROVERS]
    approvers = [user for user in holders if file.needs_mapping or not obstacle(user)]
    if not file.needs_mapping and file.mode is not FileMode.CHANGE:
        overtaken = actions.overtaken_by(tx, file)
        if overtaken:
            return Approval(approvers=(), why_not=overtaken)
    if not visit.user.may(Right.APPROVE, visit.account_id):
        return Approval(approvers, "Your roles do not allow it.")
    return Approval(approvers, "" if file.needs_mapping else obstacle(visit.user))


def _overtaken_words(visit: Visit, page: FileDetails) -> str:
    """What has happened to the file since its page was made."""
    times = frame.times_of(visit)
    file = page.view.file
    undo = page.view.undo
    what = f"it is {file_words.state_words(file).words.lower()} now"
    if file.state is FileState.CANCELLED and file.decided_at is not None:
        what = (
            f"{isolated(page.names[file.decided_by or ''])} cancelled it at {_clock(times, file)}"
        )
    elif undo is not None:
        at = times.minute(undo.created_at)
        what = f"{isolated(page.names[undo.client])} asked for its undo, file {undo.id}, at {at}"
    elif file.decided_at is not None and file.decided_by is not None:
        did = "approved it" if file.approved else "decided about it"
        what = f"{isolated(page.names[file.decided_by])} {did} at {_clock(times, file)}"
        if file.state is FileState.HELD:
            what += ", and it is held again"
    return f"This file changed while the page was open: {what}. You have changed nothing."


def _clock(times: Times, file: EligibilityFile) -> str:
    return "" if file.decided_at is None else times.minute(file.decided_at)


def _key_of(visit: Visit) -> FileKey:
    return FileKey(visit.id_of("file_id", of="eligibility file"), visit.reach)


def _path_of(visit: Visit) -> str:
    return f"/console/accounts/{visit.account}/files/{_key_of(visit).id}"
