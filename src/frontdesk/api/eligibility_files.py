"""Eligibility files over HTTP: an upload that streams into the database, its progress and report, and the decisions of a
person about it. A worker loads the file."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar

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

Value = TypeVar("Value")

MEBIBYTE = 1024 * 1024

# The format that a Content-Type means, unless the parameter `format` names one; for others the first letters decide.
_MEDIA_FORMATS = {
    "text/csv": Format.CSV,
    "application/jsonl": Format.JSON_LINES,
    "application/x-ndjson": Format.JSON_LINES,
    "application/edi-x12": Format.X12,
}
_FORMATS = {member.value: member for member in Format}
_MODES = {member.value: member for member in (FileMode.CHANGE, FileMode.FULL)}
_BOOLEANS = {"true": True, "false": False}
_ENCODING = re.compile(r"[A-Za-z0-9._-]{1,32}")
_NO_STORE = (b"cache-control", b"no-store")


async def post(app: App, request: Request) -> Response:
    """`POST /v2/plans/:plan_id/eligibility-files`: 202 and the file, which waits for a worker. Raises NotFound, Invalid."""
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


async def show(app: App, request: Request) -> Response:
    """`GET …/eligibility-files/:id`: state, progress and counts. Raises NotFound."""
    file = await app.read_in_thread(partial(_find, app, request))
    return Response(200, _body(app, file), (_NO_STORE,))


async def report(app: App, request: Request) -> Response:
    """`GET …/eligibility-files/:id/report`: a line per row so far, as JSON lines or CSV. Raises NotFound, Invalid."""
    faults: list[Fault] = []
    as_csv = _choice(request.query("format"), "format", values={"csv": True, "jsonl": False}, faults=faults)
    if faults:
        raise Invalid(faults)
    file = await app.read_in_thread(partial(_find, app, request))
    pieces = (report_csv if as_csv else report_json_lines)(app.db, file.id)
    kind = b"text/csv; charset=utf-8" if as_csv else b"application/x-ndjson"
    name = b'attachment; filename="report-%d.%s"' % (file.id, b"csv" if as_csv else b"jsonl")
    headers = (_NO_STORE, (b"content-disposition", name))
    return Response(200, b"", headers, kind, _in_threads(app, pieces))


async def approve(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/approve`: a held file ends the members that it omits. Raises NotFound, Invalid."""
    return Response(200, _body(app, await _act(app, request, approve_file)), (_NO_STORE,))


async def cancel(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/cancel`: a file that waits or is held goes no further. Raises NotFound, Invalid."""
    return Response(200, _body(app, await _act(app, request, cancel_file)), (_NO_STORE,))


async def undo(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/undo`: 202 and a new file that takes this one back. Raises NotFound, Invalid."""
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
    faults: list[Fault] = []
    format_ = _choice(query, "format", values=_FORMATS, faults=faults)
    mode = _choice(query, "mode", values=_MODES, faults=faults)
    dry_run = _choice(query, "dry_run", values=_BOOLEANS, faults=faults)
    encoding = query.get("encoding", "utf-8")
    if not _ENCODING.fullmatch(encoding):
        faults.append(Fault("encoding", "not_allowed", "must be the name of an encoding"))
    if faults:
        raise Invalid(faults)
    return NewFile(
        account_id=request.caller.account_id,
        plan_id=request.path_id("plan_id"),
        format=format_ or _MEDIA_FORMATS.get(media),
        encoding=encoding,
        mode=mode or FileMode.CHANGE,
        dry_run=dry_run or False,
    )


def _choice(
    query: dict[str, str], name: str, *, values: Mapping[str, Value], faults: list[Fault]
) -> Value | None:
    """The value of a parameter, None if it is absent; a value that is not one of the choices adds a fault."""
    if name not in query or query[name] in values:
        return values.get(query.get(name, ""))
    faults.append(Fault(name, "not_allowed", "must be one of " + ", ".join(values)))
    return None


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
