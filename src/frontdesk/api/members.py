"""Stored members and their histories, as their account reads them. Each answer that shows a member is recorded in the audit trail
before it is sent (docs/interface.md, Read members)."""

import hashlib
from datetime import datetime
from typing import Any

import orjson

from frontdesk.api.eligibility_files import enveloped
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.eligibility import reading
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import MemberFilter
from frontdesk.errors import Fault, Invalid
from frontdesk.plans import get_plan
from frontdesk.web.endpoint import record_read
from frontdesk.web.request import Request
from frontdesk.web.response import Response

PER_PAGE = 100


async def show_eligible_member(app: App, request: Request) -> Response:
    """Read a member. Answers the record with every field, whether the member is eligible today (UTC), and how far the invitation
    is. The audit trail records the reading.

    Parameters: if_none_match
    200 EligibilityRecordEnvelope [ETag Cache-Control]: The member.
    304 [ETag Cache-Control]: Nothing has changed since the `ETag` was sent.
    """
    member_id, place, today = _member_id(request), _place(request), _today(app)
    record = await app.ask(lambda tx: reading.get_record(tx, member_id, **place, today=today))
    await record_read(app, request, "member.read", member_id)
    data = orjson.dumps(record)
    tag = b'"%s"' % hashlib.sha256(data).hexdigest()[:16].encode()
    headers = ((b"etag", tag), (b"cache-control", b"private, no-cache"))
    if request.knows(tag):
        return Response(304, b"", headers)
    links = orjson.dumps({"self": app.config.base_url + request.target})
    return Response(200, b'{"links":%s,"data":%s}' % (links, data), headers)


async def list_eligible_members(app: App, request: Request) -> Response:
    """List the members of a plan. Answers a page of them, by id. With `external_id`, `member_id` or `email` it answers the member
    of the plan that has this value, if there is one. With a filter a page may hold few members, or none, although more follow:
    read on while `links.next` is present. The audit trail records the reading.

    Parameters: member_external_id member_member_id member_email member_updated_since member_eligible_on member_page_size
        member_page_after
    200 EligibilityRecords: The members, by id.
    Faults: not_allowed not_a_date repeated
    """
    query, place, today = request.parameters, _place(request), _today(app)
    names, size = _names(query), query.get("page[size]", PER_PAGE)
    since = _time(query, "updated_since", "time in UTC, YYYY-MM-DDThh:mm:ssZ")
    day = _time(query, "eligible_on", "date, YYYY-MM-DD")
    on = None if day is None else day.date().isoformat()
    wanted = MemberFilter(**place, after_id=query.get("page[after]", 0), updated_since=since, eligible_on=on)

    def read(tx: Tx) -> reading.Page:
        get_plan(tx, place["account_id"], place["plan_id"])
        if names:
            return reading.find_records(tx, *names, **place, today=today), None
        return reading.list_records(tx, wanted, size=size, today=today)

    return await _listed(app, request, await app.ask(read), size=size)


async def find_eligible_members(app: App, request: Request) -> Response:
    """Find a member of any plan. Answers the account's member that has this `external_id`, `member_id` or `email`, if there is
    one. The audit trail records the reading.

    Parameters: member_external_id member_member_id member_email
    200 EligibilityRecords: The member, or none.
    Faults: required not_allowed repeated
    """
    names, today, account_id = _names(request.parameters), _today(app), request.account_id
    if names is None:
        rule = "is required; instead it may be member_id or email"
        raise Invalid([Fault("external_id", "required", rule)])
    found = await app.ask(
        lambda tx: reading.find_records(tx, *names, account_id=account_id, plan_id=None, today=today)
    )
    return await _listed(app, request, (found, None))


async def list_eligible_member_history(app: App, request: Request) -> Response:
    """List the changes of a member. Answers a page of them, the oldest first: when, by which client, request or file, and of each
    changed field the value before and after. The audit trail records the reading.

    Parameters: history_page_size history_page_after
    200 EligibilityChanges: The changes, the oldest first.
    Faults: not_allowed repeated
    """
    member_id, place, query = _member_id(request), _place(request), request.parameters
    after_id, size = query.get("page[after]", 0), query.get("page[size]", PER_PAGE)
    page = await app.ask(
        lambda tx: reading.read_history(tx, member_id, **place, after_id=after_id, size=size)
    )
    await record_read(app, request, "member.history_read", member_id)
    data, next_after = page
    return enveloped(app, request, data, size=size, after=next_after)


async def _listed(app: App, request: Request, page: reading.Page, *, size: int = 0) -> Response:
    """The members in their envelope, once the reading of any is recorded."""
    records, next_after = page
    if len(records) == 1:
        await record_read(app, request, "member.read", records[0]["id"])
    elif records:
        await record_read(app, request, "members.read", request.path_id("plan_id"), count=len(records))
    return enveloped(app, request, records, size=size, after=next_after)


def _names(query: dict[str, Any]) -> tuple[str, str] | None:
    """The unique field that the query gives, and its value. Raises Invalid if anything is given with it."""
    name = next((each for each in UNIQUE if each in query), None)
    if name is None:
        return None
    if faults := [
        Fault(each, "not_allowed", f"can't be given with {name}") for each in query if each != name
    ]:
        raise Invalid(faults)
    return name, query[name]


def _time(query: dict[str, Any], name: str, rule: str) -> datetime | None:
    """The time or day of the parameter in whole seconds: JavaScript writes milliseconds. None without it. Raises Invalid for a
    day that does not exist."""
    try:
        return datetime.fromisoformat(query[name]).replace(microsecond=0) if name in query else None
    except ValueError:
        raise Invalid([Fault(name, "not_a_date", f"must be a real {rule}")]) from None


def _member_id(request: Request) -> int:
    return request.path_id("eligibility_id", of="eligible member")


def _place(request: Request) -> dict[str, Any]:
    return {"account_id": request.account_id, "plan_id": request.path_id("plan_id")}


def _today(app: App) -> str:
    return app.clock().date().isoformat()
