"""Suggests a mapping for a file that is sent to be looked at: the upload's endpoint with `suggest_mapping` (docs/interface.md,
Eligibility files). Nothing is stored."""

import json
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile

from frontdesk import files
from frontdesk.app import App
from frontdesk.errors import Fault, Invalid
from frontdesk.files.model import Format, NewFile, Unreadable
from frontdesk.plans import get_plan
from frontdesk.web.request import Request
from frontdesk.web.response import Response

# The first thousand rows are in it, of all but the widest files. What follows is read and let go.
SAMPLE_BYTES = 2 * 1024 * 1024
# A workbook tells at its end what is in it, so it is kept whole, in a file once it is larger than the sample.
WORKBOOK_BYTES = 64 * 1024 * 1024
_OF_A_LOAD = ("mode", "dry_run", "mapping", "header_row")


async def suggest_for(
    app: App, request: Request, new: NewFile, start: bytes, rest: AsyncIterator[bytes]
) -> Response:
    """The suggestion for the body, of which the start has been read. Raises NotFound, Invalid, Unreadable."""
    given = request.query(*_OF_A_LOAD)
    rule = "must not be given with suggest_mapping, which loads nothing"
    if faults := [Fault(name, "not_allowed", rule) for name in given]:
        raise Invalid(faults)
    await app.read_in_thread(lambda: app.db.ask(lambda tx: get_plan(tx, new.account_id, new.plan_id)))
    is_workbook = new.format is Format.XLSX or files.detect_content(start, new.encoding).is_workbook
    limit = WORKBOOK_BYTES if is_workbook else SAMPLE_BYTES
    with SpooledTemporaryFile(SAMPLE_BYTES) as kept:
        kept.write(start)
        size = len(start)
        async for data in rest:
            kept.write(data[: max(limit - size, 0)])
            size += len(data)
        if is_workbook and size > limit:
            message = "The workbook has more than 64 MiB. Send a copy with its first 1,000 rows."
            raise Unreadable("too_large", message)
        kept.seek(0)
        suggestion = await app.in_thread(
            lambda: files.suggest_mapping(
                kept,
                today=app.clock().date().isoformat(),
                format=new.format,
                encoding=new.encoding,
                is_cut=size > limit,
                sheet=request.query("sheet").get("sheet"),
            )
        )
    body = {
        "links": {"self": app.config.base_url + request.target},
        "data": files.serialize_suggestion(suggestion),
    }
    return Response(200, json.dumps(body, ensure_ascii=False).encode(), ((b"cache-control", b"no-store"),))
