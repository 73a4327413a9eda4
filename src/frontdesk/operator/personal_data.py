"""A person's data over the operator's interface: shown whole, erased (docs/erasure.md)."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from frontdesk.app import App
from frontdesk.clock import wire_time
from frontdesk.db.races import write_alone
from frontdesk.privacy.erasure import erase_person, get_person
from frontdesk.privacy.erasure_requests import find_waiting, leave_to_worker
from frontdesk.privacy.export import export_person, find_places
from frontdesk.privacy.export_requests import find_request, leave_search_to_worker
from frontdesk.privacy.model import Erasure, ErasureRequest, ExportRequest, Person, PersonalData
from frontdesk.web.request import Request
from frontdesk.web.response import Response
from frontdesk.web.trail import requester_of

SEARCH_SECONDS = 6.0  # of the 10 in which a request is answered


async def export(app: App, request: Request) -> Response:
    """`GET /operator/v1/members/:member_id/export`: all that is kept about a member, by table; or 202 when a worker will find
    where it is named, because the account's reports take too long to search. The audit trail keeps both.

    Raises NotFound.
    """
    member_id, requester = request.path_id("member_id", of="eligible member"), requester_of(app, request)

    def run() -> PersonalData | ExportRequest:
        person = app.db.ask(lambda tx: get_person(tx, member_id))
        asked = app.db.ask(lambda tx: find_request(tx, person))
        if asked is None:
            try:
                places = find_places(app.db, person, go_on=_in_time())
            except _OutOfTime:
                return write_alone(app.db, lambda tx: leave_search_to_worker(tx, person, requester))
        elif asked.places is None:
            return asked
        else:
            places = asked.places
        return export_person(app.db, person, requester, places)

    made = await app.in_thread(run)
    return _left_to_worker(*made[:2]) if isinstance(made, ExportRequest) else _response(made._asdict())


async def erase(app: App, request: Request) -> Response:
    """`DELETE /operator/v1/members/:member_id`: 200 with the fact of the erasure, the same however often it is asked for; or 202
    when a worker will erase the member, because the account's reports take too long to search.

    Raises NotFound, UnderLegalHold, FilesUnfinished.
    """
    member_id, requester = request.path_id("member_id", of="eligible member"), requester_of(app, request)

    def run() -> Erasure | ErasureRequest:
        person = app.db.ask(lambda tx: get_person(tx, member_id))
        if (waiting := app.db.ask(lambda tx: find_waiting(tx, person))) is not None:
            return waiting
        try:
            [erasure] = erase_person(app.db, [person], requester, app.clock, go_on=_in_time())
        except _OutOfTime:
            return write_alone(app.db, lambda tx: leave_to_worker(tx, person, requester))
        return erasure

    made = await app.in_thread(run)
    if isinstance(made, ErasureRequest):
        return _left_to_worker(made.person, made.requester.now)
    return _response(made._asdict() | {"erased_at": wire_time(made.erased_at)})


class _OutOfTime(Exception):
    """The account's reports and the audit trail can't be searched in the time of a request."""


def _in_time() -> Callable[[], None]:
    """Raises _OutOfTime after SEARCH_SECONDS: a search that goes on after the answer would take a writer."""
    until = time.monotonic() + SEARCH_SECONDS

    def go_on() -> None:
        if time.monotonic() > until:
            raise _OutOfTime

    return go_on


def _left_to_worker(person: Person, asked_at: datetime) -> Response:
    return _response(person._asdict() | {"asked_at": wire_time(asked_at)}, status=202)


def _response(content: dict[str, Any], *, status: int = 200) -> Response:
    body = orjson.dumps(content, option=orjson.OPT_UTC_Z)
    return Response(status, body, ((b"cache-control", b"no-store"),))
