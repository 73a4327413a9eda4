"""A person's data over the operator's interface: export and erasure (docs/erasure.md)."""

from typing import Any

from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.interface.operations import Answer, Group
from frontdesk.privacy.erasure import erase_person, export_person, get_person
from frontdesk.reach import EVERY
from frontdesk.text import wire_time
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response, json_response

GROUP = Group("Personal data", "A person's data: export and erasure.")


@GROUP.get(
    "/operator/v1/members/{member_id}/export",
    scope=Scope.OPERATOR,
    answers={200: Answer("The rows of each table.", dict[str, Any])},
)
async def export(app: App, request: Request) -> Response:
    """Export all stored data of a member, by table.

    The audit trail records it.
    """
    member_id = request.path_id("member_id", of="eligible member")
    requester = requester_of(app, request)
    person = await app.ask(lambda tx: get_person(tx, EVERY, member_id))
    exported = await app.in_thread(lambda: export_person(app.db, person, requester))
    return json_response(exported)


@GROUP.delete(
    "/operator/v1/members/{member_id}",
    scope=Scope.OPERATOR,
    answers={200: Answer("The fact of the erasure.", dict[str, Any])},
    problems=[Kind.WRONG_STATE],
)
async def erase(app: App, request: Request) -> Response:
    """Erase a member.

    Erasing a member again answers the fact of the first erasure.
    """
    member_id = request.path_id("member_id", of="eligible member")
    requester = requester_of(app, request)
    person = await app.ask(lambda tx: get_person(tx, EVERY, member_id))
    [made] = await app.in_thread(lambda: erase_person(app.db, [person], requester, app.clock))
    return json_response(made._asdict() | {"erased_at": wire_time(made.erased_at)})
