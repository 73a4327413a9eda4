"""Files of members: the upload streams into the database, and a worker loads it. Lists, progress
and report are read here, a mapping is suggested, and a person decides about the file
(docs/interface.md, Eligibility files).
"""

import gzip
import re
from collections.abc import AsyncIterator, Callable, Iterator
from email.message import Message
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.envelope import address_with, enveloped, enveloped_page
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, Malformed
from frontdesk.files import actions, report
from frontdesk.files.model import EligibilityFile, FileFilter, FileKey, FileState, NewFile
from frontdesk.formats.model import FileMode, Format, Unreadable
from frontdesk.formats.source import MEDIA_TYPES, START_BYTES, check_start, detect_content
from frontdesk.interface import present
from frontdesk.interface.operations import FILE, Answer, Content, Group
from frontdesk.interface.parameters import (
    ACCEPT_ENCODING,
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    FILE_DRY_RUN,
    FILE_ENCODING,
    FILE_FILE_NAME,
    FILE_FORMAT,
    FILE_HEADER_ROW,
    FILE_MAPPING,
    FILE_MODE,
    FILE_PAGE_AFTER,
    FILE_PAGE_SIZE,
    FILE_SHA256,
    FILE_SHEET,
    FILE_STATE,
    FILE_SUGGEST_MAPPING,
    IDEMPOTENCY_KEY,
    LINK,
    LOCATION,
    MAPPING_KEEP,
    REPORT_CODE,
    REPORT_EXTERNAL_ID,
    REPORT_FORMAT,
    REPORT_OUTCOME,
    REPORT_PAGE_AFTER,
    REPORT_PAGE_SIZE,
    VARY,
)
from frontdesk.interface.schema import explained
from frontdesk.interface.types import files as types
from frontdesk.interface.types.mapping_rules import Mapping
from frontdesk.interface.types.mappings import EligibilityMappingSuggestion
from frontdesk.mapping.suggest.apart import suggest_apart
from frontdesk.plans import get_plan
from frontdesk.reach import Reach
from frontdesk.web.endpoint import record_read, requester_of
from frontdesk.web.idempotency import once, write_in_turn
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import (
    GZIPPED,
    NO_STORE,
    VARIES,
    Header,
    HttpError,
    Response,
    gzip_pieces,
    json_response,
)
from frontdesk.web.uploading import store_content

GROUP = Group("Files", "Files of members: upload, progress, report, decisions.")

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]{1,32})', re.IGNORECASE)
MIB = 1024 * 1024
FILES_PER_PAGE = 100
LINES_PER_PAGE = 1000
# The first thousand rows are in it, of all but the widest files. What follows is read and let go.
SAMPLE_BYTES = 2 * 1024 * 1024
# A workbook tells at its end what is in it, so it is kept whole.
WORKBOOK_BYTES = 64 * 1024 * 1024
_OF_A_LOAD = ("mode", "dry_run", "mapping", "header_row")


@GROUP.post(
    Path.FILES,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    body=FILE,
    parameters=[
        FILE_FORMAT,
        FILE_MODE,
        FILE_DRY_RUN,
        FILE_ENCODING,
        FILE_MAPPING,
        FILE_SHEET,
        FILE_HEADER_ROW,
        FILE_FILE_NAME,
        FILE_SUGGEST_MAPPING,
        IDEMPOTENCY_KEY,
    ],
    answers={
        200: Answer(
            "A mapping that would read the file (`suggest_mapping`).", EligibilityMappingSuggestion
        ),
        202: Answer(
            "The file is stored and waits for a worker.",
            types.EligibilityFile,
            headers=[CACHE_CONTROL, LOCATION],
        ),
    },
    problems=[Kind.TIMEOUT, Kind.TOO_LARGE, Kind.UNSUPPORTED_MEDIA_TYPE],
    faults=[
        codes.faults.NOT_ALLOWED,
        codes.faults.REPEATED,
        codes.faults.EMPTY,
        codes.faults.UNKNOWN_ENCODING,
    ],
)
async def upload_eligibility_file(app: App, request: Request) -> Response:
    """Load a file of members under a plan.

    The body is the file itself, plain or compressed by gzip. As `application/octet-stream` it may
    have any format, and its content tells which; JSON may be `application/json` too. Each row
    follows the rules of a POST: a refused row does not stop its neighbours. Ask for the file until
    its `state` is `done`, `held` or `failed`. A second upload of the same file changes nothing;
    with the same `Idempotency-Key` it makes no second file. A mapping translates names and values
    that are not the interface's own; with `suggest_mapping` the answer is a mapping that would read
    the file, and nothing is loaded. A Content-Type that the content contradicts is 415.
    """
    with request.uploading(request.account_id):
        return await _upload(app, request)


