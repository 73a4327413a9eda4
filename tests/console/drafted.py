"""Uploads by steps that stand before their columns: an HR export as people send it."""

from functools import partial
from typing import Any

from frontdesk.files.drafts import steps
from frontdesk.files.drafts.steps import DraftKey, DraftUpload, NewDraft
from frontdesk.files.model import Draft
from frontdesk.formats.model import FileMode
from frontdesk.reach import EVERY
from tests.console.browsing import Browser
from tests.files.loading import Desk

MARK = "Qzx"
# What no page of an upload may show: the values of its people.
VALUES = (MARK, MARK.lower(), "1943", "59718", "4065550143", "EMP-7")
ENDS = {"q7": "0"}  # the answer that people with the status *terminated* end
HEADER = "Employee ID,Last Name,First Name,Birth Date,Sex,Zip,Hire Date,Status,Cost Center"


def census(number: int = 20, *, without_zip: int = 0, header: str = HEADER) -> bytes:
    """A title above the header, a blank line below it, dates whose order no row shows, people who have
    left, and a total.
    """
    people = [
        f"EMP-7{n:03d},{MARK}last{chr(97 + n % 26)},{MARK}first,{n % 12 + 1:02d}/{n % 9 + 1:02d}/1943,F,"
        f"{'' if n < without_zip else 59718},01/{n % 9 + 1:02d}/2026,"
        f"{'Terminated' if n % 4 == 0 else 'Active'},{n % 5 + 4000}"
        for n in range(number)
    ]
    commas = "," * header.count(",")
    total = f"Total,{number}{commas[1:]}"
    lines = ["Census of Example Corp" + commas, "", header, commas, *people, "", total]
    return "\r\n".join([*lines, ""]).encode()


def begin(desk: Desk, content: bytes, *, mode: FileMode | None = FileMode.CHANGE) -> Draft:
    """A draft of the desk's client whose plan and mode are said, unless `mode` is None."""
    new = NewDraft(desk.customer.account_id, "census.csv")
    with desk.db.write() as tx:
        draft = steps.begin_draft(tx, new, desk.requester())
    upload = DraftUpload(desk.db, draft, desk.clock)
    upload.write(content)
    draft = upload.finish(desk.requester())
    if mode is None:
        return draft
    return take(desk, draft, steps.set_plan_and_mode, plan_id=desk.customer.plan_ids[0], mode=mode)


def take(desk: Desk, draft: Draft, step: Any, **more: Any) -> Draft:
    """The draft after a step that somebody takes elsewhere."""
    key = DraftKey(draft.id, draft.version)
    with desk.db.write() as tx:
        found = step(tx, key, EVERY, desk.requester(), **more)
    changed: Draft = found[0] if isinstance(found, tuple) else found
    return changed


def reread(desk: Desk, draft: Draft) -> Draft:
    read = partial(steps.get_draft, draft_id=draft.id, reach=EVERY, now=desk.clock())
    return desk.db.ask(read)


def path_of(draft: Draft, step: str = "columns") -> str:
    return f"/console/accounts/{draft.account_id}/uploads/{draft.id}/{step}"


def covers(browser: Browser) -> bool:
    """Whether the page, its address and its headers have no value of a person."""
    shown = browser.page + browser.path + str(browser.answer.headers)
    return not [value for value in VALUES if value in shown]


def choose(browser: Browser, draft: Draft, **fields: str) -> Browser:
    """Fill in the form of the columns and begin the dry run."""
    return browser.send(path_of(draft), **{"do": "dry_run"} | fields)
