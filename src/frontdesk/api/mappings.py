"""Mappings of eligibility files: how the files of an account name things (docs/files.md, Mappings)."""

import json
from typing import Any

from frontdesk import files
from frontdesk.api.parameters import check_query
from frontdesk.app import App
from frontdesk.db.races import write_alone
from frontdesk.files.model import MappingName, StoredMapping
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response
from frontdesk.web.trail import requester_of

_NO_STORE: Header = (b"cache-control", b"no-store")


async def list_eligibility_mappings(app: App, request: Request) -> Response:
    """List the account's mappings. Answers all of them, by name."""
    account_id = request.account_id
    found = await app.read_in_thread(lambda: app.db.ask(lambda tx: files.list_mappings(tx, account_id)))
    return _response(app, request, [files.serialize_mapping(each) for each in found])


async def show_eligibility_mapping(app: App, request: Request) -> Response:
    """Read a mapping. Answers it as it was sent."""
    account_id, name = request.account_id, request.path_parameters["mapping_name"]
    found = await app.read_in_thread(lambda: app.db.ask(lambda tx: files.get_mapping(tx, account_id, name)))
    return _response(app, request, files.serialize_mapping(found))


async def save_eligibility_mapping(app: App, request: Request) -> Response:
    """Store a mapping, or replace it. It counts for the files that come from now on; files that came before keep the one that
    they had. Sending it again is safe. An account has 50 mappings at most."""
    query = request.query("default")
    check_query(query, "mapping_default")
    default = query["default"] == "true" if "default" in query else None
    key, requester = _key(request), requester_of(app, request)
    content: dict[str, Any] = parse_json_object(await request.body())

    def save() -> tuple[bool, StoredMapping]:
        return write_alone(
            app.db,
            lambda tx: (
                files.save_mapping(tx, key, content, requester, default=default),
                files.get_mapping(tx, *key),
            ),
        )

    is_new, saved = await app.in_thread(save)
    return _response(app, request, files.serialize_mapping(saved), status=201 if is_new else 200)


async def delete_eligibility_mapping(app: App, request: Request) -> Response:
    """Delete a mapping. Files that came before keep their copy of it."""
    key, requester = _key(request), requester_of(app, request)
    await app.in_thread(lambda: write_alone(app.db, lambda tx: files.delete_mapping(tx, key, requester)))
    return Response(204, b"", (_NO_STORE,))


def _key(request: Request) -> MappingName:
    return MappingName(request.account_id, request.path_parameters["mapping_name"])


def _response(app: App, request: Request, data: object, *, status: int = 200) -> Response:
    body = {"links": {"self": app.config.base_url + request.target}, "data": data}
    return Response(status, json.dumps(body, ensure_ascii=False).encode(), (_NO_STORE,))