async def _upload(app: App, request: Request) -> Response:
    new = _new_file(request)
    requester = requester_of(app, request)
    pieces = request.body_pieces(app.config.file_limit_mib * MIB)
    start = b""
    while len(start) < START_BYTES and (data := await anext(pieces, b"")):
        start += data  # enough to recognise what it is of
    check_start(start, encoding=new.encoding, **_declared(request))
    if request.parameters.get("suggest_mapping"):
        return await _suggest(app, request, new, start, pieces)

    accepted = partial(_response, app, status=202)
    app.refuse_used_up_storage(request.account_id)
    file = await app.write(lambda tx: actions.begin_file(tx, new, requester, is_limited=True))
    upload = actions.Upload(app.db, file, is_limited=True)
    upload.write(start)

    def finish() -> EligibilityFile:
        requester = requester_of(app, request)  # anew: the trail wants the time of the end
        return upload.finish(requester, lambda sha256: once(request, accepted, sha256))

    file = await store_content(app, upload, pieces, finish)
    app.db.announce_work()
    return accepted(file)


def _new_file(request: Request) -> NewFile:
    """The query and the Content-Type of an upload. Raises NotFound, HttpError, Invalid with every
    fault.
    """
    declared = _declared(request)
    if declared["media_type"].startswith("multipart/"):
        raise HttpError(
            Kind.UNSUPPORTED_MEDIA_TYPE, "Send the file itself as the body, not in a form."
        )
    query = request.parameters
    means = MEDIA_TYPES.get(declared["media_type"], frozenset())
    charset = _CHARSET.search(request.header(b"content-type") or "")
    head = Message()
    head["Content-Disposition"] = request.header(b"content-disposition") or "inline"
    return NewFile(
        account_id=request.account_id,
        plan_id=request.path_id("plan_id"),
        format=declared["format"] or (next(iter(means)) if len(means) == 1 else None),
        encoding=query.get("encoding") or (charset[1] if charset else "utf-8"),
        mode=FileMode(query["mode"]) if "mode" in query else None,
        dry_run=query.get("dry_run", False),
        sheet=query.get("sheet"),
        header_row=query.get("header_row"),
        file_name=query.get("file_name") or head.get_filename(),
        **_mapping(query.get("mapping")),
    )


def _declared(request: Request) -> dict[str, Any]:
    """The format or the media type that the caller names, as `check_start` takes them."""
    format_ = request.parameters.get("format")
    media_type = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    return {"media_type": media_type, "format": Format(format_) if format_ else None}


def _mapping(sent: str | None) -> dict[str, Any]:
    """The mapping of an upload, as NewFile takes it: itself, or by name. Raises Malformed."""
    if sent is None or not sent.lstrip().startswith("{"):
        return {"mapping_name": sent}
    try:
        return {"mapping": parse_json_object(sent.encode())}
    except Malformed as error:
        raise Malformed(f"The parameter mapping can't be read: {error.detail}") from None


