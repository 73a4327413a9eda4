"""Uploads that are not applied yet: choose a file, which is stored as a draft, and go on with a draft."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.codes import Kind
from frontdesk.console import frame
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.errors import NoRight, SignInNeeded
from frontdesk.console.file_words import StateWords
from frontdesk.console.upload import UPLOADS, Said, Step, draft_words, path_of, way_on
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError, Invalid, Malformed, RateLimited
from frontdesk.files.actions import FILE_NAME_LENGTH
from frontdesk.files.drafts.steps import (
    ENDS_BY_ITSELF,
    LIVES,
    DraftUpload,
    NewDraft,
    begin_draft,
    count_drafts,
    list_drafts,
)
from frontdesk.files.model import BrokeOff, Draft, TooManyBytes
from frontdesk.formats.source import (
    START_BYTES,
    UnsupportedContent,
    check_start,
    detect_content,
    known_encoding,
)
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan
from frontdesk.users.model import Right
from frontdesk.users.sessions import session_of
from frontdesk.web.multipart import FormWithFile
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.response import HttpError, Response
from frontdesk.web.uploading import store_content

PAGES = Pages()

UTF_8 = "utf-8"
# What a sender may have to say of a text: a byte order mark says it too, and a workbook needs none.
ENCODINGS: Mapping[str, str] = {
    UTF_8: "UTF-8, or as its byte order mark says",
    "cp1252": "Windows 1252: CSV of Excel on Windows",
    "iso8859-1": "Latin-1 (ISO 8859-1)",
    "iso8859-15": "Latin-9 (ISO 8859-15)",
    "mac-roman": "Mac Roman: CSV of Excel on an older Mac",
    "cp437": "DOS 437",
    "cp850": "DOS 850",
    "utf-16-le": "UTF-16, little-endian, without a mark",
    "utf-16-be": "UTF-16, big-endian, without a mark",
}
BROKE_OFF = "The upload broke off. Nothing was stored: choose the file again."
# Of a request whose body has not come as a whole.
_BROKEN = (Kind.MALFORMED, Kind.TIMEOUT)


class DraftRow(NamedTuple):
    """A draft in a list, with the address at which it goes on."""

    draft: Draft
    path: str
    plan: str
    sender: str
    state: StateWords


def draft_rows(tx: Tx, visit: Visit, plans: Sequence[Plan]) -> list[DraftRow]:
    """The account's open drafts, the newest first: 20 at most."""
    drafts = list_drafts(tx, visit.account, now=visit.now)
    names = {plan.id: plan.name for plan in plans}
    senders = names_of(tx, {draft.client for draft in drafts}, visit.reach, visit.user)
    return [
        DraftRow(
            draft=draft,
            path=way_on(draft),
            plan=names.get(draft.plan_id or 0, ""),
            sender=senders[draft.client],
            state=draft_words(draft),
        )
        for draft in drafts
    ]


def chooser_values(visit: Visit) -> dict[str, Any]:
    """What the form that takes a file shows."""
    return {
        "encodings": ENCODINGS,
        "typed": visit.form.fields,
        "most_mib": visit.app.config.file_limit_mib,
    }


@PAGES.get(UPLOADS, for_=Right.FILES_WRITE)
async def show_uploads(visit: Visit) -> Response:
    """Show the form that takes a file, and the drafts that wait for a step."""
    return await _show(visit, Said())


@PAGES.post_file(UPLOADS, for_=Right.FILES_WRITE)
async def upload(visit: Visit) -> Response:
    """Store a file as a draft while it arrives, and lead to the choice of its plan."""
    sent = visit.upload
    if sent is None or sent.file_name is None:
        return await _show(visit, Said("Choose a file.", PROBLEMS[Kind.INVALID].status))
    try:
        with visit.request.uploading(visit.account):
            draft = await _store(visit, sent)
    except HttpError as error:
        words = BROKE_OFF if error.kind in _BROKEN else f"{error.detail} Nothing was stored."
        return await _show(visit, Said(words, PROBLEMS[error.kind].status))
    except (BrokeOff, Invalid, Malformed, RateLimited, TooManyBytes, UnsupportedContent) as error:
        return await _show(visit, _not_stored(error))
    return frame.go_to(path_of(draft, Step.PLAN))


async def _store(visit: Visit, sent: FormWithFile) -> Draft:
    """Raises Invalid, Malformed, UnsupportedContent, RateLimited, TooManyBytes, BrokeOff, HttpError,
    SignInNeeded, NoRight; then nothing stays stored.
    """
    app = visit.app
    encoding = visit.form.text("encoding") or UTF_8
    pieces = sent.file()
    start = await _read_start(pieces)
    check_start(start, encoding=encoding)
    found = detect_content(start, known_encoding(encoding))
    if found.format is None:
        raise UnsupportedContent(
            f"The file looks like {found.name}. CSV, Excel (.xlsx), 834 and JSON are read."
        )
    app.refuse_used_up_storage(visit.account)
    name = (sent.file_name or "")[-FILE_NAME_LENGTH:] or None
    new = NewDraft(visit.account, name, encoding=encoding)
    draft = await app.write(lambda tx: begin_draft(tx, new, visit.requester))
    content = DraftUpload(app.db, draft, app.clock)
    content.write(start)

    def finish() -> Draft:
        _refuse_ended(visit)
        # The requester anew at the end: a draft lives from there on.
        return content.finish(visit.requester)

    return await store_content(app, content, pieces, finish)


def _refuse_ended(visit: Visit) -> None:
    """Raises SignInNeeded, NoRight: a file may arrive for hours, and the user be ended or get other
    roles meanwhile, which end the session. To send is to use it: it does not grow idle.
    """
    session = session_of(visit.app.db, visit.secret or "", now=visit.now)
    if session is None:
        raise SignInNeeded
    if not session.user.may(Right.FILES_WRITE, visit.account_id):
        raise NoRight(Right.FILES_WRITE)


async def _read_start(pieces: AsyncIterator[bytes]) -> bytes:
    """Enough of the file to recognise it."""
    start = b""
    while len(start) < START_BYTES and (data := await anext(pieces, b"")):
        start += data
    return start


def _not_stored(error: FrontdeskError) -> Said:
    words = error.detail
    if isinstance(error, Invalid):
        fault = error.faults[0]
        words = f"The file {fault.message}."
        if fault.code == codes.faults.EMPTY:
            words = "The file is empty."
        elif fault.field == "encoding":
            words = "Choose an encoding of the list."
    return Said(f"{words} Nothing was stored.", PROBLEMS[error.kind].status)


async def _show(visit: Visit, said: Said) -> Response:
    def read(tx: Tx) -> tuple[list[DraftRow], list[Plan], int]:
        plans = list_plans(tx, visit.reach)
        counts = count_drafts(tx, visit.account, now=visit.now)
        return draft_rows(tx, visit, plans), plans, counts.arriving

    rows, plans, arriving = await visit.app.ask(read)
    return frame.show(
        visit,
        "Upload a file",
        "uploads/list.html",
        status=said.status,
        message=said.message,
        rows=rows,
        plans=plans,
        lives=LIVES,
        arriving=arriving,
        ends_by_itself=ENDS_BY_ITSELF,
        **chooser_values(visit),
    )
