"""The report of an eligibility file: whole, some of its lines, or a page of them (docs/files.md, Read the report)."""

import gzip
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlencode

from frontdesk import files
from frontdesk.api.eligibility_files import find_file
from frontdesk.api.parameters import check_query
from frontdesk.app import App
from frontdesk.files.model import EligibilityFile
from frontdesk.files.report import CSV_HEADER, ReportFilter, ReportPlace, csv_lines, json_lines, report_page
from frontdesk.web.compression import GZIPPED, VARIES, accepts_gzip, gzip_pieces
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response
from frontdesk.web.trail import record_read

LINES_PER_PAGE = 1000


async def report_eligibility_file(app: App, request: Request) -> Response:
    """Read the outcome of each row of a file. While the file is being loaded, the report has the rows so far. It can be read
    by the page: then `Link` has the address of the next one. A client is sent one whole report at a time (429)."""
    query = request.query("format", "outcome", "code", "external_id", "page[size]", "page[after]")
    checked = ("format", "outcome", "code", "external_id", "page_size", "page_after")
    check_query(query, *(f"report_{name}" for name in checked))
    file = await find_file(app, request)
    await record_read(app, request, "file.report_read", file.id)
    as_csv = query.get("format") == "csv"
    headers = _headers(file, as_csv=as_csv)
    kind = b"text/csv; charset=utf-8" if as_csv else b"application/x-ndjson"
    is_packed = accepts_gzip(request)
    if is_packed:
        headers += (GZIPPED,)
    if "page[size]" in query or "page[after]" in query:
        body, next_place = await app.read_in_thread(lambda: _page(app, file, query))
        if next_place is not None:
            headers += (_link(app, request, query, next_place),)
        return Response(200, gzip.compress(body, mtime=0) if is_packed else body, headers, kind)
    at_end = app.open_reports.begin(request.caller.client)
    wanted = _filter(query)
    pieces = (files.report_csv if as_csv else files.report_json_lines)(app.db, file.id, wanted)
    pieces = gzip_pieces(pieces) if is_packed else pieces
    return Response(200, b"", headers, kind, _in_threads(app, pieces), at_end)


def _page(app: App, file: EligibilityFile, query: dict[str, str]) -> tuple[bytes, ReportPlace | None]:
    place = ReportPlace(*map(int, query.get("page[after]", "0.0").split(".")))
    size = int(query.get("page[size]", LINES_PER_PAGE))
    wanted = _filter(query)
    lines, next_place = report_page(app.db, file.id, wanted, after=place, size=size)
    body = CSV_HEADER + csv_lines(lines) if query.get("format") == "csv" else json_lines(lines)
    return body, next_place


def _filter(query: dict[str, str]) -> ReportFilter:
    return ReportFilter(query.get("outcome"), query.get("code"), query.get("external_id"))


def _link(app: App, request: Request, query: dict[str, str], place: ReportPlace) -> Header:
    more = {**query, "page[after]": f"{place.chunk}.{place.line}"}
    address = f"{app.config.base_url}{request.path}?{urlencode(more)}"
    return (b"link", f'<{address}>; rel="next"'.encode())


def _headers(file: EligibilityFile, *, as_csv: bool) -> tuple[Header, ...]:
    name = b'attachment; filename="report-%d.%s"' % (file.id, b"csv" if as_csv else b"jsonl")
    return ((b"cache-control", b"no-store"), (b"content-disposition", name), VARIES)


async def _in_threads(app: App, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is read beside the event loop, and only when the one before it has been sent."""
    while True:
        piece = await app.read_in_thread(lambda: next(pieces, None))
        if piece is None:
            return
        yield piece
