"""GET and PATCH of plans: what is asked for, and the answer to it; `plan_pages` has the words of the wire."""

import json
import re
from datetime import datetime

from frontdesk import audit
from frontdesk.api.plan_pages import Page, encode, plan_body, render, render_one
from frontdesk.app import App
from frontdesk.audit.model import AuditEntry
from frontdesk.db import Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import Conflict, Fault, Invalid
from frontdesk.plans import (
    change_plan,
    changed_fields,
    get_plan,
    list_plans,
    parse_plan_patch,
    uniqueness_faults,
)
from frontdesk.plans.model import Plan, PlanPatch
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Header, HttpError, Response, name_list

LARGEST_PAGE = 1000
LARGEST_ID = 10**18 - 1
_PAGE_NUMBER = re.compile(r"[0-9]{1,18}")
_TAG = re.compile(r'"v([0-9]{1,9})(?:\.[0-9a-f]+)?"')
# Values that a PATCH may echo but not change; provider_group and queue_info may be echoed in any state.
_ECHOED = ("id", "type", "active", "created_at")


async def list_(app: App, request: Request) -> Response:
    """`GET /v2/plans`: all of the account's plans by id, with their queues."""
    asked = request.query("external_id", "page[size]", "page[after]")
    size, after = _page(asked)
    external_id = asked.get("external_id")
    account_id = request.caller.account_id

    def read() -> Page:
        if external_id is not None and (not external_id or "\0" in external_id):
            return render([], None)
        limit = None if size is None else size + 1
        plans = app.db.ask(
            lambda tx: list_plans(tx, account_id, external_id=external_id, after_id=after, limit=limit)
        )
        more = size is not None and len(plans) > size
        plans = plans[:size]
        snapshot = app.queues.read(app.db, account_id, [plan.id for plan in plans])
        if external_id is not None and plans:
            return render_one(plans[0], snapshot)
        return render(plans, snapshot, next_after=plans[-1].id if more else None)

    page = await app.shared_reads.get(("plans", account_id, external_id, size, after), read)
    links = {"self": app.config.base_url + request.target}
    if page.next_after is not None:
        links["next"] = f"{app.config.base_url}/v2/plans?page[size]={size}&page[after]={page.next_after}"
    return _page_response(request, page, links=links)


async def show(app: App, request: Request) -> Response:
    """`GET /v2/plans/:plan_id`: the same envelope with one plan. Raises NotFound."""
    plan_id = request.path_id("plan_id")
    account_id = request.caller.account_id

    def read() -> Page:
        plan = app.db.ask(lambda tx: get_plan(tx, account_id, plan_id))
        return render_one(plan, app.queues.read(app.db, account_id, [plan.id]))

    page = await app.shared_reads.get(("plan", account_id, plan_id), read)
    return _page_response(request, page, links={"self": app.config.base_url + request.target})


async def change(app: App, request: Request) -> Response:
    """`PATCH /v2/plans/:plan_id`: name, description, external_id; absent keeps. Raises NotFound, Invalid, Conflict."""
    plan_id = request.path_id("plan_id")
    patch = parse_plan_patch(parse_json_object(await request.body()), strict=request.prefers_strict())
    if_match = request.header(b"if-match")

    def write(tx: Tx) -> Plan:
        # Locked, so that parallel changes follow each other: only who sent If-Match can be told that a copy is stale.
        before = get_plan(tx, request.caller.account_id, plan_id, lock=True)
        if if_match is not None and not _matches(if_match, before.version):
            raise HttpError("precondition_failed", "The plan has changed since it was read.")
        return _patched(tx, request=request, before=before, patch=patch, now=app.clock())

    try:
        plan = await app.in_thread(lambda: write_alone(app.db, write))
    except Conflict:
        if if_match is None:
            raise
        raise HttpError("precondition_failed", "The plan has changed since it was read.") from None
    body = {"links": {"self": app.config.base_url + request.target}, "data": [plan_body(plan)]}
    headers: tuple[Header, ...] = ((b"etag", b'"v%d"' % plan.version),)
    if patch.ignored:
        headers += ((b"ignored-fields", name_list(patch.ignored)),)
    return Response(200, encode(body).encode(), headers)


def _patched(tx: Tx, *, request: Request, before: Plan, patch: PlanPatch, now: datetime) -> Plan:
    """The plan with the patch applied and an audit entry, if it changes anything. Raises Invalid, Conflict."""
    caller = request.caller
    repeated = uniqueness_faults(tx, before, patch.changes)
    faults = [*patch.faults, *repeated, *_read_only_faults(before, patch.echoed)]
    if faults:
        raise Invalid(faults)
    plan = change_plan(tx, caller.account_id, before.id, changes=patch.changes)
    if plan.version != before.version:
        entry = AuditEntry(
            action="plan.changed",
            actor=caller.client_id,
            request_id=request.request_id,
            account_id=caller.account_id,
            subject_id=before.id,
            detail={"fields": changed_fields(before, plan)},
        )
        audit.record(tx, [entry], now=now)
    return plan


def _page_response(request: Request, page: Page, *, links: dict[str, str]) -> Response:
    headers = ((b"etag", page.tag), (b"cache-control", b"private, no-cache"))
    known = request.header(b"if-none-match")
    if known is not None and (known.strip() == "*" or page.tag.decode() in known):
        return Response(304, b"", headers)
    return Response(200, b'{"links":%s,"data":%s}' % (json.dumps(links).encode(), page.data), headers)


def _page(asked: dict[str, str]) -> tuple[int | None, int]:
    """Size and start of the page. Raises Invalid for what is not a number in range."""
    faults = []
    for name, largest in (("page[size]", LARGEST_PAGE), ("page[after]", LARGEST_ID)):
        text = asked.get(name)
        if text is not None and (
            not _PAGE_NUMBER.fullmatch(text) or not (name != "page[size]" or 1 <= int(text) <= largest)
        ):
            faults.append(Fault(name, "not_allowed", f"must be a whole number up to {largest}"))
    if faults:
        raise Invalid(faults)
    size = asked.get("page[size]")
    return (None if size is None else int(size)), int(asked.get("page[after]", 0))


def _matches(if_match: str, version: int) -> bool:
    """Only the plan's version counts: the rest of a read's ETag follows the queue, which a PATCH does not touch."""
    if if_match.strip() == "*":
        return True
    tags = (_TAG.fullmatch(tag.strip()) for tag in if_match.split(","))
    return any(tag is not None and int(tag.group(1)) == version for tag in tags)


def _read_only_faults(plan: Plan, echoed: dict[str, object]) -> list[Fault]:
    body = plan_body(plan)
    return [
        Fault(name, "read_only", "can't be changed here; leave it out or echo it")
        for name in _ECHOED
        if name in echoed and (type(echoed[name]), echoed[name]) != (type(body[name]), body[name])
    ]
