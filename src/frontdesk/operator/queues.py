"""POST of queue events (docs/queue-events.md): each event is parsed and stored on its own, and has
an outcome of its own. GET of a plan's queue (docs/operator.md): the values that its customer gets
now, with the interval.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.db.engine import write_together
from frontdesk.errors import Fault, Invalid
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.plans import get_plan
from frontdesk.queues.events import parse_event
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventOutcome, EventResult, ParsedEvent
from frontdesk.reach import EVERY
from frontdesk.web.request import Request, parse_json
from frontdesk.web.response import Response, json_response, name_list

GROUP = Group("Queues", "Events of queues, and what customers see of them.")

BODY_LIMIT_BYTES = 1024 * 1024
MAX_EVENTS = 1000


@GROUP.post(
    "/operator/v1/queue-events",
    scope=Scope.OPERATOR,
    body=dict[str, Any],
    answers={
        207: Answer("How many events had each outcome, and the result of each.", dict[str, Any])
    },
    faults=[codes.faults.WRONG_TYPE, codes.operators.TOO_MANY],
)
async def receive_queue_events(app: App, request: Request) -> Response:
    """Send queue events.

    Answers an outcome for each event, after the commit.
    """
    raw = await request.body(limit_bytes=BODY_LIMIT_BYTES)
    strict = request.prefers_strict()
    # In a thread: to parse a thousand events would hold up the event loop.
    return await app.in_thread(lambda: _store(app, raw, strict=strict))


def _store(app: App, raw: bytes, *, strict: bool) -> Response:
    now = app.clock()
    parsed = [parse_event(sent, now=now, strict=strict) for sent in _list(parse_json(raw))]
    events = [one.event for one in parsed if one.event is not None]
    stored = (
        write_together(app.db, events, lambda tx, some: ingest(tx, some, now=now)) if events else []
    )
    body = _body(parsed, iter(stored))
    ignored = tuple(sorted({name for one in parsed for name in one.ignored}))
    headers = ((b"ignored-fields", name_list(ignored)),) if ignored and not strict else ()
    return json_response(body, *headers, status=207)


def _list(body: object) -> Sequence[object]:
    """The events of the body: one, an array of them, or an object with the array under `events`.
    Raises Invalid.
    """
    if isinstance(body, dict) and "events" in body:
        body = body["events"]
        if type(body) is not list:
            raise Invalid([Fault("events", codes.faults.WRONG_TYPE, "must be an array")])
    if type(body) is dict:
        return [body]
    if type(body) is not list:
        raise Invalid(
            [Fault("events", codes.faults.WRONG_TYPE, "must be an event or an array of events")]
        )
    if len(body) > MAX_EVENTS:
        raise Invalid(
            [Fault("events", codes.operators.TOO_MANY, f"must be {MAX_EVENTS} events at most")]
        )
    return body


def _body(
    parsed: Sequence[ParsedEvent], stored: Iterator[EventResult | Exception]
) -> dict[str, Any]:
    """How many events had each outcome, and the result of each. `stored` has those of the events
    without a fault.
    """
    counts = dict.fromkeys(EventOutcome, 0)
    items: list[dict[str, Any]] = []
    for one in parsed:
        result = next(stored) if one.event else EventResult(EventOutcome.REFUSED, one.faults)
        if isinstance(result, Exception):
            raise result
        counts[result.outcome] += 1
        errors = {"errors": [fault.serialize() for fault in result.faults]} if result.faults else {}
        items.append({"id": one.id, "outcome": result.outcome} | errors)
    return {outcome.value: count for outcome, count in counts.items()} | {"results": items}


@GROUP.get(
    "/operator/v1/plans/{plan_id}/queue",
    scope=Scope.OPERATOR,
    answers={200: Answer("What the customer's plan shows now.", dict[str, Any])},
)
async def show_queue(app: App, request: Request) -> Response:
    """Read the queue of a plan of any account.

    `queue_info` and `queue_interval` are absent while the values are unavailable.
    """
    plan_id = request.path_id("plan_id")
    plan = await app.ask(lambda tx: get_plan(tx, EVERY, plan_id))
    snapshot = await app.queue_snapshot(plan.account_id, [plan_id])
    body: dict[str, object] = {"plan_id": plan_id, "account_id": plan.account_id}
    if snapshot is not None and plan_id in snapshot.queues:
        body["queue_info"] = present.queue_info(snapshot, plan_id)
        body["queue_interval"] = present.queue_interval(snapshot.queues[plan_id])
    return json_response(body)
