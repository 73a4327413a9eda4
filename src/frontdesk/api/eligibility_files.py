"""Eligibility files over HTTP: an upload that streams into the database, its progress, its report, what a person decides
about it; a worker does the work."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from typing import Protocol, TypeVar

from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.files import (
    Upload,
    approve_file,
    begin_file,
    cancel_file,
    file_body,
    get_file,
    report_csv,
    report_json_lines,
    undo_file,
)
from frontdesk.files.model import EligibilityFile, FileMode, Format, NewFile, Requester, WrongState
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError, Response

Value = TypeVar("Value")

MEBIBYTE = 1024 * 1024

# What Content-Type says of the format, unless `format` does; anything else leaves it to the first letters.
_FORMATS = {
    "text/csv": Format.CSV,
    "application/jsonl": Format.JSON_LINES,
    "application/x-ndjson": Format.JSON_LINES,
    "application/edi-x12": Format.X12,
}
_MODES = {"change": FileMode.CHANGE, "full": FileMode.FULL}
_TRUTHS = {"true": True, "false": False}
_ENCODING = re.compile(r"[A-Za-z0-9._-]{1,32}")


async def post(app: App, request: Request) -> Response:
    """`POST /v2/plans/:plan_id/eligibility-files`: 202 and the file, which waits for a worker. Raises NotFound, Invalid."""
    new = _new_file(request)
    asked = _asked(app, request)
    file = await app.in_thread(lambda: _begin(app, new, asked))
    upload = Upload(app.db, file)
    try:
        async for piece in request.body_pieces(app.config.file_limit_mib * MEBIBYTE):
            upload.take(piece)
            if upload.is_full:
                await app.in_thread(upload.store)
        file = await app.in_thread(lambda: upload.finish(asked))
    except BaseException:
        # Also when the caller goes away or the server stops: half a file must never be loaded.
        await asyncio.shield(app.in_thread(upload.abandon))
        raise
    return _taken(app, file)


async def show(app: App, request: Request) -> Response:
    """`GET …/eligibility-files/:id`: state, progress and counts. Raises NotFound."""
    file = await app.read_in_thread(partial(_find, app, request))
    return Response(200, _body(app, file), ((b"cache-control", b"no-store"),))


async def report(app: App, request: Request) -> Response:
    """`GET …/eligibility-files/:id/report`: a line per row, as JSON lines or CSV; what is there so far. Raises NotFound."""
    faults: list[Fault] = []
    as_csv = _choice(request.query("format"), "format", values={"csv": True, "jsonl": False}, faults=faults)
    if faults:
        raise Invalid(faults)
    file = await app.read_in_thread(partial(_find, app, request))
    pieces = (report_csv if as_csv else report_json_lines)(app.db, file.id)
    kind = b"text/csv; charset=utf-8" if as_csv else b"application/x-ndjson"
    name = b'attachment; filename="report-%d.%s"' % (file.id, b"csv" if as_csv else b"jsonl")
    headers = ((b"cache-control", b"no-store"), (b"content-disposition", name))
    return Response(200, b"", headers, kind, _in_threads(app, pieces))


async def approve(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/approve`: a held file ends whom it does not name. Raises NotFound, Invalid."""
    file = await _decided(app, request, approve_file)
    return Response(200, _body(app, file), ((b"cache-control", b"no-store"),))


async def cancel(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/cancel`: one that waits or is held goes no further. Raises NotFound, Invalid."""
    file = await _decided(app, request, cancel_file)
    return Response(200, _body(app, file), ((b"cache-control", b"no-store"),))


async def undo(app: App, request: Request) -> Response:
    """`POST …/eligibility-files/:id/undo`: 202 and a file of its own that takes back. Raises NotFound, Invalid."""
    return _taken(app, await _decided(app, request, undo_file))


class _Deed(Protocol):
    """What can be decided about a file; the file as it is then, or the new one."""

    def __call__(
        self, tx: Tx, file_id: int, asked: Requester, *, account_id: int | None, plan_id: int | None
    ) -> EligibilityFile: ...


async def _decided(app: App, request: Request, deed: _Deed) -> EligibilityFile:
    plan_id, file_id = _path_ids(request)
    account_id, asked = request.caller.account_id, _asked(app, request)

    def work() -> EligibilityFile:
        with app.db.write() as tx:
            return deed(tx, file_id, asked, account_id=account_id, plan_id=plan_id)

    try:
        return await app.in_thread(work)
    except WrongState as error:
        raise Invalid([Fault("state", "wrong_state", error.detail)]) from None


def _new_file(request: Request) -> NewFile:
    """What the query and Content-Type say of the file. Raises NotFound, Refused, Invalid with every fault.

    A parameter that is not known may be a misspelt `dry_run`, so it is not passed over.
    """
    asked = request.query("format", "mode", "dry_run", "encoding", strict=True)
    media = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media.startswith("multipart/"):
        raise HttpError("unsupported_media_type", "Send the file itself as the body, not in a form.")
    faults: list[Fault] = []
    format_ = _choice(asked, "format", values={str(member): member for member in Format}, faults=faults)
    mode = _choice(asked, "mode", values=_MODES, faults=faults)
    dry_run = _choice(asked, "dry_run", values=_TRUTHS, faults=faults)
    encoding = asked.get("encoding", "utf-8")
    if not _ENCODING.fullmatch(encoding):
        faults.append(Fault("encoding", "not_allowed", "must be the name of an encoding"))
    if faults:
        raise Invalid(faults)
    return NewFile(
        account_id=request.caller.account_id,
        plan_id=request.path_id("plan_id"),
        format=format_ or _FORMATS.get(media),
        encoding=encoding,
        mode=mode or FileMode.CHANGE,
        dry_run=dry_run or False,
    )


def _choice(
    asked: dict[str, str], name: str, *, values: Mapping[str, Value], faults: list[Fault]
) -> Value | None:
    """What was chosen; None if nothing was. One that is not there is added to the faults."""
    if name not in asked or asked[name] in values:
        return values.get(asked.get(name, ""))
    faults.append(Fault(name, "not_allowed", "must be one of " + ", ".join(values)))
    return None


def _begin(app: App, new: NewFile, asked: Requester) -> EligibilityFile:
    with app.db.write() as tx:
        return begin_file(tx, new, asked)


def _asked(app: App, request: Request) -> Requester:
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


def _taken(app: App, file: EligibilityFile) -> Response:
    """A new file: 202, and where it is."""
    location = (b"location", _address(app, file).encode())
    return Response(202, _body(app, file), (location, (b"cache-control", b"no-store")))


def _body(app: App, file: EligibilityFile) -> bytes:
    address = _address(app, file)
    links = {"self": address, "report": f"{address}/report"}
    return json.dumps({"links": links, "data": file_body(file)}, ensure_ascii=False).encode()


async def _in_threads(app: App, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is read beside the event loop, and only when the one before it has been sent."""
    while True:
        piece = await app.read_in_thread(lambda: next(pieces, None))
        if piece is None:
            return
        yield piece
