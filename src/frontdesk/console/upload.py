"""What the pages of one upload share: the draft that the path names, the version that a form has seen,
the steps and where the draft stands, and what a page says when another window was faster.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import wraps
from typing import NamedTuple

from frontdesk import codes
from frontdesk.console import frame
from frontdesk.console.file_words import StateWords
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import NotFound
from frontdesk.files.drafts import applied_file
from frontdesk.files.drafts.steps import DraftKey, get_draft
from frontdesk.files.model import Draft, DraftState, WrongState
from frontdesk.text import count_text
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.response import Response

UPLOADS = "/console/accounts/{account_id}/uploads"
UPLOAD = UPLOADS + "/{draft_id}"
_NO_UPLOAD = codes.operators.NO_SUCH["eligibility file"]
_LARGEST_VERSION = 2**31 - 1


class Step(StrEnum):
    """A step of an upload after its file was stored, in their order; the last part of its address."""

    PLAN = "plan"
    COLUMNS = "columns"
    DRY_RUN = "dry-run"
    APPLY = "apply"


class Said(NamedTuple):
    """What a page says of the form that led to it, and the status of the answer."""

    message: str = ""
    status: int = 200


Handler = Callable[[Visit], Awaitable[Response]]


def or_what_became(handler: Handler) -> Handler:
    """A handler that leads to the file of an upload that was applied and is deleted since, and else says
    that there is no such upload any more: people go back in their browser.
    """

    @wraps(handler)
    async def serve(visit: Visit) -> Response:
        try:
            return await handler(visit)
        except NotFound as error:
            if error.code != _NO_UPLOAD:
                raise
            file_id = await visit.app.ask(lambda tx: applied_file(tx, _id_of(visit), visit.account))
            if file_id is not None:
                return frame.go_to(_path_of_file(visit.account, file_id))
            return _over(visit, error)

    return serve


def _over(visit: Visit, error: NotFound) -> Response:
    """The page in place of one of an upload that was discarded, or is over a day old; and of one that
    never was, or is another account's: they look the same.
    """
    return frame.show(
        visit,
        "An upload that is over",
        "uploads/over.html",
        status=PROBLEMS[error.kind].status,
        uploads=UPLOADS.format(account_id=visit.account),
    )


def draft_of(tx: Tx, visit: Visit) -> Draft:
    """The draft that the path names: open or applied. Raises NotFound, also for another account's."""
    return get_draft(tx, _id_of(visit), visit.reach, now=visit.now)


def key_of(visit: Visit) -> DraftKey:
    """The draft of the path, and the version in the form's field `version`: what the page has shown. A
    version that can't be one is that of no draft, so that the step raises DraftChanged.
    """
    version = visit.form.number("version", largest=_LARGEST_VERSION)
    return DraftKey(_id_of(visit), version or 0)


def overtaken(error: WrongState) -> Said:
    """What the page of the draft, as it is now, says of a step that was not done: another window was
    faster (DraftChanged), or the draft's state does not allow the step.
    """
    return Said(error.detail, PROBLEMS[error.kind].status)


def path_of(draft: Draft, step: Step | None = None) -> str:
    """The address of the upload, or of one of its steps."""
    return _path(draft.account_id, draft.id, step)


def path_here(visit: Visit, step: Step) -> str:
    """The address of a step of the upload that the path names."""
    return _path(visit.account, _id_of(visit), step)


def step_of(draft: Draft) -> Step:
    """The step at which an open draft stands: the first that has not been taken."""
    if draft.plan_id is None or draft.mode is None:
        return Step.PLAN
    return Step.COLUMNS if draft.mapping is None else Step.DRY_RUN


def way_on(draft: Draft) -> str:
    """The address at which the upload goes on; the page of its file once it was applied."""
    if draft.state is DraftState.APPLIED:
        return _path_of_file(draft.account_id, draft.file_id)
    return path_of(draft, step_of(draft))


def draft_words(draft: Draft) -> StateWords:
    """What an open draft waits for, in a list."""
    step = step_of(draft)
    if step is Step.PLAN:
        words = "say its plan"
    elif step is Step.COLUMNS:
        questions = len((draft.suggestion or {}).get("questions", ()))
        words = _open_questions(questions) if questions else "look at its columns"
    else:
        words = "start the dry run" if draft.dry_run_id is None else "look at the dry run"
    return StateWords("draft", f"Draft: {words}")


def _open_questions(number: int) -> str:
    return f"{count_text(number, 'question')} {'is' if number == 1 else 'are'} open"


def _path(account_id: int, draft_id: int, step: Step | None) -> str:
    path = UPLOAD.format(account_id=account_id, draft_id=draft_id)
    return path if step is None else f"{path}/{step.value}"


def _path_of_file(account_id: int, file_id: int | None) -> str:
    return f"/console/accounts/{account_id}/files/{file_id}"


def _id_of(visit: Visit) -> int:
    return visit.id_of("draft_id", of="eligibility file")
