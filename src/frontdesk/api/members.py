"""Stored members and their histories, as their account reads them. Each answer that shows a member
is recorded in the audit trail before it is sent (docs/interface.md, Read members).
"""

from datetime import datetime
from functools import partial
from typing import Any

import orjson

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.envelope import digest_of, enveloped_page, enveloped_read
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.clock import AccountDay
from frontdesk.db import Tx
from frontdesk.eligibility import reading
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import MemberFilter
from frontdesk.errors import Fault, Invalid
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    ETAG,
    HISTORY_PAGE_AFTER,
    HISTORY_PAGE_SIZE,
    IF_NONE_MATCH,
    MEMBER_DOB,
    MEMBER_ELIGIBLE_ON,
    MEMBER_EMAIL,
    MEMBER_EXTERNAL_ID,
    MEMBER_LAST_NAME,
    MEMBER_MEMBER_ID,
    MEMBER_PAGE_AFTER,
    MEMBER_PAGE_SIZE,
    MEMBER_UPDATED_SINCE,
)
from frontdesk.interface.types import members as types
from frontdesk.plans import find_plan
from frontdesk.web.endpoint import record_read
from frontdesk.web.request import Request
from frontdesk.web.response import Response

GROUP = Group("Members", "Stored members and their histories.")

PER_PAGE = 100
READ_TOGETHER = 100


@GROUP.get(
    Path.MEMBER,
    scope=Scope.ELIGIBILITY_READ,
    parameters=[IF_NONE_MATCH],
    answers={
        200: Answer("The member.", types.EligibilityRecordEnvelope, headers=[ETAG, CACHE_CONTROL]),
        304: Answer(
            "Nothing has changed since the `ETag` was sent.", headers=[ETAG, CACHE_CONTROL]
        ),
    },
)
async def show_eligible_member(app: App, request: Request) -> Response:
    """Read a member.

    Answers the record with every field, whether the member is eligible today, and how far the
    invitation is. The audit trail records the reading.
    """
    member_id = _member_id(request)
    place = _place(request)
    day = app.day_of(request.caller)
    record = await app.ask(lambda tx: reading.get_record(tx, member_id, **place, day=day))
    await record_read(app, request, "member.read", member_id)
    data = orjson.dumps(record)
    return enveloped_read(app, request, data, b'"%s"' % digest_of(data))


@GROUP.get(
    Path.MEMBERS,
    scope=Scope.ELIGIBILITY_READ,
    is_bulk=True,
    parameters=[
        MEMBER_EXTERNAL_ID,
        MEMBER_MEMBER_ID,
        MEMBER_EMAIL,
        MEMBER_UPDATED_SINCE,
        MEMBER_ELIGIBLE_ON,
        MEMBER_PAGE_SIZE,
        MEMBER_PAGE_AFTER,
    ],
    answers={200: Answer("The members, by id.", types.EligibilityRecords)},
    faults=[codes.faults.NOT_ALLOWED, codes.faults.NOT_A_DATE, codes.faults.REPEATED],
)
async def list_eligible_members(app: App, request: Request) -> Response:
    """List the members of a plan.

    Answers a page of them, by id. With `external_id`, `member_id` or `email` it answers the member
    of the plan that has this value, if there is one. With a filter a page may hold few members, or
    none, although more follow: read on while `links.next` is present. The audit trail records the
    reading.
    """
    query = request.parameters
    place = _place(request)
    day = app.day_of(request.caller)
    names = _names(query)
    size = query.get("page[size]", PER_PAGE)
    since = _time(query, "updated_since", "time in UTC, YYYY-MM-DDThh:mm:ssZ")
    eligible_on = _time(query, "eligible_on", "date, YYYY-MM-DD")
    on = None if eligible_on is None else eligible_on.date().isoformat()
    filter_ = MemberFilter(
        **place, after_id=query.get("page[after]", 0), updated_since=since, eligible_on=on
    )

    await app.lookups.ask(find_plan(place["account_id"], place["plan_id"]))
    if names is None:
        page = await _read_in_parts(app, filter_, size=size, day=day)
    else:
        find = partial(reading.find_records, field=names[0], value=names[1], **place, day=day)
        page = await app.ask_much(find), None
    return await _listed(app, request, page, size=size)


async def _read_in_parts(
    app: App, filter_: MemberFilter, *, size: int, day: AccountDay
) -> reading.Page:
    """A page, read a few members at a time: the thread that reads a thousand keeps the
    interpreter's lock for most of 25 ms, and each short request would have to wait for it many
    times.
    """
    time_slice = app.slices.begin()
    records: list[reading.Shown] = []
    after_id: int | None = filter_.after_id
    while after_id is not None and len(records) < size:
        part = filter_._replace(after_id=after_id)
        count = min(size - len(records), READ_TOGETHER)
        found, after_id = await app.ask_much(
            partial(reading.list_records, filter_=part, size=count, day=day)
        )
        records += found
        if len(found) < count:
            break
        await time_slice.pause_if_due()
    return records, after_id


