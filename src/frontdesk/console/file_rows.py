"""The lists of a file: its rows by outcome or fault, covered until their names are opened."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from frontdesk import codes
from frontdesk.console import file_words, frame
from frontdesk.console.door import Pages
from frontdesk.console.file_people import RowList, members_of, read_list
from frontdesk.console.reasons import REASONS
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.disclosures import find_names_opening, open_names, read_names
from frontdesk.disclosures.model import FileNames, NamesNotOpen, OpeningReason
from frontdesk.eligibility.model import StatedPerson
from frontdesk.errors import Fault, Invalid
from frontdesk.files import actions
from frontdesk.files.model import COUNTS, EligibilityFile, FileKey
from frontdesk.files.report import ReportCursor, ReportFilter
from frontdesk.plans import get_plan
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()

_PATH = "/console/accounts/{account_id}/files/{file_id}"
CASE_LENGTH = 40
CODE = re.compile("[a-z0-9_]{1,64}")


class ListPage(NamedTuple):
    """A page of a list. `names` are there while they are open, until `open_until`."""

    file: EligibilityFile
    plan: Plan
    found: RowList
    open_until: datetime | None
    names: Mapping[int, StatedPerson]


@PAGES.get(_PATH + "/rows", for_=Right.FILES_READ)
async def list_rows(visit: Visit) -> Response:
    """List the rows of a file by outcome (`list`) and code (`code`), 25 a page."""
    return await _show(visit)


@PAGES.post(_PATH + "/names", for_=Right.FILE_NAMES)
async def show_names(visit: Visit) -> Response:
    """Open the names in the lists of the file for this session: for a reason, for 15 minutes."""
    selection = _selection(visit.form.text("list"), visit.form.text("code"))
    try:
        reason = visit.form.word("reason", OpeningReason)
        case = visit.form.text("case")
        names = _names_of(visit)
        await visit.app.write(
            lambda tx: open_names(tx, visit.requester, visit.reach, names, reason, case)
        )
    except Invalid as error:
        return await _show(visit, selection=selection, refusal=error)
    return frame.go_to(_address(visit, selection, ReportCursor()))


async def _show(
    visit: Visit, *, selection: ReportFilter | None = None, refusal: Invalid | None = None
) -> Response:
    """The page of the list in the address, or of `selection` after a form with faults."""
    after = ReportCursor()
    if selection is None:
        selection = _selection(visit.parameter("list"), visit.parameter("code"))
        after = _cursor(visit.parameter("after"))
    page = await visit.app.ask(partial(_read, visit=visit, selection=selection, after=after))
    if page.open_until is not None:
        page = await _with_names(visit, page)
    next_ = None if page.found.next is None else _address(visit, selection, page.found.next)
    first = None if after == ReportCursor() else _address(visit, selection, ReportCursor())
    fault = refusal.faults[0] if refusal else None
    return frame.show(
        visit,
        f"Rows of {file_words.title_of(page.file).lower()}",
        "files/rows.html",
        status=200 if fault is None else 422,
        page=page,
        selection=selection,
        heading=_heading(page.file, selection),
        path=_path_of(visit),
        words=file_words,
        reasons=REASONS,
        fault=fault,
        typed=visit.form.fields,
        first_page=first,
        next_page=next_,
        may_open=visit.user.may(Right.FILE_NAMES, visit.account_id),
        case_length=CASE_LENGTH,
    )


def _read(tx: Tx, visit: Visit, selection: ReportFilter, after: ReportCursor) -> ListPage:
    file = actions.get_file(tx, _key_of(visit))
    until = None
    if visit.user.may(Right.FILE_NAMES, visit.account_id):
        until = find_names_opening(tx, _names_of(visit), actor=visit.user.actor, now=visit.now)
    found = read_list(tx, file, selection, after=after, now=visit.now)
    return ListPage(file, get_plan(tx, visit.reach, file.plan_id), found, until, {})


async def _with_names(visit: Visit, page: ListPage) -> ListPage:
    """The page with the names, once the trail has recorded that they are shown."""
    ids = members_of([each.row for each in page.found.rows])
    if not ids:
        return page
    visit.app.refuse_used_up_trail(visit.account)
    read = partial(
        read_names,
        requester=visit.requester,
        reach=visit.reach,
        names=_names_of(visit),
        member_ids=ids,
    )
    try:
        return page._replace(names=await visit.app.write(read))
    except NamesNotOpen:
        return page._replace(open_until=None)


def _selection(outcome: str, code: str) -> ReportFilter:
    """The list of the address. Raises Invalid for one that no file has."""
    if outcome not in ("", *COUNTS):
        rule = f"must be one of: {', '.join(COUNTS)}"
        raise Invalid([Fault("list", codes.faults.NOT_ALLOWED, rule)])
    if code and not CODE.fullmatch(code):
        raise Invalid([Fault("code", codes.faults.NOT_ALLOWED, "must be a code of a report")])
    return ReportFilter(outcome or None, code or None)


def _cursor(text: str) -> ReportCursor:
    """The place in the list, as `3.25`. Raises Invalid."""
    if not text:
        return ReportCursor()
    chunk, _, line = text.partition(".")
    if all(part.isascii() and part.isdecimal() and len(part) < 10 for part in (chunk, line)):
        return ReportCursor(int(chunk), int(line))
    raise Invalid([Fault("after", codes.faults.NOT_ALLOWED, "must be a place in the list")])


def _heading(file: EligibilityFile, selection: ReportFilter) -> str:
    if selection.code is not None:
        return f"Rows with {selection.code}"
    if selection.outcome is None:
        return "All rows"
    label = file_words.label_of(file, selection.outcome)
    return label[:1].upper() + label[1:]


def _address(visit: Visit, selection: ReportFilter, after: ReportCursor) -> str:
    values = {"list": selection.outcome, "code": selection.code}
    if after != ReportCursor():
        values["after"] = f"{after.chunk}.{after.line}"
    pairs = [f"{name}={value}" for name, value in values.items() if value]
    return f"{_path_of(visit)}/rows?{'&'.join(pairs)}"


def _names_of(visit: Visit) -> FileNames:
    return FileNames(_key_of(visit).id, visit.own_session.id)


def _key_of(visit: Visit) -> FileKey:
    return FileKey(visit.id_of("file_id", of="eligibility file"), visit.reach)


def _path_of(visit: Visit) -> str:
    return f"/console/accounts/{visit.account}/files/{_key_of(visit).id}"
