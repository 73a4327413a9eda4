"""GET and PATCH of plans. The wire's `active` and `queue_info.is_active` are named here, and only here."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontdesk import audit
from frontdesk.app import App
from frontdesk.clock import wire_time
from frontdesk.db import Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import Conflict, Fault, Invalid
from frontdesk.plans import (
    Plan,
    PlanPatch,
    change_plan,
    changed_fields,
    find_taken,
    get_plan,
    list_plans,
    parse_plan_patch,
)
from frontdesk.queues import Snapshot
from frontdesk.web.exchange import Answer, Exchange, Header, Refused, name_list
from frontdesk.web.json_body import parse_json_object

LARGEST_PAGE = 1000
LARGEST_ID = 10**18 - 1
_PAGE_NUMBER = re.compile(r"[0-9]{1,18}")
_TAG = re.compile(r'"v([0-9]{1,9})(?:\.[0-9a-f]+)?"')
# Values that a PATCH may echo but not change; provider_group and queue_info may be echoed in any state.
_ECHOED = ("id", "type", "active", "created_at")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Page:
    """Rendered plans that concurrent callers share: the JSON array, its ETag, and where the next page starts."""

    data: bytes
    tag: bytes
    next_after: int | None


async def list_(app: App, exchange: Exchange) -> Answer:
    """`GET /v2/plans`: all of the account's plans by id, with their queues."""
    asked = exchange.query("external_id", "page[size]", "page[after]")
    size, after = _page(asked)
    external_id = asked.get("external_id")
    account_id = exchange.caller.account_id

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
    links = {"self": app.config.base_url + exchange.target}
    if page.next_after is not None:
        links["next"] = f"{app.config.base_url}/v2/plans?page[size]={size}&page[after]={page.next_after}"
    return _read_answer(exchange, links, page.data, page.tag)


async def show(app: App, exchange: Exchange) -> Answer:
    """`GET /v2/plans/:plan_id`: the same envelope with one plan. Raises NotFound."""
    plan_id = exchange.path_id("plan_id")
    account_id = exchange.caller.account_id

    def read() -> Page:
        plan = app.db.ask(lambda tx: get_plan(tx, account_id, plan_id))
        return _render_one(plan, app.queues.read(app.db, account_id, [plan.id]))

    page = await app.shared_reads.get(("plan", account_id, plan_id), read)
    return _read_answer(exchange, {"self": app.config.base_url + exchange.target}, page.data, page.tag)


async def change(app: App, exchange: Exchange) -> Answer:
    """`PATCH /v2/plans/:plan_id`: name, description, external_id; absent keeps. Raises NotFound, Invalid, Conflict."""
    plan_id = exchange.path_id("plan_id")
    patch = parse_plan_patch(parse_json_object(await exchange.body()), strict=exchange.prefers_strict())
    if_match = exchange.header(b"if-match")

    def write(tx: Tx) -> Plan:
        # Locked, so that parallel changes follow each other: only who sent If-Match can be told that a copy is stale.
        before = get_plan(tx, exchange.caller.account_id, plan_id, lock=True)
        if if_match is not None and not _matches(if_match, before.version):
            raise Refused("precondition_failed", "The plan has changed since it was read.")
        return _patched(tx, exchange=exchange, before=before, patch=patch, now=app.clock())

    try:
        plan = await app.in_thread(lambda: write_alone(app.db, write))
    except Conflict:
        if if_match is None:
            raise
        raise Refused("precondition_failed", "The plan has changed since it was read.") from None
    body = {"links": {"self": app.config.base_url + exchange.target}, "data": [plan_body(plan)]}
    headers: tuple[Header, ...] = ((b"etag", b'"v%d"' % plan.version),)
    if patch.ignored:
        headers += ((b"ignored-fields", name_list(patch.ignored)),)
    return Answer(200, _encode(body).encode(), headers)


def _patched(tx: Tx, *, exchange: Exchange, before: Plan, patch: PlanPatch, now: datetime) -> Plan:
    """The plan with the patch applied and an audit entry, if it changes anything. Raises Invalid, Conflict."""
    caller = exchange.caller
    taken = find_taken(tx, caller.account_id, before.id, patch.changes)
    faults = [*patch.faults, *taken, *_read_only_faults(before, patch.echoed)]
    if faults:
        raise Invalid(faults)
    plan = change_plan(tx, caller.account_id, before.id, patch.changes)
    if plan.version != before.version:
        entry = audit.Entry(
            action="plan.changed",
            actor=caller.client_id,
            request_id=exchange.request_id,
            account_id=caller.account_id,
            subject_id=before.id,
            detail={"fields": changed_fields(before, plan)},
        )
        audit.record(tx, [entry], now=now)
    return plan


def plan_body(plan: Plan) -> dict[str, Any]:
    """A plan as the interface writes it, without queue_info."""
    group = plan.provider_group
    return {
        "id": plan.id,
        "type": "plans",
        "external_id": plan.external_id,
        "name": plan.name,
        "description": plan.description,
        "active": plan.accepting_patients,
        "created_at": wire_time(plan.created_at),
        "provider_group": {
            "id": group.id,
            "type": "provider_groups",
            "name": group.name,
            "external_id": group.external_id,
            "created_at": wire_time(group.created_at),
        },
    }


def queue_body(snapshot: Snapshot, plan_id: int) -> dict[str, Any]:
    """A plan's queue as the interface writes it."""
    queue = snapshot.queues[plan_id]
    return {
        "estimated_wait_time": queue.estimated_wait_seconds,
        "queue_length": queue.queue_length,
        "is_active": queue.doctors_on_duty,
        "cache_info": {"ttl": snapshot.ttl_seconds, "expires_at": wire_time(snapshot.expires_at)},
    }


def _render(plans: list[Plan], snapshot: Snapshot | None, *, next_after: int | None = None) -> Page:
    bodies = [
        plan_body(plan)
        # Rather no queue_info than an invented one: none could be read, or the plan is newer than what could be.
        | ({"queue_info": queue_body(snapshot, plan.id)} if snapshot and plan.id in snapshot.queues else {})
        for plan in plans
    ]
    data = _encode(bodies).encode()
    # links.next comes and goes with plans that are not on the page, so it is a part of what the tag stands for.
    hashed = hashlib.sha256(data if next_after is None else data + b"%d" % next_after)
    return Page(data, b'"%s"' % hashed.hexdigest()[:16].encode(), next_after)


def _render_one(plan: Plan, snapshot: Snapshot | None) -> Page:
    """One plan, found by either of its identifiers; its tag begins with the version, which is what If-Match compares."""
    page = _render([plan], snapshot)
    return Page(page.data, b'"v%d.' % plan.version + page.tag[1:], None)


def _read_answer(exchange: Exchange, links: dict[str, str], data: bytes, tag: bytes) -> Answer:
    headers = ((b"etag", tag), (b"cache-control", b"private, no-cache"))
    known = exchange.header(b"if-none-match")
    if known is not None and (known.strip() == "*" or tag.decode() in known):
        return Answer(304, b"", headers)
    return Answer(200, b'{"links":%s,"data":%s}' % (json.dumps(links).encode(), data), headers)


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