async def _suggest(
    app: App, request: Request, new: NewFile, start: bytes, rest: AsyncIterator[bytes]
) -> Response:
    """The suggestion for the body, of which the start has been read. Raises NotFound, Invalid,
    Unreadable; RateLimited while another one is being made for the account.
    """
    rule = "must not be given with suggest_mapping, which loads nothing"
    if faults := [
        Fault(name, codes.faults.NOT_ALLOWED, rule)
        for name in _OF_A_LOAD
        if name in request.parameters
    ]:
        raise Invalid(faults)
    await app.ask(lambda tx: get_plan(tx, Reach.of(new.account_id), new.plan_id))
    is_workbook = new.format is Format.XLSX or detect_content(start, new.encoding).is_workbook
    limit = WORKBOOK_BYTES if is_workbook else SAMPLE_BYTES
    today = app.day_of(request.caller).latest
    options = {"today": today, "format": new.format, "encoding": new.encoding, "sheet": new.sheet}
    with TemporaryFile() as kept:
        size = await _copy(kept, start, rest, limit)
        if is_workbook and size > limit:
            message = "The workbook has more than 64 MiB. Send a copy with its first 1,000 rows."
            raise Unreadable(codes.files.TOO_LARGE, message)
        at_end = app.suggestions.begin(new.account_id)
        data = await app.compute(
            lambda: suggest_apart(kept, is_cut=size > limit, **options), at_end
        )
    data.pop("sheets", None)  # the names of sheets are for the console's choice
    return enveloped(app, request, data)


async def _copy(kept: IO[bytes], start: bytes, rest: AsyncIterator[bytes], limit: int) -> int:
    """Write up to `limit` bytes of the body to the file, which is then read from its beginning.
    Returns the body's size.
    """
    kept.write(start)
    size = len(start)
    async for data in rest:
        kept.write(data[: max(limit - size, 0)])
        size += len(data)
    kept.seek(0)
    return size


@GROUP.get(
    Path.FILES_OF_ACCOUNT,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    parameters=[FILE_STATE, FILE_SHA256, FILE_PAGE_SIZE, FILE_PAGE_AFTER],
    answers={200: Answer("The files, the newest first.", types.EligibilityFiles)},
    faults=[codes.faults.NOT_ALLOWED, codes.faults.REPEATED],
)
async def list_eligibility_files(app: App, request: Request) -> Response:
    """List the files of the account.

    Answers a page of them, the newest first.
    """
    return await _list(app, request, None)


@GROUP.get(
    Path.FILES,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    parameters=[FILE_STATE, FILE_SHA256, FILE_PAGE_SIZE, FILE_PAGE_AFTER],
    answers={200: Answer("The files, the newest first.", types.EligibilityFiles)},
    faults=[codes.faults.NOT_ALLOWED, codes.faults.REPEATED],
)
async def list_eligibility_files_of_plan(app: App, request: Request) -> Response:
    """List the files of a plan.

    Answers a page of them, the newest first.
    """
    return await _list(app, request, request.path_id("plan_id"))


async def _list(app: App, request: Request, plan_id: int | None) -> Response:
    query = request.parameters
    size = query.get("page[size]", FILES_PER_PAGE)
    filter_ = FileFilter(
        Reach.of(request.account_id),
        size + 1,
        plan_id,
        state=FileState(query["state"]) if "state" in query else None,
        sha256=query.get("sha256"),
        before_id=query.get("page[after]"),
    )
    found = await app.ask_much(lambda tx: actions.find_files(tx, filter_))
    shown = [present.file(file) for file in found[:size]]
    after = shown[-1]["id"] if len(found) > size else None
    return await enveloped_page(app, request, shown, size=size, after=after)


@GROUP.get(
    Path.FILE,
    scope=Scope.ELIGIBILITY_WRITE,
    answers={200: Answer("The file.", types.EligibilityFile)},
)
async def show_eligibility_file(app: App, request: Request) -> Response:
    """Read the progress of a file.

    Answers the file's state, and how many of its rows had which outcome.
    """
    return _response(app, await _find_file(app, request))


