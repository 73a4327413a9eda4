"""The dry run of an upload: what the file would do, row by row; and then the file that is applied."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from frontdesk.console import file_words, frame
from frontdesk.console.door import Pages
from frontdesk.console.file import faults_of
from frontdesk.console.live import show_live
from frontdesk.console.upload import (
    UPLOAD,
    Said,
    Step,
    draft_of,
    key_of,
    or_what_became,
    overtaken,
    path_of,
    step_of,
    way_on,
)
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.files import model
from frontdesk.files.actions import get_file
from frontdesk.files.drafts import steps
from frontdesk.files.faults import FaultGroup
from frontdesk.files.model import Draft, DraftState, EligibilityFile, FileKey, FileState, WrongState
from frontdesk.plans import get_plan
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()

_DRY_RUN = UPLOAD + "/dry-run"
_APPLY = UPLOAD + "/apply"
UNDER_WAY = (FileState.WAITING, FileState.RUNNING)


class DryRunPage(NamedTuple):
    """What the pages show. `file` is the dry run, None before it was begun."""

    draft: Draft
    plan: Plan
    file: EligibilityFile | None
    groups: Sequence[FaultGroup]

    @property
    def can_be_applied(self) -> bool:
        file = self.file
        return file is not None and file.state is FileState.DONE and not file.needs_mapping

    @property
    def does_something(self) -> bool:
        """Whether some row is neither refused nor left out."""
        counts = {} if self.file is None else self.file.counts
        return not counts.keys() <= {model.REFUSED, model.SKIPPED, model.WARNED}


@PAGES.get(_DRY_RUN, for_=Right.FILES_WRITE)
@or_what_became
async def show_dry_run(visit: Visit) -> Response:
    """Show how far the dry run is, and what the file would do."""
    return await _show_dry_run(visit, Said())


@PAGES.post(_DRY_RUN, for_=Right.FILES_WRITE)
@or_what_became
async def start_dry_run(visit: Visit) -> Response:
    """Begin the dry run of the present plan, mode and mapping."""
    visit.app.refuse_used_up_storage(visit.account)

    def begin(tx: Tx) -> Draft:
        draft, _ = steps.dry_run(tx, key_of(visit), visit.reach, visit.requester)
        return draft

    try:
        draft = await visit.app.write(begin)
    except WrongState as error:
        return await _show_dry_run(visit, overtaken(error))
    visit.app.db.announce_work()
    return frame.go_to(path_of(draft, Step.DRY_RUN))


@PAGES.get(_APPLY, for_=Right.FILES_WRITE)
@or_what_became
async def ask_to_apply(visit: Visit) -> Response:
    """Show once more what the file would do, before it is applied."""
    return await _show_apply(visit, Said())


@PAGES.post(_APPLY, for_=Right.FILES_WRITE)
@or_what_became
async def apply(visit: Visit) -> Response:
    """Apply the file, and lead to its page. Pressed again, in this or another window, it leads to the
    same file.
    """
    visit.app.refuse_used_up_storage(visit.account)

    def take(tx: Tx) -> Draft:
        draft, _ = steps.apply(tx, key_of(visit), visit.reach, visit.requester)
        return draft

    try:
        draft = await visit.app.write(take)
    except WrongState as error:
        return await _show_apply(visit, overtaken(error))
    visit.app.db.announce_work()
    return frame.go_to(way_on(draft))


async def _show_dry_run(visit: Visit, said: Said) -> Response:
    page = await visit.app.ask(partial(_read, visit=visit))
    if page is None or step_of(page.draft) is not Step.DRY_RUN:
        return await _lead_on(visit)
    file = page.file
    return show_live(
        visit,
        f"Upload {page.draft.id}: dry run",
        "uploads/dry_run.html",
        status=said.status,
        message=said.message,
        page=page,
        draft=page.draft,
        file=file,
        path=path_of(page.draft),
        file_path=_path_of_file(page),
        state=None if file is None else file_words.state_words(file),
        numbers=[] if file is None else file_words.numbers_of(file),
        words=file_words,
        under_way=UNDER_WAY,
    )


async def _show_apply(visit: Visit, said: Said) -> Response:
    page = await visit.app.ask(partial(_read, visit=visit))
    if page is None:
        return await _lead_on(visit)
    if not page.can_be_applied or page.file is None:
        if said.message:
            return await _show_dry_run(visit, said)
        return await _lead_on(visit)
    return frame.show(
        visit,
        f"Upload {page.draft.id}: apply",
        "uploads/apply.html",
        status=said.status,
        message=said.message,
        page=page,
        draft=page.draft,
        file=page.file,
        path=path_of(page.draft),
        file_path=_path_of_file(page),
        numbers=file_words.numbers_of(page.file),
        button=apply_words(page.file, page.plan.name),
        held_for=file_words.held_for(page.file),
    )


async def _lead_on(visit: Visit) -> Response:
    """Lead to the step where the upload stands, or to the file that was applied."""
    draft = await visit.app.ask(partial(draft_of, visit=visit))
    return frame.go_to(way_on(draft))


def apply_words(file: EligibilityFile, plan: str) -> str:
    """The button's words: what the file does that can't be overlooked."""
    if file.needs_approval:
        return "Apply: it will be held, and an approver decides"
    lost = file.counts.get(model.LOST, 0)
    if lost:
        return f"Apply: {lost:,} {'person loses' if lost == 1 else 'people lose'} access"
    return f"Apply to {plan}: nobody loses access"


def _read(tx: Tx, visit: Visit) -> DryRunPage | None:
    """The upload with its dry run; None of one that was applied, or has no plan yet."""
    draft = draft_of(tx, visit)
    if draft.state is DraftState.APPLIED or draft.plan_id is None:
        return None
    file = None
    if draft.dry_run_id is not None:
        file = get_file(tx, FileKey(draft.dry_run_id, visit.reach))
    has_ended = file is not None and file.state not in UNDER_WAY
    groups = faults_of(tx, file) if file is not None and has_ended else ()
    return DryRunPage(draft, get_plan(tx, visit.reach, draft.plan_id), file, groups)


def _path_of_file(page: DryRunPage) -> str:
    file = page.file
    return "" if file is None else f"/console/accounts/{file.account_id}/files/{file.id}"
