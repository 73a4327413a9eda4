"""GET and PATCH of plans (docs/interface.md, Plans)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from frontdesk import audit, codes, plans
from frontdesk.access.model import Scope
from frontdesk.api.envelope import digest_of, enveloped_read, links_of
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    ETAG,
    EXTERNAL_ID,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    IGNORED_FIELDS,
    NEWCOMER_CLASS,
    PAGE_AFTER,
    PAGE_SIZE,
    QUEUE_INTERVAL,
)
from frontdesk.interface.types import plans as types
from frontdesk.plans.changes import CHANGEABLE
from frontdesk.plans.model import Plan
from frontdesk.queues.model import QueueSnapshot
from frontdesk.reach import Reach
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import requester_of
from frontdesk.web.idempotency import write_in_turn
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import HttpError, Response

GROUP = Group("Plans", "Plans and their queues.")

# A proxy that compresses answers makes the tags weak.
_TAG = re.compile(r'(?:W/)?"v([0-9]{1,9})(?:\.[0-9a-f]+)?"')

# More are read and rendered in a thread: in the event loop they would hold up other callers.
FEW_PLANS = 50


class _Shown(NamedTuple):
    """What is shown of the plans' queues."""

    with_interval: bool = False
    patient_class: str | None = None


class Page(NamedTuple):
    """Rendered plans that concurrent callers share: the JSON array, its ETag, and the id after
    which the next page starts.
    """

    data: bytes
    tag: bytes
    next_after: int | None


@GROUP.get(
    Path.PLANS,
    scope=Scope.PLANS_READ,
    parameters=[EXTERNAL_ID, PAGE_SIZE, PAGE_AFTER, QUEUE_INTERVAL, NEWCOMER_CLASS, IF_NONE_MATCH],
    answers={
        200: Answer("The plans, by id.", types.Plans, headers=[ETAG, CACHE_CONTROL]),
        304: Answer(
            "Nothing has changed since the `ETag` was sent.", headers=[ETAG, CACHE_CONTROL]
        ),
    },
    faults=[codes.faults.NOT_ALLOWED, codes.faults.REPEATED],
)
async def list_plans(app: App, request: Request) -> Response:
    """List the account's plans with their queues.

    Answers every plan in the order of `id`, or one page of them. With `class` the estimates are for
    patients of this class; for a plan that had none of it in the last hours, for any patient.
    """
    query = request.parameters
    size = query.get("page[size]")
    after = query.get("page[after]", 0)
    external_id = query.get("external_id")
    shown = _shown(query)
    account_id = request.account_id
    key = ("plans", account_id, external_id, size, after, shown)
    filters: Any = {"external_id": external_id, "after_id": after}

    def render(found: Sequence[Plan], snapshot: QueueSnapshot | None) -> Page:
        next_after = found[size - 1].id if size is not None and len(found) > size else None
        if external_id is not None and found:
            return _render_one(found[0], snapshot, shown)
        return _render(found[:size], snapshot, shown, next_after=next_after)

    def read_many() -> Page:
        limit = None if size is None else size + 1
        found = app.db.ask(plans.find_plans(account_id, **filters, limit=limit).read)
        return render(
            found, app.queues.read(app.db, account_id, [plan.id for plan in found[:size]])
        )

    async def read() -> Page:
        if external_id is not None and (not external_id or "\0" in external_id):
            return _render([], None, shown)
        limit = FEW_PLANS + 1 if size is None else size + 1
        if limit <= FEW_PLANS + 1:
            found = await app.lookups.ask(plans.find_plans(account_id, **filters, limit=limit))
            if len(found) <= FEW_PLANS or size is not None:
                snapshot = await app.queue_snapshot(account_id, [plan.id for plan in found[:size]])
                return app.pages.get(key, (found, snapshot), lambda: render(found, snapshot))
        return await app.read_in_thread(read_many)

    page = await app.shared_reads.get(key, read)
    return enveloped_read(app, request, page.data, page.tag, size=size or 0, after=page.next_after)


