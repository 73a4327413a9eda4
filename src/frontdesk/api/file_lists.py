"""Lists of eligibility files: of a plan, of the account (docs/interface.md, Eligibility files)."""

import json
from urllib.parse import urlencode

from frontdesk import files
from frontdesk.api.parameters import check_query
from frontdesk.app import App
from frontdesk.files.model import FileFilter, FileState
from frontdesk.web.request import Request
from frontdesk.web.response import Response

FILES_PER_PAGE = 100


async def list_eligibility_files(app: App, request: Request) -> Response:
    """List the files of the account. Answers a page of them, the newest first."""
    return await _list(app, request, None)


async def list_eligibility_files_of_plan(app: App, request: Request) -> Response:
    """List the files of a plan. Answers a page of them, the newest first."""
    return await _list(app, request, request.path_id("plan_id"))


async def _list(app: App, request: Request, plan_id: int | None) -> Response:
    query = request.query("state", "sha256", "page[size]", "page[after]")
    check_query(query, "file_state", "file_sha256", "file_page_size", "file_page_after")
    size, after = int(query.get("page[size]", FILES_PER_PAGE)), query.get("page[after]")
    wanted = FileFilter(
        request.account_id,
        size + 1,
        plan_id,
        state=FileState(query["state"]) if "state" in query else None,
        sha256=query.get("sha256"),
        before_id=None if after is None else int(after),
    )
    found = await app.read_in_thread(lambda: app.db.ask(lambda tx: files.find_files(tx, wanted)))
    links = {"self": app.config.base_url + request.target}
    if len(found) > size:
        more = {**query, "page[size]": str(size), "page[after]": str(found[size - 1].id)}
        links["next"] = f"{app.config.base_url}{request.path}?{urlencode(more)}"
    body = {"links": links, "data": [files.serialize_file(file) for file in found[:size]]}
    return Response(200, json.dumps(body, ensure_ascii=False).encode(), ((b"cache-control", b"no-store"),))