@GROUP.get(
    Path.MEMBERS_OF_ACCOUNT,
    scope=Scope.ELIGIBILITY_READ,
    parameters=[
        MEMBER_EXTERNAL_ID,
        MEMBER_MEMBER_ID,
        MEMBER_EMAIL,
        MEMBER_LAST_NAME,
        MEMBER_DOB,
        MEMBER_PAGE_AFTER,
    ],
    answers={200: Answer("The members, by id.", types.EligibilityRecords)},
    faults=[
        codes.faults.REQUIRED,
        codes.faults.NOT_ALLOWED,
        codes.faults.NOT_A_DATE,
        codes.faults.REPEATED,
    ],
)
async def find_eligible_members(app: App, request: Request) -> Response:
    """Find members of any plan.

    Answers the account's member that has this `external_id`, `member_id` or `email`, if there is
    one; or a page of the members with this `last_name` in any letter case and this `dob`, of 100
    members at most. Such a page may hold few members, or none, although more follow: read on while
    `links.next` is present. The audit trail records the reading.
    """
    query = request.parameters
    names = _names(query)
    day = app.day_of(request.caller)
    account_id = request.account_id
    if names is None:
        person = _person(query)
        after_id = query.get("page[after]", 0)
        search = partial(reading.find_people, account_id=account_id, after_id=after_id, day=day)
        return await _listed(app, request, await app.ask(lambda tx: search(tx, *person)))
    found = await app.ask(
        lambda tx: reading.find_records(tx, *names, account_id=account_id, plan_id=None, day=day)
    )
    return await _listed(app, request, (found, None))


@GROUP.get(
    Path.MEMBER_HISTORY,
    scope=Scope.ELIGIBILITY_READ,
    is_bulk=True,
    parameters=[HISTORY_PAGE_SIZE, HISTORY_PAGE_AFTER],
    answers={200: Answer("The changes, the oldest first.", types.EligibilityChanges)},
    faults=[codes.faults.NOT_ALLOWED, codes.faults.REPEATED],
)
async def list_eligible_member_history(app: App, request: Request) -> Response:
    """List the changes of a member.

    Answers a page of them, the oldest first: when, by which client, request or file, and of each
    changed field the value before and after. The audit trail records the reading.
    """
    member_id = _member_id(request)
    place = _place(request)
    query = request.parameters
    after_id = query.get("page[after]", 0)
    size = query.get("page[size]", PER_PAGE)

    def read(tx: Tx) -> tuple[list[types.EligibilityChange], int | None]:
        entries, next_after = reading.read_history(
            tx, member_id, **place, after_id=after_id, size=size
        )
        return [present.change(entry) for entry in entries], next_after

    data, next_after = await app.ask_much(read)
    await record_read(app, request, "member.history_read", member_id)
    return await enveloped_page(app, request, data, size=size, after=next_after)


async def _listed(app: App, request: Request, page: reading.Page, *, size: int = 0) -> Response:
    """The members in their envelope, once the reading of any is recorded."""
    records, next_after = page
    if len(records) == 1:
        await record_read(app, request, "member.read", records[0]["id"])
    elif records:
        plan_id = request.path_id("plan_id") if "plan_id" in request.path_parameters else None
        await record_read(app, request, "members.read", plan_id, count=len(records))
    return await enveloped_page(app, request, records, size=size, after=next_after)


def _names(query: dict[str, Any]) -> tuple[str, str] | None:
    """The unique field that the query gives, and its value. Raises Invalid if anything is given
    with it.
    """
    name = next((each for each in UNIQUE if each in query), None)
    if name is None:
        return None
    if faults := [
        Fault(each, codes.faults.NOT_ALLOWED, f"can't be given with {name}")
        for each in query
        if each != name
    ]:
        raise Invalid(faults)
    return name, query[name]


def _person(query: dict[str, Any]) -> tuple[str, str]:
    """The last name and the date of birth that the query gives. Raises Invalid unless it gives
    both, and for a day that does not exist.
    """
    if "last_name" not in query and "dob" not in query:
        rule = "is required; instead it may be member_id, email, or last_name with dob"
        raise Invalid([Fault("external_id", codes.faults.REQUIRED, rule)])
    if faults := [
        Fault(name, codes.faults.REQUIRED, f"is required with {other}")
        for name, other in (("last_name", "dob"), ("dob", "last_name"))
        if name not in query
    ]:
        raise Invalid(faults)
    _time(query, "dob", "date, YYYY-MM-DD")
    return query["last_name"], query["dob"]


def _time(query: dict[str, Any], name: str, rule: str) -> datetime | None:
    """The time or day of the parameter in whole seconds: JavaScript writes milliseconds. None
    without it. Raises Invalid for a day that does not exist.
    """
    try:
        return datetime.fromisoformat(query[name]).replace(microsecond=0) if name in query else None
    except ValueError:
        raise Invalid([Fault(name, codes.faults.NOT_A_DATE, f"must be a real {rule}")]) from None


def _member_id(request: Request) -> int:
    return request.path_id("eligibility_id", of="eligible member")


def _place(request: Request) -> dict[str, Any]:
    return {"account_id": request.account_id, "plan_id": request.path_id("plan_id")}
