"""Eligibility files over HTTP: an upload that streams into the database, its progress and report, and the decisions of a
person about it. A worker loads the file."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

from frontdesk.api.parameters import check_query
from frontdesk.app import App
from frontdesk.errors import Fault, Invalid
from frontdesk.files import (
    Upload,
    approve_file,
    begin_file,
    cancel_file,
    get_file,
    report_csv,
    report_json_lines,
    serialize_file,
    undo_file,
)
from frontdesk.files.model import EligibilityFile, FileMode, Format, NewFile, Requester, WrongState
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError, Response

MEBIBYTE = 1024 * 1024

# The format that a Content-Type means, unless the parameter `format` names one; for others the first letters decide.
_MEDIA_FORMATS = {
    "text/csv": Format.CSV,
    "application/jsonl": Format.JSON_LINES,
    "application/x-ndjson": Format.JSON_LINES,
    "application/edi-x12": Format.X12,
}
_NO_STORE = (b"cache-control", b"no-store")


async def upload_eligibility_file(app: App, request: Request) -> Response:
    """Load a file of members under a plan. The body is the file itself, plain or compressed by gzip. Each row follows the
    rules of a POST: a refused row does not stop its neighbours. Ask for the file until its `state` is `done`, `held` or
    `failed`. A second upload of the same file changes nothing. The account's mapping, which operators set, translates names
    that are not the interface's own."""
    new = _new_file(request)
    requester = _requester(app, request)

    def begin() -> EligibilityFile:
        with app.db.write() as tx:
            return begin_file(tx, new, requester)

    file = await app.in_thread(begin)
    upload = Upload(app.db, file)
    try:
        async for data in request.body_pieces(app.config.file_limit_mib * MEBIBYTE):
            upload.write(data)
            if upload.has_full_part:
                await app.in_thread(upload.flush)
        file = await app.in_thread(lambda: upload.finish(requester))
    except BaseException:
        # Also when the caller goes away or the server stops: half a file must never be loaded.
        await asyncio.shield(app.in_thread(upload.discard))
        raise
    return _accepted(app, file)


async def show_eligibility_file(app: App, request: Request) -> Response:
    """Read the progress of a file. Answers the file's state, and how many of its rows had which outcome."""
    file = await app.read_in_thread(partial(_find, app, request))
    return Response(200, _body(app, file), (_NO_STORE,))


async def report_eligibility_file(app: App, request: Request) -> Response:
    """Read the outcome of each row of a file. While the file is being loaded, the report has the rows so far."""
    query = request.query("format")
    check_query(query, "report_format")
    as_csv = query.get("format") == "csv"
    file = await app.read_in_thread(partial(_find, app, request))
    pieces = (report_csv if as_csv else report_json_lines)(app.db, file.id)
    kind = b"text/csv; charset=utf-8" if as_csv else b"application/x-ndjson"
    name = b'attachment; filename="report-%d.%s"' % (file.id, b"csv" if as_csv else b"jsonl")
    headers = (_NO_STORE, (b"content-disposition", name))
    return Response(200, b"", headers, kind, _in_threads(app, pieces))


async def approve_eligibility_file(app: App, request: Request) -> Response:
    """Approve a held file. Lets the file end the members that it omits. Look at `members_missing` first."""
    return Response(200, _body(app, await _act(app, request, approve_file)), (_NO_STORE,))


async def cancel_eligibility_file(app: App, request: Request) -> Response:
    """Cancel a waiting or held file. The file ends no members. What it has applied stays until it is undone."""
    return Response(200, _body(app, await _act(app, request, cancel_file)), (_NO_STORE,))


async def undo_eligibility_file(app: App, request: Request) -> Response:
    """Undo what a file changed. Records that were changed again since stay as they are, and the report lists them. Members
    that the file created are withdrawn, and their unsent invitations cancelled. The undo has a report, and can be undone."""
    return _accepted(app, await _act(app, request, undo_file))


async def _act(app: App, request: Request, action: Callable[..., EligibilityFile]) -> EligibilityFile:
    plan_id, file_id = _path_ids(request)
    account_id, requester = request.caller.account_id, _requester(app, request)

    def work() -> EligibilityFile:
        with app.db.write() as tx:
            return action(tx, file_id, requester, account_id=account_id, plan_id=plan_id)

    try:
        return await app.in_thread(work)
    except WrongState as error:
        raise Invalid([Fault("state", error.code, error.detail)]) from None


def _new_file(request: Request) -> NewFile:
    """The query and the Content-Type of an upload. Raises NotFound, HttpError, Invalid with every fault.

    An unknown parameter is a fault, since it may be a misspelt `dry_run`.
    """
    query = request.query("format", "mode", "dry_run", "encoding", strict=True)
    media = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media.startswith("multipart/"):
        raise HttpError("unsupported_media_type", "Send the file itself as the body, not in a form.")
    check_query(query, "file_format", "file_mode", "file_dry_run", "file_encoding")
    return NewFile(
        account_id=request.caller.account_id,
        plan_id=request.path_id("plan_id"),
        format=Format(query["format"]) if "format" in query else _MEDIA_FORMATS.get(media),
        encoding=query.get("encoding", "utf-8"),
        mode=FileMode(query.get("mode", FileMode.CHANGE)),
        dry_run=query.get("dry_run") == "true",
    )


def _requester(app: App, request: Request) -> Requester:
    return Requester(request.caller.client_id, request.request_id, app.clock())


def _path_ids(request: Request) -> tuple[int, int]:
    """Of the plan and of the file. Raises NotFound."""
    return request.path_id("plan_id"), request.path_id("file_id", of="eligibility file")


def _find(app: App, request: Request) -> EligibilityFile:
    plan_id, file_id = _path_ids(request)
    account_id = request.caller.account_id
    return app.db.ask(lambda tx: get_file(tx, file_id, account_id=account_id, plan_id=plan_id))


def _address(app: App, file: EligibilityFile) -> str:
    return f"{app.config.base_url}/v2/plans/{file.plan_id}/eligibility-files/{file.id}"


def _accepted(app: App, file: EligibilityFile) -> Response:
    """202 for a new file, with its address."""
    return Response(202, _body(app, file), ((b"location", _address(app, file).encode()), _NO_STORE))


def _body(app: App, file: EligibilityFile) -> bytes:
    address = _address(app, file)
    links = {"self": address, "report": f"{address}/report"}
    return json.dumps({"links": links, "data": serialize_file(file)}, ensure_ascii=False).encode()


async def _in_threads(app: App, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is read beside the event loop, and only when the one before it has been sent."""
    while True:
        piece = await app.read_in_thread(lambda: next(pieces, None))
        if piece is None:
            return
        yield piece
