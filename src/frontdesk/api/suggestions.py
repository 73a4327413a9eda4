"""Suggests a mapping for a file that is sent to be looked at: the upload's endpoint with `suggest_mapping` (docs/interface.md,
Eligibility files). Nothing is stored."""

import json
from collections.abc import AsyncIterator
from tempfile import TemporaryFile
from typing import IO

from frontdesk import files
from frontdesk.app import App
from frontdesk.errors import Fault, Invalid
from frontdesk.files.model import Format, NewFile, Unreadable
from frontdesk.plans import get_plan
from frontdesk.web.request import Request
from frontdesk.web.response import Response

# The first thousand rows are in it, of all but the widest files. What follows is read and let go.
SAMPLE_BYTES = 2 * 1024 * 1024
# A workbook tells at its end what is in it, so it is kept whole.
WORKBOOK_BYTES = 64 * 1024 * 1024
_OF_A_LOAD = ("mode", "dry_run", "mapping", "header_row")


async def suggest_for(
    app: App, request: Request, new: NewFile, start: bytes, rest: AsyncIterator[bytes]
) -> Response:
    """The suggestion for the body, of which the start has been read. Raises NotFound, Invalid, Unreadable; StillBusy
    while another one is being made for the account."""
    given = request.query(*_OF_A_LOAD)
    rule = "must not be given with suggest_mapping, which loads nothing"
    if faults := [Fault(name, "not_allowed", rule) for name in given]:
        raise Invalid(faults)
    await app.read_in_thread(lambda: app.db.ask(lambda tx: get_plan(tx, new.account_id, new.plan_id)))
    is_workbook = new.format is Format.XLSX or files.detect_content(start, new.encoding).is_workbook
    limit = WORKBOOK_BYTES if is_workbook else SAMPLE_BYTES
    options = {
        "today": app.clock().date().isoformat(),
        "format": new.format,
        "encoding": new.encoding,
        "sheet": request.query("sheet").get("sheet"),
    }
    with TemporaryFile() as kept:
        size = await _keep(kept, start, rest, limit)
        if is_workbook and size > limit:
            message = "The workbook has more than 64 MiB. Send a copy with its first 1,000 rows."
            raise Unreadable("too_large", message)
        at_end = app.suggestions.begin(new.account_id)
        data = await app.compute(lambda: files.suggest_apart(kept, is_cut=size > limit, **options), at_end)
    body = {"links": {"self": app.config.base_url + request.target}, "data": data}
    return Response(200, json.dumps(body, ensure_ascii=False).encode(), ((b"cache-control", b"no-store"),))


async def _keep(kept: IO[bytes], start: bytes, rest: AsyncIterator[bytes], limit: int) -> int:
    """Write up to `limit` bytes of the body to the file, which is then read from its beginning. Returns the body's size."""
    kept.write(start)
    size = len(start)
    async for data in rest:
        kept.write(data[: max(limit - size, 0)])
        size += len(data)
    kept.seek(0)
    return size