@GROUP.post(
    Path.FILE_APPROVE,
    scope=Scope.ELIGIBILITY_WRITE,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        200: Answer("The file waits for a worker, which continues it.", types.EligibilityFile)
    },
    problems=[Kind.WRONG_STATE, Kind.SECOND_PERSON_NEEDED],
)
async def approve_eligibility_file(app: App, request: Request) -> Response:
    """Approve a held file.

    Lets the file go on as a whole: it moves the members of other plans that it lists, and ends
    those that a full file omits. The report lists them: `?outcome=would_move`,
    `?outcome=would_end`. The account may want another client than the uploader for this (403
    `second_person_needed`).
    """
    return await _act(app, request, actions.approve_file)


@GROUP.post(
    Path.FILE_MAPPING,
    scope=Scope.ELIGIBILITY_WRITE,
    body=Mapping,
    parameters=[MAPPING_KEEP, IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The file waits for a worker, which reads it by the mapping.", types.EligibilityFile
        )
    },
    problems=[Kind.WRONG_STATE],
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.NOT_A_DATE,
        codes.faults.NOT_ALLOWED,
        codes.faults.REPEATED,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def accept_eligibility_file_mapping(app: App, request: Request) -> Response:
    """Give a held 834 the mapping that it needs.

    `{}` accepts the suggested one, which the file's `problem` shows with its reasons and figures; a
    mapping is taken instead of it. The file then goes on. The mapping becomes the account's default
    for later files, unless `keep` is false.
    """
    keep = request.parameters.get("keep", True)
    mapping: dict[str, Any] = parse_json_object(await request.body())
    return await _act(app, request, partial(actions.accept_mapping, mapping=mapping, keep=keep))


@GROUP.post(
    Path.FILE_CANCEL,
    scope=Scope.ELIGIBILITY_WRITE,
    parameters=[IDEMPOTENCY_KEY],
    answers={200: Answer("The file is cancelled.", types.EligibilityFile)},
    problems=[Kind.WRONG_STATE],
)
async def cancel_eligibility_file(app: App, request: Request) -> Response:
    """Cancel a file that waits, runs or is held.

    It changes no more members. What it has applied stays until it is undone.
    """
    return await _act(app, request, actions.cancel_file)


@GROUP.post(
    Path.FILE_UNDO,
    scope=Scope.ELIGIBILITY_WRITE,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        202: Answer(
            "The undo, a file without content, waits for a worker.",
            types.EligibilityFile,
            headers=[CACHE_CONTROL, LOCATION],
        )
    },
    problems=[Kind.WRONG_STATE],
)
async def undo_eligibility_file(app: App, request: Request) -> Response:
    """Undo what a file changed.

    Records that have other values since stay as they are, and the report lists them. Members that
    the file created are withdrawn, and their unsent invitations cancelled. The undo is held if too
    many members would lose access by it. It has a report, and can be undone.
    """
    app.refuse_used_up_storage(request.account_id)
    return await _act(app, request, actions.undo_file, status=202)


async def _act(
    app: App, request: Request, action: Callable[..., EligibilityFile], *, status: int = 200
) -> Response:
    key = _key(request)
    requester = requester_of(app, request)

    def change(tx: Tx) -> Response:
        return _response(app, action(tx, key, requester), status=status)

    response = await write_in_turn(app, request, change)
    app.db.announce_work()
    return response


