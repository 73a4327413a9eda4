"""GET and PATCH of plans (docs/interface.md, Plans)."""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from frontdesk import audit
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
from frontdesk.queues.model import QueueSnapshot
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Header, HttpError, Response, name_list

LARGEST_PAGE = 1000
LARGEST_ID = 10**18 - 1
_PAGING = (("page[size]", 1, LARGEST_PAGE), ("page[after]", 0, LARGEST_ID))
_NUMBER = re.compile(r"[0-9]{1,18}")
_TAG = re.compile(r'"v([0-9]{1,9})(?:\.[0-9a-f]+)?"')
# A PATCH may send these with the value they have. It may send provider_group and queue_info with any value.
_ECHOED = ("id", "type", "active", "created_at")
_STALE = "The plan has changed since it was read."

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Page(NamedTuple):
    """Rendered plans that concurrent callers share: the JSON array, its ETag, and the id after which the next page starts."""

    data: bytes
    tag: bytes
    next_after: int | None = None


async def list_(app: App, request: Request) -> Response:
    """`GET /v2/plans`: all of the account's plans by id, with their queues."""
    query = request.query("external_id", "page[size]", "page[after]")
    size, after = _paging(query)
    external_id = query.get("external_id")
    account_id = request.caller.account_id

    def read() -> Page:
        if external_id is not None and (not external_id or "\0" in external_id):
            return _render([], None)
        limit = None if size is None else size + 1
        plans = app.db.ask(
            lambda tx: list_plans(tx, account_id, external_id=external_id, after_id=after, limit=limit)
        )
        more = size is not None and len(plans) > size
        plans = plans[:size]
        snapshot = app.queues.read(app.db, account_id, [plan.id for plan in plans])
        if external_id is not None and plans:
            return _render_one(plans[0], snapshot)
        return _render(plans, snapshot, next_after=plans[-1].id if more else None)

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
        return _render_one(plan, app.queues.read(app.db, account_id, [plan.id]))

    page = await app.shared_reads.get(("plan", account_id, plan_id), read)
    return _page_response(request, page, links={"self": app.config.base_url + request.target})


async def change(app: App, request: Request) -> Response:
    """`PATCH /v2/plans/:plan_id`: changes name, description, external_id. Raises NotFound, Invalid, Conflict, HttpError."""
    plan_id = request.path_id("plan_id")
    patch = parse_plan_patch(parse_json_object(await request.body()), strict=request.prefers_strict())
    if_match = request.header(b"if-match")

    def write(tx: Tx) -> Plan:
        # Locked, so that parallel changes follow each other: only a caller with If-Match hears that its copy is stale.
        before = get_plan(tx, request.caller.account_id, plan_id, lock=True)
        if if_match is not None and not _matches(if_match, before.version):
            raise HttpError("precondition_failed", _STALE)
        return _apply(tx, request=request, before=before, patch=patch, now=app.clock())

    try:
        plan = await app.in_thread(lambda: write_alone(app.db, write))
    except Conflict:
        if if_match is None:
            raise
        raise HttpError("precondition_failed", _STALE) from None
    body = {"links": {"self": app.config.base_url + request.target}, "data": [plan.serialize()]}
    headers: tuple[Header, ...] = ((b"etag", b'"v%d"' % plan.version),)
    if patch.ignored:
        headers += ((b"ignored-fields", name_list(patch.ignored)),)
    return Response(200, _encode(body).encode(), headers)


def _apply(tx: Tx, *, request: Request, before: Plan, patch: PlanPatch, now: datetime) -> Plan:
    """The plan with the patch applied, and an audit entry if it changes anything. Raises Invalid, Conflict."""
    caller = request.caller
    faults = [
        *patch.faults,
        *uniqueness_faults(tx, before, patch.changes),
        *_read_only_faults(before, patch.echoed),
    ]
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


def _read_only_faults(plan: Plan, echoed: dict[str, object]) -> list[Fault]:
    body = plan.serialize()
    return [
        Fault(name, "read_only", "can't be changed here; leave it out or echo it")
        for name in _ECHOED
        if name in echoed and (type(echoed[name]), echoed[name]) != (type(body[name]), body[name])
    ]


def _matches(if_match: str, version: int) -> bool:
    """Compares the plan's version only: the rest of an ETag follows the queue, which a PATCH does not touch."""
    if if_match.strip() == "*":
        return True
    tags = (_TAG.fullmatch(tag.strip()) for tag in if_match.split(","))
    return any(tag is not None and int(tag.group(1)) == version for tag in tags)


def _paging(query: dict[str, str]) -> tuple[int | None, int]:
    """Size and start of the page. Raises Invalid for values that are no number in range."""
    faults = [
        Fault(name, "not_allowed", f"must be a whole number up to {most}")
        for name, least, most in _PAGING
        if name in query and not (_NUMBER.fullmatch(query[name]) and least <= int(query[name]) <= most)
    ]
    if faults:
        raise Invalid(faults)
    size = query.get("page[size]")
    return (None if size is None else int(size)), int(query.get("page[after]", 0))


def _render(plans: Sequence[Plan], snapshot: QueueSnapshot | None, *, next_after: int | None = None) -> Page:
    """A plan has no queue_info while there is no snapshot to read, or when it is newer than the snapshot."""
    bodies = [
        plan.serialize()
        | ({"queue_info": snapshot.serialize(plan.id)} if snapshot and plan.id in snapshot.queues else {})
        for plan in plans
    ]
    data = _encode(bodies).encode()
    # links.next depends on plans that are not on the page, so it is a part of what the tag stands for.
    hashed = hashlib.sha256(data if next_after is None else data + b"%d" % next_after)
    return Page(data, b'"%s"' % hashed.hexdigest()[:16].encode(), next_after)


def _render_one(plan: Plan, snapshot: QueueSnapshot | None) -> Page:
    """One plan, found by either of its identifiers. Its tag begins with the version, which If-Match compares."""
    page = _render([plan], snapshot)
    return Page(page.data, b'"v%d.' % plan.version + page.tag[1:])


def _page_response(request: Request, page: Page, *, links: dict[str, str]) -> Response:
    headers = ((b"etag", page.tag), (b"cache-control", b"private, no-cache"))
    known = request.header(b"if-none-match")
    if known is not None and (known.strip() == "*" or page.tag.decode() in known):
        return Response(304, b"", headers)
    return Response(200, b'{"links":%s,"data":%s}' % (json.dumps(links).encode(), page.data), headers)
