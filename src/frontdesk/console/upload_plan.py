"""The first step of an upload: whose members the file lists, and whether those that it omits end. And
the end of one that nobody wants.
"""

from collections.abc import Sequence
from typing import NamedTuple

from frontdesk import codes
from frontdesk.console import frame
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.rules import rules_by_field
from frontdesk.console.upload import (
    UPLOAD,
    Said,
    draft_of,
    key_of,
    or_what_became,
    overtaken,
    way_on,
)
from frontdesk.console.visit import LONGEST_TEXT, Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.files.drafts.steps import LIVES, discard, set_plan_and_mode
from frontdesk.files.model import Draft, DraftState, WrongState
from frontdesk.formats.model import FileMode
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()

MODES = (FileMode.CHANGE, FileMode.FULL)
_LARGEST_NUMBER = 10**18 - 1


class PlanPage(NamedTuple):
    """What the page shows."""

    draft: Draft
    plans: Sequence[Plan]
    sender: str


@PAGES.get(UPLOAD, for_=Right.FILES_WRITE)
@or_what_became
async def go_on(visit: Visit) -> Response:
    """Lead to the step where the upload stands; to its file once it was applied."""
    draft = await visit.app.ask(lambda tx: draft_of(tx, visit))
    return frame.go_to(way_on(draft))


@PAGES.get(UPLOAD + "/plan", for_=Right.FILES_WRITE)
@or_what_became
async def show_plan(visit: Visit) -> Response:
    """Ask for the plan, and what the file says of the people that it omits."""
    return await _show(visit, Said())


@PAGES.post(UPLOAD + "/plan", for_=Right.FILES_WRITE)
@or_what_became
async def take_plan(visit: Visit) -> Response:
    """Set the plan and the mode, and lead to the next step."""
    key = key_of(visit)
    try:
        plan_id, mode = _read_choice(visit)
        draft = await visit.app.write(
            lambda tx: set_plan_and_mode(
                tx, key, visit.reach, visit.requester, plan_id=plan_id, mode=mode
            )
        )
    except Invalid as error:
        [rule] = rules_by_field(error.faults).values()
        return await _show(visit, Said(rule, 422))
    except WrongState as error:
        return await _show(visit, overtaken(error))
    return frame.go_to(way_on(draft))


@PAGES.post(UPLOAD + "/discard", for_=Right.FILES_WRITE)
@or_what_became
async def discard_upload(visit: Visit) -> Response:
    """End the upload, and lead to the list of uploads."""
    key = key_of(visit)
    try:
        await visit.app.write(lambda tx: discard(tx, key, visit.reach, visit.requester))
    except WrongState as error:
        return await _show(visit, overtaken(error))
    visit.app.db.announce_work()
    return frame.go_to(f"/console/accounts/{visit.account}/uploads")


def _read_choice(visit: Visit) -> tuple[int, FileMode]:
    """The plan and the mode of the form, which has no default. Raises Invalid."""
    plan_id = visit.form.number("plan", longest=LONGEST_TEXT, largest=_LARGEST_NUMBER)
    if plan_id is None:
        raise Invalid([Fault("plan", codes.faults.REQUIRED, "choose the plan of the file")])
    word = visit.form.text("mode")
    if word not in {mode.value for mode in MODES}:
        rule = "say whether the file has changes only, or everyone in the plan"
        raise Invalid([Fault("mode", codes.faults.REQUIRED, rule)])
    return plan_id, FileMode(word)


async def _show(visit: Visit, said: Said) -> Response:
    def read(tx: Tx) -> PlanPage:
        draft = draft_of(tx, visit)
        names = names_of(tx, {draft.client}, visit.reach, visit.user)
        return PlanPage(draft, list_plans(tx, visit.reach), names[draft.client])

    shown = await visit.app.ask(read)
    draft = shown.draft
    if draft.state is DraftState.APPLIED and not said.message:
        return frame.go_to(way_on(draft))
    typed = visit.form.fields
    return frame.show(
        visit,
        f"Upload {draft.id}: plan",
        "uploads/plan.html",
        status=said.status,
        message=said.message,
        draft=draft,
        plans=shown.plans,
        sender=shown.sender,
        chosen_plan=typed.get("plan") or str(draft.plan_id or ""),
        chosen_mode=typed.get("mode") or (draft.mode.value if draft.mode else ""),
        ends_at=draft.changed_at + LIVES,
    )