@GROUP.get(
    Path.FILE_REPORT,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    parameters=[
        REPORT_FORMAT,
        REPORT_OUTCOME,
        REPORT_CODE,
        REPORT_EXTERNAL_ID,
        REPORT_PAGE_SIZE,
        REPORT_PAGE_AFTER,
        ACCEPT_ENCODING,
    ],
    answers={
        200: Answer(
            f"A line per row and outcome, with{explained(report.COLUMNS)}. A refused row has a "
            "line for each fault, and each warning is a line of its own (`warned`). Codes are "
            f"those of a POST, and:{explained(codes.sentences(codes.Where.ROW))}",
            Content(("application/x-ndjson", "text/csv")),
            headers=[CACHE_CONTROL, CONTENT_DISPOSITION, VARY, CONTENT_ENCODING, LINK],
        )
    },
    faults=[codes.faults.NOT_ALLOWED, codes.faults.REPEATED],
)
async def report_eligibility_file(app: App, request: Request) -> Response:
    """Read the outcome of each row of a file.

    While the file is being loaded, the report has the rows so far. It can be read by the page: then
    `Link` has the address of the next one. A client is sent one whole report at a time (429).
    """
    query = request.parameters
    file = await _find_file(app, request)
    await record_read(app, request, "file.report_read", file.id)
    as_csv = query.get("format") == "csv"
    is_packed = request.accepts_gzip()
    kind = b"text/csv; charset=utf-8" if as_csv else b"application/x-ndjson"
    name = b'attachment; filename="report-%d.%s"' % (file.id, b"csv" if as_csv else b"jsonl")
    headers: tuple[Header, ...] = (NO_STORE, (b"content-disposition", name), VARIES)
    headers += (GZIPPED,) if is_packed else ()
    filter_ = report.ReportFilter(query.get("outcome"), query.get("code"), query.get("external_id"))
    if "page[size]" in query or "page[after]" in query:
        body, after = await app.read_much_in_thread(lambda: _page(app, file, query, filter_))
        if after is not None:
            address = address_with(
                app, request, query | {"page[after]": f"{after.chunk}.{after.line}"}
            )
            headers += ((b"link", f'<{address}>; rel="next"'.encode()),)
        return Response(200, gzip.compress(body, mtime=0) if is_packed else body, headers, kind)
    at_end = app.open_reports.begin(request.caller.client)
    pieces = report.read_report(app.db, file.id, filter_, as_csv=as_csv)
    pieces = gzip_pieces(pieces) if is_packed else pieces
    return Response(200, b"", headers, kind, _in_threads(app, pieces), at_end)


def _page(
    app: App, file: EligibilityFile, query: dict[str, Any], filter_: report.ReportFilter
) -> tuple[bytes, report.ReportCursor | None]:
    cursor = report.ReportCursor(*map(int, query.get("page[after]", "0.0").split(".")))
    size = query.get("page[size]", LINES_PER_PAGE)
    lines, after = report.report_page(app.db, file.id, filter_, after=cursor, size=size)
    if query.get("format") == "csv":
        return report.CSV_HEADER + report.csv_lines(lines), after
    return report.json_lines(lines), after


async def _in_threads(app: App, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is read beside the event loop, and only when the one before it has been sent."""
    while True:
        piece = await app.read_much_in_thread(lambda: next(pieces, None))
        if piece is None:
            return
        yield piece


def _key(request: Request) -> FileKey:
    """The file that the path names. Raises NotFound."""
    plan_id = request.path_id("plan_id")
    file_id = request.path_id("file_id", of="eligibility file")
    return FileKey(file_id, Reach.of(request.account_id), plan_id)


async def _find_file(app: App, request: Request) -> EligibilityFile:
    """The file that the path names. Raises NotFound."""
    key = _key(request)
    return await app.ask(lambda tx: actions.get_file(tx, key))


def _response(app: App, file: EligibilityFile, *, status: int = 200) -> Response:
    """The file in its envelope. 202 stands for a new file, and names its address."""
    address = f"{app.config.base_url}/v2/plans/{file.plan_id}/eligibility-files/{file.id}"
    body = {"links": {"self": address, "report": f"{address}/report"}, "data": present.file(file)}
    return json_response(
        body, *(((b"location", address.encode()),) if status == 202 else ()), status=status
    )
