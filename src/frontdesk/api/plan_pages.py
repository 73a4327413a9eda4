"""Plans as the interface writes them. The wire's `active` and `queue_info.is_active` are named here, and only here."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from frontdesk.clock import wire_time
from frontdesk.plans.model import Plan
from frontdesk.queues.model import QueueSnapshot

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Page:
    """Rendered plans that concurrent callers share: the JSON array, its ETag, and where the next page starts."""

    data: bytes
    tag: bytes
    next_after: int | None


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


def queue_body(snapshot: QueueSnapshot, plan_id: int) -> dict[str, Any]:
    """A plan's queue as the interface writes it."""
    queue = snapshot.queues[plan_id]
    return {
        "estimated_wait_time": queue.estimated_wait_seconds,
        "queue_length": queue.queue_length,
        "is_active": queue.doctors_on_duty,
        "cache_info": {"ttl": snapshot.ttl_seconds, "expires_at": wire_time(snapshot.expires_at)},
    }


def render(plans: list[Plan], snapshot: QueueSnapshot | None, *, next_after: int | None = None) -> Page:
    bodies = [
        plan_body(plan)
        # Rather no queue_info than an invented one: none could be read, or the plan is newer than what could be.
        | ({"queue_info": queue_body(snapshot, plan.id)} if snapshot and plan.id in snapshot.queues else {})
        for plan in plans
    ]
    data = encode(bodies).encode()
    # links.next comes and goes with plans that are not on the page, so it is a part of what the tag stands for.
    hashed = hashlib.sha256(data if next_after is None else data + b"%d" % next_after)
    return Page(data, b'"%s"' % hashed.hexdigest()[:16].encode(), next_after)


def render_one(plan: Plan, snapshot: QueueSnapshot | None) -> Page:
    """One plan, found by either of its identifiers; its tag begins with the version, which is what If-Match compares."""
    page = render([plan], snapshot)
    return Page(page.data, b'"v%d.' % plan.version + page.tag[1:], None)
