"""The columns of an upload: which column holds which field, the order of dates, the answers to the
questions; or the mapping as a text, or a saved one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.access.accounts import get_account
from frontdesk.clock import account_day
from frontdesk.console import frame
from frontdesk.console.column_rows import (
    OPTIONS,
    WrongChoices,
    column_rows,
    missing_fields,
    read_choices,
    trial_words,
)
from frontdesk.console.door import Pages
from frontdesk.console.upload import (
    UPLOAD,
    Said,
    Step,
    draft_of,
    key_of,
    or_what_became,
    overtaken,
    path_here,
    path_of,
    way_on,
)
from frontdesk.console.uploads import ENCODINGS
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, Malformed, NotFound, RateLimited, Unavailable
from frontdesk.files import list_mappings
from frontdesk.files.actions import check_mapping, get_mapping, save_mapping
from frontdesk.files.drafts.steps import (
    WHICH_SHEET,
    DraftKey,
    dry_run,
    needs_sheet,
    set_mapping,
    suggest,
    suggest_for_sheet,
)
from frontdesk.files.model import Draft, DraftState, MappingName, StoredMapping, WrongState
from frontdesk.formats.model import Unreadable
from frontdesk.formats.workbook import OTHER_SHEETS
from frontdesk.mapping.suggest.accepted import accept
from frontdesk.mapping.suggest.sample import OF_JSON
from frontdesk.plans import get_plan
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.web.request import parse_json_object
from frontdesk.web.response import Response

PAGES = Pages()

_PATH = UPLOAD + "/columns"
LONGEST_MAPPING = 20_000  # characters of a mapping as a text
LONGEST_NAME = 64  # of a saved mapping
LONGEST_SHEET = 100  # letters of the name of a sheet
SAVE_AS = "save_as"  # the button; the other one begins the dry run


_ANOTHER_UPLOAD = "The columns of another upload are being looked at. Try again in a moment."
_NOT_NOW = "The columns could not be looked at now. Try again in a moment."
_NOTHING: dict[str, Any] = {"columns": [], "questions": [], "mapping": {}}


class NoSuggestion(NamedTuple):
    """Why nothing is suggested, "" if something is, and what to do. `is_final`: no choice on the page
    lets the file be read, so that it has to be uploaded again. `asks_sheet`: another sheet may be read.
    """

    words: str = ""
    remedy: str = ""
    is_final: bool = False
    asks_sheet: bool = False


class ColumnsPage(NamedTuple):
    """What the page shows. `mapping` is the draft's, else the suggested one."""

    draft: Draft
    plan: Plan
    saved: Sequence[StoredMapping]
    problem: NoSuggestion

    @property
    def can_run(self) -> bool:
        """Whether a dry run may come to its rows."""
        return not self.problem.is_final or self.draft.mapping is not None

    @property
    def mapping(self) -> Mapping[str, Any]:
        if self.draft.mapping is not None:
            return self.draft.mapping
        suggestion = self.draft.suggestion
        return {} if suggestion is None else suggestion["mapping"]

    @property
    def saved_as(self) -> list[str]:
        """The names by which the draft's mapping is saved."""
        return [each.name for each in self.saved if each.mapping == self.draft.mapping]


class Refusal(NamedTuple):
    """Why a form was not taken: what stands above the page, sentences by place, and the faults of the
    mapping as a text.
    """

    said: Said = Said()
    places: Mapping[str, str] = {}
    faults: Sequence[Fault] = ()


TAKEN = Refusal()


@PAGES.get(_PATH, for_=Right.FILES_WRITE)
@or_what_became
async def show_columns(visit: Visit) -> Response:
    """Show what is suggested for each column, or what was chosen for it."""
    return await _show(visit, TAKEN)


@PAGES.post(_PATH, for_=Right.FILES_WRITE)
@or_what_became
async def choose_columns(visit: Visit) -> Response:
    """Take the choices, and begin the dry run; or save them under a name."""
    draft = await visit.app.ask(partial(draft_of, visit=visit))
    try:
        mapping = _chosen(draft, visit.form.fields)
    except WrongChoices as wrong:
        said = Said("Nothing was stored yet: something has to be chosen below.", 422)
        return await _show(visit, Refusal(said, places=wrong.faults))
    if visit.form.text("do") == SAVE_AS:
        return await _save_as(visit, mapping)
    if needs_sheet(draft, mapping):
        return await _show(visit, Refusal(Said(WHICH_SHEET, 422)))
    visit.app.refuse_used_up_storage(visit.account)

    def begin(tx: Tx) -> None:
        draft = set_mapping(tx, key_of(visit), visit.reach, visit.requester, mapping=mapping)
        dry_run(tx, DraftKey(draft.id, draft.version), visit.reach, visit.requester)

    answer = await _take(visit, begin, Step.DRY_RUN)
    visit.app.db.announce_work()
    return answer


