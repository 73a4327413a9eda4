"""GET and PATCH of plans (docs/interface.md, Plans)."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from frontdesk import audit, plans
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.plans.changes import CHANGEABLE
from frontdesk.plans.model import Plan
from frontdesk.queues.model import QueueSnapshot
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import requester_of
from frontdesk.web.idempotency import write_once
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import HttpError, Response

_TAG = re.compile(r'"v([0-9]{1,9})(?:\.[0-9a-f]+)?"')

# More are read and rendered in a thread: in the event loop they would hold up other callers.
FEW_PLANS = 50


class Page(NamedTuple):
    """Rendered plans that concurrent callers share: the JSON array, its ETag, and the id after which the next page starts."""

    data: bytes
    tag: bytes
    next_after: int | None


async def list_plans(app: App, request: Request) -> Response:
    """List the account's plans with their queues. Answers every plan in the order of `id`, or one page of them.

    Parameters: external_id page_size page_after queue_interval if_none_match
    200 Plans [ETag Cache-Control]: The plans, by id.
    304 [ETag Cache-Control]: Nothing has changed since the `ETag` was sent.
    Faults: not_allowed repeated
    """
    query = request.parameters
    size, after = query.get("page[size]"), query.get("page[after]", 0)
    external_id, intervals = query.get("external_id"), query.get("queue_interval", False)
    account_id = request.account_id
    key = ("plans", account_id, external_id, size, after, intervals)
    filters: Any = {"external_id": external_id, "after_id": after}

    def render(found: Sequence[Plan], snapshot: QueueSnapshot | None) -> Page:
        next_after = found[size - 1].id if size is not None and len(found) > size else None
        if external_id is not None and found:
            return _render_one(found[0], snapshot, intervals=intervals)
        return _render(found[:size], snapshot, next_after=next_after, intervals=intervals)

    def read_many() -> Page:
        limit = None if size is None else size + 1
        found = app.db.ask(plans.find_plans(account_id, **filters, limit=limit).read)
        return render(found, app.queues.read(app.db, account_id, [plan.id for plan in found[:size]]))

    async def read() -> Page:
        if external_id is not None and (not external_id or "\0" in external_id):
            return _render([], None)
        limit = FEW_PLANS + 1 if size is None else size + 1
        if limit <= FEW_PLANS + 1:
            found = await app.lookups.ask(plans.find_plans(account_id, **filters, limit=limit))
            if len(found) <= FEW_PLANS or size is not None:
                snapshot = await app.queue_snapshot(account_id, [plan.id for plan in found[:size]])
                return app.pages.get(key, (found, snapshot), lambda: render(found, snapshot))
        return await app.read_in_thread(read_many)

    page = await app.shared_reads.get(key, read)
    return _page_response(app, request, page, size=size, intervals=intervals)


async def show_plan(app: App, request: Request) -> Response:
    """Read one plan. Answers the envelope of the list, with one plan.

    Parameters: if_none_match
    200 Plans [ETag Cache-Control]: The plan.
    304 [ETag Cache-Control]: Nothing has changed since the `ETag` was sent.
    """
    plan_id = request.path_id("plan_id")
    account_id = request.account_id
    key = ("plan", account_id, plan_id)

    async def read() -> Page:
        plan = await app.lookups.ask(plans.find_plan(account_id, plan_id))
        snapshot = await app.queue_snapshot(account_id, [plan_id])
        return app.pages.get(key, (plan, snapshot), lambda: _render_one(plan, snapshot))

    page = await app.shared_reads.get(key, read)
    return _page_response(app, request, page)


async def change_plan(app: App, request: Request) -> Response:
    """Change a plan's name, description or external_id. An absent field keeps its value. `If-Match` protects against changes
    since the plan was read.

    Body: PlanPatch
    Parameters: if_match idempotency_key
    200 Plans [ETag Ignored-Fields]: The plan as it is now, without `queue_info`.
    Problems: conflict precondition_failed
    Faults: required wrong_type too_long control_character not_unique read_only unknown_field
    """
    plan_id = request.path_id("plan_id")
    patch = plans.parse_plan_patch(parse_json_object(await request.body()), strict=request.prefers_strict())
    if patch.ignored:
        note_ignored_fields(request, patch.ignored, lambda name: nearest_name(name, CHANGEABLE))
    if_match, account_id = (request.header(b"if-match") or "").strip(), request.account_id
    requester = requester_of(app, request)

    def write(tx: Tx) -> Response:
        # Locked, so that parallel changes follow each other: only a caller with If-Match hears that its copy is stale.
        before = plans.get_plan(tx, account_id, plan_id, lock=True)
        if if_match and not _matches(if_match, before.version):
            raise HttpError("precondition_failed", "The plan has changed since it was read.")
        plan, changed = plans.patch_plan(tx, before, patch)
        if changed:
            audit.record_action(tx, requester, "plan.changed", account_id, plan.id, fields=changed)
        body = {"links": {"self": app.config.base_url + request.target}, "data": [plan.serialize()]}
        return Response(200, orjson.dumps(body), ((b"etag", b'"v%d"' % plan.version),))

    response = await write_once(app, request, write)
    app.db.announce_work()  # a plan that accepts patients again has its batches delivered
    return response


def _matches(if_match: str, version: int) -> bool:
    """Compares the plan's version only: the rest of an ETag follows the queue, which a PATCH does not touch."""
    if if_match == "*":
        return True
    tags = (_TAG.fullmatch(tag.strip()) for tag in if_match.split(","))
    return any(tag is not None and int(tag.group(1)) == version for tag in tags)


def _render(
    found: Sequence[Plan],
    snapshot: QueueSnapshot | None,
    *,
    next_after: int | None = None,
    intervals: bool = False,
) -> Page:
    """A plan has no queue_info while there is no snapshot to read, or when it is newer than the snapshot."""
    bodies = []
    for plan in found:
        body = plan.serialize()
        if snapshot and plan.id in snapshot.queues:
            body["queue_info"] = snapshot.serialize(plan.id)
            if intervals:
                body["queue_interval"] = snapshot.queues[plan.id].serialize_interval()
        bodies.append(body)
    data = orjson.dumps(bodies)
    # links.next depends on plans that are not on the page, so it is a part of what the tag stands for.
    hashed = hashlib.sha256(data if next_after is None else data + b"%d" % next_after)
    return Page(data, b'"%s"' % hashed.hexdigest()[:16].encode(), next_after)


def _render_one(plan: Plan, snapshot: QueueSnapshot | None, *, intervals: bool = False) -> Page:
    """One plan, found by either of its identifiers. Its tag begins with the version, which If-Match compares."""
    data, tag, _ = _render([plan], snapshot, intervals=intervals)
    return Page(data, b'"v%d.' % plan.version + tag[1:], None)


def _page_response(
    app: App, request: Request, page: Page, *, size: int | None = None, intervals: bool = False
) -> Response:
    headers = ((b"etag", page.tag), (b"cache-control", b"private, no-cache"))
    if request.knows(page.tag):
        return Response(304, b"", headers)
    links = {"self": app.config.base_url + request.target}
    if page.next_after is not None:
        query = f"page%5Bsize%5D={size}&page%5Bafter%5D={page.next_after}"
        links["next"] = f"{app.config.base_url}/v2/plans?{query}{'&queue_interval=true' * intervals}"
    return Response(200, b'{"links":%s,"data":%s}' % (orjson.dumps(links), page.data), headers)
