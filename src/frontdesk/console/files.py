"""The files of an account: which need somebody, which are under way, what the others have done."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from frontdesk import codes
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.file_words import Number, StateWords, short_numbers, state_words, title_of
from frontdesk.console.live import show_live
from frontdesk.console.uploads import DraftRow, chooser_values, draft_rows
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.files import overview
from frontdesk.files.model import EligibilityFile, FileState
from frontdesk.files.overview import FilePage
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan
from frontdesk.reach import Reach
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()

STATES = {
    FileState.HELD: "Held",
    FileState.RUNNING: "Running",
    FileState.WAITING: "Waiting",
    FileState.DONE: "Done",
    FileState.FAILED: "Failed",
    FileState.CANCELLED: "Cancelled",
}


class FileRow(NamedTuple):
    """A file in a list."""

    file: EligibilityFile
    path: str
    title: str
    name: str
    plan: str
    sender: str
    state: StateWords
    numbers: list[Number]


class Section(NamedTuple):
    """A part of the overview. `more` is the address of a list of all of them, None if these are
    all; `empty` stands for no rows. `drafts` are uploads that wait for a step.
    """

    name: str
    rows: list[FileRow]
    empty: str
    more: str | None = None
    more_text: str = ""
    drafts: Sequence[DraftRow] = ()


class Selection(NamedTuple):
    """The files that the address selects: of a state, of a plan, with an id below `before_id`."""

    state: FileState | None
    plan_id: int | None
    before_id: int | None

    def path(self, base: str, **changes: object) -> str:
        """The address of this selection with these changes."""
        values = {"state": self.state, "plan": self.plan_id, "before": self.before_id} | changes
        pairs = [f"{name}={value}" for name, value in values.items() if value is not None]
        return f"{base}?{'&'.join(pairs)}" if pairs else base


@PAGES.get("/console/accounts/{account_id}/files", for_=Right.FILES_READ)
async def list_files(visit: Visit) -> Response:
    """List the files that need somebody, that are under way, and that have ended; or, by the
    address, those of a state or a plan.
    """
    selection = _read_selection(visit)
    base = f"/console/accounts/{visit.account}/files"
    may_write = visit.user.may(Right.FILES_WRITE, visit.account_id)

    def read(tx: Tx) -> tuple[list[Section], list[Plan], str | None]:
        plans = list_plans(tx, visit.reach)
        rows = _Rows(tx, visit, base, {plan.id: plan.name for plan in plans})
        if selection == Selection(None, None, None):
            drafts = draft_rows(tx, visit, plans) if may_write else []
            sections = _sections(tx, visit, rows, selection, base)
            # A dry run that failed stands there as its upload, from which it goes on.
            of_drafts = {each.draft.dry_run_id for each in drafts}
            others = [each for each in sections[0].rows if each.file.id not in of_drafts]
            sections[0] = sections[0]._replace(rows=others, drafts=drafts)
            return sections, plans, None
        page = _read_page(tx, visit, selection)
        name = "Earlier files" if selection.before_id is not None else "Files"
        section = Section(name, rows.of(page.files), "There is no such file.")
        next_ = page.next_before and selection.path(base, before=page.next_before)
        return [section], plans, next_ or None

    sections, plans, next_page = await visit.app.ask(read)
    first = selection.path(base, before=None) if selection.before_id is not None else None
    return show_live(
        visit,
        "Files",
        "files/list.html",
        sections=sections,
        selection=selection,
        base=base,
        plans=plans,
        states=STATES,
        first_page=first,
        next_page=next_page,
        has_files=any(each.rows or each.drafts or each.more for each in sections),
        may_write=may_write,
        **chooser_values(visit),
    )


class _Rows:
    """Makes rows of files, with the names of plans and senders."""

    def __init__(self, tx: Tx, visit: Visit, base: str, plans: Mapping[int, str]) -> None:
        self._tx = tx
        self._visit = visit
        self._base = base
        self._plans = plans

    def of(self, files: Iterable[EligibilityFile]) -> list[FileRow]:
        found = [*files]
        undos = overview.find_undos(self._tx, found)
        senders = names_of(
            self._tx, {file.client for file in found}, self._visit.reach, self._visit.user
        )
        return [
            FileRow(
                file=file,
                path=f"{self._base}/{file.id}",
                title=title_of(file),
                name=_name_of(file),
                plan=self._plans.get(file.plan_id, ""),
                sender=senders[file.client],
                state=state_words(file, undone_by=undos.get(file.id)),
                numbers=short_numbers(file),
            )
            for file in found
        ]


def _name_of(file: EligibilityFile) -> str:
    if file.undoes_id is not None:
        return f"Undo of file {file.undoes_id}"
    return file.file_name or title_of(file)


def _sections(tx: Tx, visit: Visit, rows: _Rows, selection: Selection, base: str) -> list[Section]:
    found = overview.read_overview(tx, visit.account, now=visit.now)
    needs = found.held + found.failed
    more = None
    more_text = ""
    if FileState.HELD in found.more:
        more = selection.path(base, state=FileState.HELD.value)
        more_text = "All held files"
    elif FileState.FAILED in found.more:
        more = selection.path(base, state=FileState.FAILED.value)
        more_text = "All failed files"
    under_way = None
    if found.more.intersection(overview.UNDER_WAY):
        under_way = selection.path(base, state=FileState.WAITING.value)
    older = found.older_before and selection.path(base, before=found.older_before)
    return [
        Section("Needs you", rows.of(needs), "No file needs you.", more, more_text),
        Section(
            "Running",
            rows.of(found.under_way),
            "No file waits or runs.",
            under_way,
            "All that wait",
        ),
        Section(
            "30 days",
            rows.of(found.ended),
            "No other file has come in the last 30 days.",
            older or None,
            "Earlier files",
        ),
    ]


def _read_page(tx: Tx, visit: Visit, selection: Selection) -> FilePage:
    if selection.state is None and selection.plan_id is None:
        return overview.read_ended(tx, visit.account, before_id=selection.before_id, now=visit.now)
    return overview.read_page(
        tx,
        Reach.of(visit.account),
        state=selection.state,
        plan_id=selection.plan_id,
        before_id=selection.before_id,
    )


def _read_selection(visit: Visit) -> Selection:
    """The selection in the address. Raises Invalid."""
    word = visit.parameter("state")
    if word and word not in {state.value for state in STATES}:
        rule = f"must be one of: {', '.join(state.value for state in STATES)}"
        raise Invalid([Fault("state", codes.faults.NOT_ALLOWED, rule)])
    return Selection(
        FileState(word) if word else None, visit.number("plan"), visit.number("before")
    )