@PAGES.post(_PATH + "/text", for_=Right.FILES_WRITE)
@or_what_became
async def write_mapping(visit: Visit) -> Response:
    """Take the mapping as a text."""
    try:
        text = visit.form.text("mapping", longest=LONGEST_MAPPING)
        mapping = parse_json_object(text.encode())
    except Malformed:
        said = Said("The mapping must be one JSON object. Nothing was stored.", 422)
        return await _show(visit, Refusal(said))
    except Invalid as error:
        return await _show(visit, _refused(error))
    return await _take(visit, partial(_set, visit=visit, mapping=mapping), Step.COLUMNS)


@PAGES.post(_PATH + "/saved", for_=Right.FILES_WRITE)
@or_what_became
async def use_saved(visit: Visit) -> Response:
    """Read the file by a mapping that the account has saved."""
    name = MappingName(visit.account, visit.form.text("saved"))

    def use(tx: Tx) -> None:
        chosen = _chosen_sheet(draft_of(tx, visit))
        _set(tx, visit, chosen | get_mapping(tx, name).mapping)

    try:
        return await _take(visit, use, Step.COLUMNS)
    except NotFound:
        said = Said("There is no mapping of this name now. Nothing was changed.", 404)
        return await _show(visit, Refusal(said))


@PAGES.post(_PATH + "/sheet", for_=Right.FILES_WRITE)
@or_what_became
async def choose_sheet(visit: Visit) -> Response:
    """Read another sheet of the workbook, or say that the one that is read is meant."""
    sheet = visit.form.text("sheet", longest=LONGEST_SHEET)
    if not sheet.strip():
        return await _show(visit, Refusal(Said("Choose the sheet that is read.", 422)))
    app = visit.app
    today = await _today(visit)
    make = partial(
        suggest_for_sheet,
        app.db,
        key_of(visit),
        visit.reach,
        visit.requester,
        today=today,
        sheet=sheet,
    )
    try:
        at_end = app.suggestions.begin(visit.account)
        draft = await app.compute(make, at_end)
    except Unreadable as error:
        words = f"Nothing was changed: of this sheet the console says: {error.detail}"
        return await _show(visit, Refusal(Said(words, 422)))
    except RateLimited:
        return await _show(visit, Refusal(Said(_ANOTHER_UPLOAD, 429)))
    except Unavailable:
        return await _show(visit, Refusal(Said(_NOT_NOW, 503)))
    except WrongState as error:
        return await _show(visit, Refusal(overtaken(error)), is_overtaken=True)
    return frame.go_to(path_of(draft, Step.COLUMNS))


def _chosen_sheet(draft: Draft) -> dict[str, Any]:
    """The part of a mapping that names the sheet, if somebody has chosen one."""
    suggested = (draft.suggestion or _NOTHING)["mapping"]
    return {"sheet": suggested["sheet"]} if "sheet" in suggested else {}


def _chosen(draft: Draft, typed: Mapping[str, str]) -> dict[str, Any]:
    """The mapping that the form makes. Without columns, as of an 834, it is the draft's, else the
    suggested one. Raises WrongChoices.
    """
    suggestion = draft.suggestion or _NOTHING
    base = suggestion["mapping"] if draft.mapping is None else draft.mapping
    if not suggestion["columns"]:
        return dict(base)
    choices = read_choices(suggestion, base, typed)
    return accept(
        suggestion,
        columns=choices.columns,
        answers=choices.answers,
        year=draft.created_at.year,
        day_first=choices.day_first,
        base=base,
    )


def _set(tx: Tx, visit: Visit, mapping: dict[str, Any]) -> None:
    set_mapping(tx, key_of(visit), visit.reach, visit.requester, mapping=mapping)


async def _save_as(visit: Visit, mapping: dict[str, Any]) -> Response:
    """Store the mapping with the draft and under a name. A name that is taken needs a word more:
    files of later nights may be read by it.
    """
    name = visit.form.text("name")

    def save(tx: Tx) -> None:
        check_mapping(name, mapping)
        if draft_of(tx, visit).mapping != mapping:  # else its dry run stays
            _set(tx, visit, mapping)
        key = MappingName(visit.account, name)
        is_new = save_mapping(tx, key, mapping, visit.requester, default=None)
        if not (is_new or visit.form.is_set("replace")):
            raise WrongChoices({"name": "A mapping of this name is saved already.", "replace": "1"})

    return await _take(visit, save, Step.COLUMNS)


async def _take(visit: Visit, step: Callable[[Tx], None], next_step: Step) -> Response:
    """Take the step and lead on; or show why it was not taken."""
    try:
        await visit.app.write(step)
    except WrongChoices as wrong:
        said = Said("Nothing was stored yet: see the name below.", 422)
        return await _show(visit, Refusal(said, places=wrong.faults))
    except Invalid as error:
        return await _show(visit, _refused(error))
    except WrongState as error:
        return await _show(visit, Refusal(overtaken(error)), is_overtaken=True)
    return frame.go_to(path_here(visit, next_step))


