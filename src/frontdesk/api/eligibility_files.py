"""Files of members: the upload streams into the database, and a worker loads it. Progress and report are read here, and a
person decides about the file (docs/interface.md, Eligibility files)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from email.message import Message
from functools import partial
from typing import Any

from frontdesk import files
from frontdesk.api.parameters import check_query
from frontdesk.api.suggestions import suggest_for
from frontdesk.app import App
from frontdesk.errors import Fault, Invalid, Malformed
from frontdesk.files.model import (
    EligibilityFile,
    FileMode,
    FileQuota,
    Format,
    NewFile,
    Retry,
)
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Header, HttpError, Response
from frontdesk.web.trail import requester_of

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]{1,32})', re.IGNORECASE)
MIB = 1024 * 1024
_KEY = re.compile("[!-~]{1,255}")
_NO_STORE: Header = (b"cache-control", b"no-store")


async def upload_eligibility_file(app: App, request: Request) -> Response:
    """Load a file of members under a plan. The body is the file itself, plain or compressed by gzip. As
    `application/octet-stream` it may have any format, and its content tells which; JSON may be `application/json` too. Each row
    follows the rules of a POST: a refused row does not stop its neighbours. Ask for the file until its `state` is `done`, `held`
    or `failed`. A second upload of the same file changes nothing; with the same `Idempotency-Key` it answers the file of the
    first. A mapping translates names and values that are not the interface's own; with `suggest_mapping` the answer is a mapping
    that would read the file, and nothing is loaded. A Content-Type that the content contradicts is 415."""
    with request.uploading():
        return await _upload(app, request)


async def _upload(app: App, request: Request) -> Response:
    new, requester = _new_file(request), requester_of(app, request)
    key = _idempotency_key(request)
    retry = None if key is None else Retry(key, new)
    pieces = request.body_pieces(app.config.file_limit_mib * MIB)
    start = await _start_of(pieces)
    files.check_start(start, encoding=new.encoding, **_declared(request))
    if request.query("suggest_mapping").get("suggest_mapping") == "true":
        return await suggest_for(app, request, new, start, pieces)
    quota = FileQuota(app.config.files_waiting, app.config.files_waiting_mib * MIB)

    def begin() -> EligibilityFile:
        with app.db.write() as tx:
            return files.begin_file(tx, new, requester, quota=quota)

    file = await app.in_thread(begin)
    upload = files.Upload(app.db, file, quota)
    upload.write(start)
    try:
        async for data in pieces:
            upload.write(data)
            if upload.has_full_part:
                await app.in_thread(upload.flush)
        requester = requester_of(app, request)  # anew: the trail wants the time of the end
        file = await app.in_thread(lambda: upload.finish(requester, retry))
    except BaseException:
        # Also when the caller goes away or the server stops: half a file must never be loaded.
        await asyncio.shield(app.in_thread(upload.discard))
        raise
    app.db.announce_work()
    return _response(app, file, status=202)


async def _start_of(pieces: AsyncIterator[bytes]) -> bytes:
    """The first pieces, enough to recognise what they are of."""
    start = b""
    async for data in pieces:
        start += data
        if len(start) >= files.START_BYTES:
            break
    return start


async def show_eligibility_file(app: App, request: Request) -> Response:
    """Read the progress of a file. Answers the file's state, and how many of its rows had which outcome."""
    return _response(app, await find_file(app, request))


async def approve_eligibility_file(app: App, request: Request) -> Response:
    """Approve a held file. Lets the file go on as a whole: it moves the members of other plans that it lists, and ends those that
    a full file omits. The report lists them: `?outcome=would_move`, `?outcome=would_end`. The account may want another client
    than the uploader for this (403 `second_person_needed`)."""
    return _response(app, await _act(app, request, files.approve_file))


async def accept_eligibility_file_mapping(app: App, request: Request) -> Response:
    """Give a held 834 the mapping that it needs. `{}` accepts the suggested one, which the file's `problem` shows with its
    reasons and figures; a mapping is taken instead of it. The file then goes on. The mapping becomes the account's default for
    later files, unless `keep` is false."""
    query = request.query("keep")
    check_query(query, "mapping_keep")
    mapping: dict[str, Any] = parse_json_object(await request.body())
    accept = partial(files.accept_mapping, mapping=mapping, keep=query.get("keep") != "false")
    return _response(app, await _act(app, request, accept))


