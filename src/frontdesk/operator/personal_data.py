"""A person's data over the operator's interface: export and erasure (docs/erasure.md)."""

from frontdesk.app import App
from frontdesk.privacy.erasure import erase_person, export_person, get_person
from frontdesk.text import wire_time
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response, json_response


async def export(app: App, request: Request) -> Response:
    """`GET /operator/v1/members/:member_id/export`: all stored data of a member, by table. Recorded in the audit trail.

    Raises NotFound.
    """
    member_id, requester = request.path_id("member_id", of="eligible member"), requester_of(app, request)
    person = await app.ask(lambda tx: get_person(tx, member_id))
    kept = await app.in_thread(lambda: export_person(app.db, person, requester))
    return json_response(kept)


async def erase(app: App, request: Request) -> Response:
    """`DELETE /operator/v1/members/:member_id`: the fact of the erasure; idempotent.

    Raises NotFound, UnderLegalHold, FilesUnfinished.
    """
    member_id, requester = request.path_id("member_id", of="eligible member"), requester_of(app, request)
    person = await app.ask(lambda tx: get_person(tx, member_id))
    [made] = await app.in_thread(lambda: erase_person(app.db, [person], requester, app.clock))
    return json_response(made._asdict() | {"erased_at": wire_time(made.erased_at)})