def _refused(error: Invalid) -> Refusal:
    """The faults of a mapping, or of its name, which has a field of its own."""
    of_name = [fault for fault in error.faults if fault.field == "name"]
    places = {"name": f"The name {of_name[0].message}."} if of_name else {}
    faults = [fault for fault in error.faults if fault.field != "name"]
    return Refusal(Said("Nothing was stored yet: see below.", 422), places, faults)


async def _show(visit: Visit, refusal: Refusal, *, is_overtaken: bool = False) -> Response:
    """The page of the draft as it is now; with what was typed, unless another window was faster."""
    draft = await visit.app.ask(partial(draft_of, visit=visit))
    if draft.state is DraftState.APPLIED:
        return frame.go_to(way_on(draft))
    if draft.plan_id is None or draft.mode is None:
        return frame.go_to(path_of(draft, Step.PLAN))
    draft, problem = await _with_suggestion(visit, draft)
    page = await visit.app.ask(partial(_read, visit=visit, draft=draft, problem=problem))
    typed = {} if is_overtaken else visit.form.fields
    suggestion = draft.suggestion or _NOTHING
    rows = column_rows(suggestion, page.mapping, typed, refusal.places)
    missing = missing_fields(suggestion, page.mapping, typed) if rows else []
    text = json.dumps(page.mapping, indent=1, ensure_ascii=False)
    written = typed.get("mapping", text)
    return frame.show(
        visit,
        f"Upload {draft.id}: columns",
        "uploads/columns.html",
        status=refusal.said.status,
        page=page,
        draft=draft,
        path=path_of(draft, Step.COLUMNS),
        refusal=refusal,
        rows=[row for row in rows if row.has_select],
        others=[row for row in rows if not row.has_select],
        options=OPTIONS,
        missing=missing,
        trial=trial_words(suggestion, missing) if suggestion is not _NOTHING else None,
        text=text if len(written) > LONGEST_MAPPING else written,
        typed=typed,
        limits={"mapping": LONGEST_MAPPING, "name": LONGEST_NAME, "sheet": LONGEST_SHEET},
    )


def _read(tx: Tx, visit: Visit, draft: Draft, problem: NoSuggestion) -> ColumnsPage:
    plan = get_plan(tx, visit.reach, draft.plan_id or 0)
    return ColumnsPage(draft, plan, list_mappings(tx, visit.account), problem)


async def _with_suggestion(visit: Visit, draft: Draft) -> tuple[Draft, NoSuggestion]:
    """The draft with its suggestion, which the first look makes; and why there is none."""
    if draft.suggestion is not None:
        return draft, NoSuggestion()
    app = visit.app
    today = await _today(visit)
    make = partial(suggest, app.db, draft.id, visit.reach, now=visit.now, today=today)
    try:
        at_end = app.suggestions.begin(visit.account)
        return await app.compute(make, at_end), NoSuggestion()
    except Unreadable as error:
        return draft, _problem_of(error, draft)
    except RateLimited:
        return draft, NoSuggestion(_ANOTHER_UPLOAD)
    except Unavailable:
        return draft, NoSuggestion(_NOT_NOW)


async def _today(visit: Visit) -> str:
    account = await visit.app.ask(lambda tx: get_account(tx, visit.account))
    return account_day(visit.now, account.time_zone).latest


def _problem_of(error: Unreadable, draft: Draft) -> NoSuggestion:
    """In the words of the form that takes a file."""
    if error.detail.endswith(OTHER_SHEETS):
        words = error.detail.removesuffix(OTHER_SHEETS).strip()
        return NoSuggestion(f"Of the first sheet of the workbook: {words}", asks_sheet=True)
    if error.code == codes.files.WRONG_ENCODING:
        name = ENCODINGS.get(draft.encoding, draft.encoding)
        place = error.detail.partition(":")[0] if error.detail.startswith("Line") else "The file"
        remedy = (
            "Upload the file again, and choose there how it is written. A CSV of Excel on Windows is "
            f"mostly in “{ENCODINGS['cp1252']}”."
        )
        return NoSuggestion(f"{place} is not written in “{name}”.", remedy, is_final=True)
    if error.code == codes.files.NO_HEADER and error.detail != OF_JSON:
        remedy = (
            "The columns are told apart by a line with their names. Without one, add it above the "
            "first person, with names such as external_id, last_name and dob, and upload the file "
            "again. If there is one, and its names are of another language, say in a mapping which "
            "column holds which field."
        )
        return NoSuggestion(error.detail, remedy, is_final=True)
    return NoSuggestion(error.detail)