@GROUP.get(
    Path.PLAN,
    scope=Scope.PLANS_READ,
    parameters=[QUEUE_INTERVAL, NEWCOMER_CLASS, IF_NONE_MATCH],
    answers={
        200: Answer("The plan.", types.Plans, headers=[ETAG, CACHE_CONTROL]),
        304: Answer(
            "Nothing has changed since the `ETag` was sent.", headers=[ETAG, CACHE_CONTROL]
        ),
    },
)
async def show_plan(app: App, request: Request) -> Response:
    """Read one plan.

    Answers the envelope of the list, with one plan.
    """
    plan_id = request.path_id("plan_id")
    account_id = request.account_id
    shown = _shown(request.parameters)
    key = ("plan", account_id, plan_id, shown)

    async def read() -> Page:
        plan = await app.lookups.ask(plans.find_plan(account_id, plan_id))
        snapshot = await app.queue_snapshot(account_id, [plan_id])
        return app.pages.get(key, (plan, snapshot), lambda: _render_one(plan, snapshot, shown))

    page = await app.shared_reads.get(key, read)
    return enveloped_read(app, request, page.data, page.tag)


@GROUP.patch(
    Path.PLAN,
    scope=Scope.PLANS_WRITE,
    body=types.PlanPatchBody,
    parameters=[IF_MATCH, IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The plan as it is now, without `queue_info`.",
            types.Plans,
            headers=[ETAG, IGNORED_FIELDS],
        )
    },
    problems=[Kind.CONFLICT, Kind.PRECONDITION_FAILED],
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.TOO_LONG,
        codes.faults.CONTROL_CHARACTER,
        codes.faults.NOT_UNIQUE,
        codes.faults.READ_ONLY,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def change_plan(app: App, request: Request) -> Response:
    """Change a plan's name, description or external_id.

    An absent field keeps its value. `If-Match` protects against changes since the plan was read.
    """
    plan_id = request.path_id("plan_id")
    patch = plans.parse_plan_patch(
        parse_json_object(await request.body()), strict=request.prefers_strict()
    )
    if patch.ignored:
        note_ignored_fields(request, patch.ignored, lambda name: nearest_name(name, CHANGEABLE))
    if_match = (request.header(b"if-match") or "").strip()
    account_id = request.account_id
    requester = requester_of(app, request)

    def write(tx: Tx) -> Response:
        # Locked, so that parallel changes follow each other: only a caller with If-Match hears that
        # its copy is stale.
        before = plans.get_plan(tx, Reach.of(account_id), plan_id, lock=True)
        if if_match and not _matches(if_match, before.version):
            raise HttpError(Kind.PRECONDITION_FAILED, "The plan has changed since it was read.")
        plan, changed = plans.patch_plan(tx, before, patch)
        if changed:
            audit.record_action(tx, requester, "plan.changed", account_id, plan.id, fields=changed)
        body = {"links": links_of(app, request), "data": [present.plan(plan)]}
        return Response(200, orjson.dumps(body), ((b"etag", b'"v%d"' % plan.version),))

    response = await write_in_turn(app, request, write)
    app.db.announce_work()  # a plan that accepts patients again has its batches delivered
    return response


def _shown(query: Mapping[str, Any]) -> _Shown:
    """An estimate for a class is always shown with the class that it is for."""
    patient_class = query.get("class")
    is_asked = query.get("queue_interval", False)
    return _Shown(is_asked or patient_class is not None, patient_class)


def _matches(if_match: str, version: int) -> bool:
    """Compares the plan's version only: the rest of an ETag follows the queue, which a PATCH does
    not touch.
    """
    if if_match == "*":
        return True
    tags = (_TAG.fullmatch(tag.strip()) for tag in if_match.split(","))
    return any(tag is not None and int(tag.group(1)) == version for tag in tags)


def _render(
    found: Sequence[Plan],
    snapshot: QueueSnapshot | None,
    shown: _Shown,
    *,
    next_after: int | None = None,
) -> Page:
    """The plans as JSON. One has no queue while there is no snapshot to read."""
    bodies = [present.plan_with_queue(plan, snapshot, **shown._asdict()) for plan in found]
    data = orjson.dumps(bodies)
    return Page(data, b'"%s"' % digest_of(data, after=next_after), next_after)


def _render_one(plan: Plan, snapshot: QueueSnapshot | None, shown: _Shown) -> Page:
    """One plan, found by either of its identifiers. Its tag begins with the version, which If-Match
    compares.
    """
    data, tag, _ = _render([plan], snapshot, shown)
    return Page(data, b'"v%d.' % plan.version + tag[1:], None)