async def cancel_eligibility_file(app: App, request: Request) -> Response:
    """Cancel a file that waits, runs or is held. It changes no more members. What it has applied stays until it is undone."""
    return _response(app, await _act(app, request, files.cancel_file))


async def undo_eligibility_file(app: App, request: Request) -> Response:
    """Undo what a file changed. Records that were changed again since stay as they are, and the report lists them. Members
    that the file created are withdrawn, and their unsent invitations cancelled. The undo has a report, and can be undone."""
    return _response(app, await _act(app, request, files.undo_file), status=202)


async def _act(app: App, request: Request, action: Callable[..., EligibilityFile]) -> EligibilityFile:
    file, requester = _of_path(request), requester_of(app, request)

    def work() -> EligibilityFile:
        with app.db.write() as tx:
            return action(tx, requester=requester, **file)

    file_after = await app.in_thread(work)
    app.db.announce_work()
    return file_after


def _new_file(request: Request) -> NewFile:
    """The query and the Content-Type of an upload. Raises NotFound, HttpError, Invalid with every fault."""
    names = (
        "format",
        "mode",
        "dry_run",
        "encoding",
        "mapping",
        "sheet",
        "header_row",
        "file_name",
        "suggest_mapping",
    )
    query = request.query(*names)
    declared = _declared(request)
    if declared["media_type"].startswith("multipart/"):
        raise HttpError("unsupported_media_type", "Send the file itself as the body, not in a form.")
    check_query(query, *(f"file_{name}" for name in names if name != "mapping"))
    means = files.MEDIA_TYPES.get(declared["media_type"], frozenset())
    charset = _CHARSET.search(request.header(b"content-type") or "")
    return NewFile(
        account_id=request.account_id,
        plan_id=request.path_id("plan_id"),
        format=declared["format"] or (next(iter(means)) if len(means) == 1 else None),
        encoding=query.get("encoding", charset[1] if charset else "utf-8"),
        mode=FileMode(query["mode"]) if "mode" in query else None,
        dry_run=query.get("dry_run") == "true",
        sheet=query.get("sheet"),
        header_row=int(query["header_row"]) if "header_row" in query else None,
        file_name=query.get("file_name") or _name_of(request),
        **_mapping(query.get("mapping")),
    )


def _declared(request: Request) -> dict[str, Any]:
    """The format or the media type that the caller names, as `check_start` takes them."""
    format_ = request.query("format").get("format")
    media_type = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    return {"media_type": media_type, "format": Format(format_) if format_ in set(Format) else None}


def _mapping(sent: str | None) -> dict[str, Any]:
    """The mapping of an upload, as NewFile takes it: itself, or by name. Raises Malformed."""
    if sent is None or not sent.lstrip().startswith("{"):
        return {"mapping_name": sent}
    try:
        return {"mapping": parse_json_object(sent.encode())}
    except Malformed as error:
        raise Malformed(f"The parameter mapping can't be read: {error.detail}") from None


def _name_of(request: Request) -> str | None:
    """The file's name in Content-Disposition."""
    message = Message()
    message["Content-Disposition"] = request.header(b"content-disposition") or "inline"
    return message.get_filename()


def _idempotency_key(request: Request) -> str | None:
    """The caller's name for the upload. Raises Invalid."""
    key = request.header(b"idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid(
            [Fault("Idempotency-Key", "not_allowed", "must have 1 to 255 visible ASCII characters")]
        )
    return key


def _of_path(request: Request) -> dict[str, Any]:
    """The file that the path names, as the functions of `files` take it. Raises NotFound."""
    plan_id, file_id = request.path_id("plan_id"), request.path_id("file_id", of="eligibility file")
    return {"file_id": file_id, "account_id": request.account_id, "plan_id": plan_id}


async def find_file(app: App, request: Request) -> EligibilityFile:
    """The file that the path names. Raises NotFound."""
    file = _of_path(request)
    return await app.read_in_thread(lambda: app.db.ask(lambda tx: files.get_file(tx, **file)))


def _response(app: App, file: EligibilityFile, *, status: int = 200) -> Response:
    """The file in its envelope. 202 stands for a new file, and names its address."""
    address = f"{app.config.base_url}/v2/plans/{file.plan_id}/eligibility-files/{file.id}"
    body = {"links": {"self": address, "report": f"{address}/report"}, "data": files.serialize_file(file)}
    location = ((b"location", address.encode()),) if status == 202 else ()
    return Response(status, json.dumps(body, ensure_ascii=False).encode(), (*location, _NO_STORE))
