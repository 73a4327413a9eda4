"""System: whether everything runs, what waits, and the accounts of the installation. For operators.

All viewers of a process share what is read, for 5 s. A look writes nothing and asks no relay: that is
a button.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from frontdesk.console import frame
from frontdesk.console.door import Pages
from frontdesk.console.live import show_live
from frontdesk.console.system_words import SILENT_FEED, bounded_text, describe_parts
from frontdesk.console.visit import Visit
from frontdesk.db.checks import CheckFailure
from frontdesk.system.problems import find_problems
from frontdesk.system.state import SystemState, list_account_rows, read_system
from frontdesk.users.model import Right
from frontdesk.web.markdown import add_anchors, make_reader
from frontdesk.web.response import Response

if TYPE_CHECKING:
    from markdown_it.token import Token

PAGES = Pages()

RUNBOOK = "/console/system/runbook"

_FRESH = timedelta(seconds=5)
_STEP_SECONDS = 1.0  # for each step with the relay: the answer of a page comes within 10 s


@PAGES.get("/console/system", for_=Right.SYSTEM)
async def show_system(visit: Visit) -> Response:
    """Show each part with its state, and what waits by account."""
    values = _values(visit, await _read(visit))
    return show_live(visit, "System", "system/state.html", **values, checked=None)


@PAGES.post("/console/system/check", for_=Right.SYSTEM)
async def check(visit: Visit) -> Response:
    """Look for every problem, as `frontdesk check` does: with a small write, and a conversation with
    the relay. The answer stands in this page only.
    """
    app = visit.app

    def find() -> list[CheckFailure]:
        # The same for those who ask at once.
        found: list[CheckFailure] = app.shared_values.get(
            "problems",
            _FRESH,
            lambda: find_problems(app.db, app.config, step_seconds=_STEP_SECONDS).all,
        )
        return found

    found = await app.read_much_in_thread(find)
    values = _values(visit, await _read(visit))
    checked = sorted(found, key=lambda each: each.is_warning)
    return frame.show(visit, "System", "system/state.html", **values, checked=checked)


def _values(visit: Visit, state: SystemState) -> dict[str, Any]:
    """What the page shows of the state."""
    return {
        "as_of": frame.times_of(visit).clock_text(state.as_of),
        "state": state,
        "parts_shown": describe_parts(state, has_relay=visit.app.config.sends_mail),
        "silent_feed": SILENT_FEED,
        "count": bounded_text,
        "runbook": RUNBOOK,
    }


async def _read(visit: Visit) -> SystemState:
    app = visit.app
    recent: SystemState | None = app.shared_values.in_memory("system", _FRESH)
    if recent is not None:
        return recent

    def read() -> SystemState:
        state: SystemState = app.shared_values.get(
            "system", _FRESH, lambda: read_system(app.db, app.config, app.clock())
        )
        return state

    return await app.read_much_in_thread(read)


@PAGES.get(RUNBOOK, for_=Right.SYSTEM)
async def show_runbook(visit: Visit) -> Response:
    """Show what each alert means, and what to do."""
    content = await visit.app.in_thread(_read_runbook)
    return frame.page(visit, "Runbook", content)


@cache
def _read_runbook() -> Markup:
    """The runbook as HTML. A link to another file is its text: the console has only this one."""
    source = files(frame.PACKAGE).joinpath("pages/system/runbook.md").read_text(encoding="utf-8")
    reader = make_reader()
    tokens = reader.parse(source)
    list(add_anchors(tokens))
    for inline in tokens:
        inline.children = _without_foreign_links(inline.children or [])
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704 # our own file


def _without_foreign_links(children: Sequence["Token"]) -> list["Token"]:
    kept = []
    is_foreign = False
    for child in children:
        if child.type == "link_open":
            is_foreign = not str(child.attrGet("href")).startswith("#")
        if not (is_foreign and child.type in ("link_open", "link_close")):
            kept.append(child)
    return kept


@PAGES.get("/console/system/accounts", for_=Right.SYSTEM)
async def show_accounts(visit: Visit) -> Response:
    """List the accounts: state, members, clients, users and waiting files."""
    after_id = visit.number("after") or 0
    page = await visit.app.ask_much(lambda tx: list_account_rows(tx, after_id=after_id))
    path = "/console/system/accounts"
    return frame.show(
        visit,
        "Accounts",
        "system/accounts.html",
        page=page,
        count=bounded_text,
        first_page=path if after_id else "",
        next_page=f"{path}?after={page.after_id}" if page.after_id is not None else "",
    )
