"""The columns of an upload: which column holds which field, the order of dates, the answers to the
questions; or the mapping as a text, or a saved one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from frontdesk.access.accounts import get_account
from frontdesk.audit import Requester
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
    overtaken,
    path_of,
    way_on,
)
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, Malformed, RateLimited, Unavailable
from frontdesk.files import list_mappings
from frontdesk.files.actions import check_mapping, get_mapping, save_mapping
from frontdesk.files.drafts.steps import DraftKey, dry_run, set_mapping, suggest
from frontdesk.files.model import (
    Draft,
    DraftState,
    MappingName,
    StoredMapping,
    WrongState,
)
from frontdesk.formats.model import Unreadable
from frontdesk.mapping.suggest.accepted import accept
from frontdesk.plans import get_plan
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.web.request import parse_json_object
from frontdesk.web.response import Response

PAGES = Pages()

_PATH = UPLOAD + "/columns"
LONGEST_MAPPING = 20_000  # characters of a mapping as a text
LONGEST_NAME = 64  # of a saved mapping
SAVE_AS = "save_as"  # the button; the other one begins the dry run


class ColumnsPage(NamedTuple):
    """What the page shows. `problem` says why nothing is suggested, "" if something is; `mapping` is
    the draft's, else the suggested one.
    """

    draft: Draft
    plan: Plan
    saved: Sequence[StoredMapping]
    problem: str

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
async def show_columns(visit: Visit) -> Response:
    """Show what is suggested for each column, or what was chosen for it."""
    return await _show(visit, TAKEN)


@PAGES.post(_PATH, for_=Right.FILES_WRITE)
async def choose_columns(visit: Visit) -> Response:
    """Take the choices, and begin the dry run; or save the mapping under a name first."""
    draft = await visit.app.ask(partial(draft_of, visit=visit))
    try:
        mapping = _chosen(draft, visit.form.fields)
    except WrongChoices as wrong:
        said = Said("Nothing was stored yet: see below.", 422)
        return await _show(visit, Refusal(said, places=wrong.faults))
    if visit.form.text("do") == SAVE_AS:
        return await _save_as(visit, mapping)
    return await _take(visit, partial(_begin_dry_run, mapping=mapping), Step.DRY_RUN)


@PAGES.post(_PATH + "/text", for_=Right.FILES_WRITE)
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
    return await _take(visit, partial(_set, mapping=mapping), Step.COLUMNS)


@PAGES.post(_PATH + "/saved", for_=Right.FILES_WRITE)
async def use_saved(visit: Visit) -> Response:
    """Read the file by a mapping that the account has saved."""
    name = MappingName(visit.account, visit.form.text("saved"))

    def take(tx: Tx, key: DraftKey, requester: Requester) -> Draft:
        return _set(tx, key, requester, mapping=get_mapping(tx, name).mapping)

    return await _take(visit, take, Step.COLUMNS)


def _chosen(draft: Draft, typed: Mapping[str, str]) -> dict[str, Any]:
    """The mapping that the form makes. Without columns, as of an 834, it is the draft's, else the
    suggested one. Raises WrongChoices.
    """
    suggestion = draft.suggestion
    if suggestion is None or not suggestion["columns"]:
        suggested = {} if suggestion is None else suggestion["mapping"]
        return suggested if draft.mapping is None else draft.mapping
    base = suggestion["mapping"] if draft.mapping is None else draft.mapping
    choices = read_choices(suggestion, base, typed)
    return accept(
        suggestion,
        columns=choices.columns,
        answers=choices.answers,
        day_first=choices.day_first,
        base=base,
    )


def _set(tx: Tx, key: DraftKey, requester: Requester, *, mapping: dict[str, Any]) -> Draft:
    reach = requester_reach(tx, key)
    return set_mapping(tx, key, reach, requester, mapping=mapping)
