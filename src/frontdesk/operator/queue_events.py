"""POST of queue events: parse, hand over to `ingest`, tell what became of each; it knows nothing of what follows from them."""

import json
from collections.abc import Sequence
from typing import Any

from frontdesk.app import App
from frontdesk.db.races import write_together
from frontdesk.errors import Fault, Invalid
from frontdesk.queues import ingest, parse_event
from frontdesk.queues.model import EventOutcome, EventResult, ParsedEvent
from frontdesk.web.json_body import parse_json
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response, name_list

BODY_LIMIT_BYTES = 1024 * 1024
MOST_EVENTS = 1000

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


async def post(app: App, request: Request) -> Response:
    """`POST /operator/v1/queue-events`: 207 with an outcome for each event. Raises Invalid for the list itself, Unavailable.

    What is told as stored is stored: the answer follows the commit.
    """
    raw = await request.body(limit_bytes=BODY_LIMIT_BYTES)
    strict = request.prefers_strict()
    # A thousand events take a while to read: the event loop is for others meanwhile.
    return await app.in_thread(lambda: _take(app, raw, strict=strict))


def _take(app: App, raw: bytes, *, strict: bool) -> Response:
    now = app.clock()
    readings = [parse_event(sent, now=now, strict=strict) for sent in _sent(parse_json(raw))]
    events = [reading.event for reading in readings if reading.event is not None]
    taken: list[EventResult | Exception] = []
    if events:
        taken = write_together(app.db, events, lambda tx, batch: ingest(tx, batch, now=now))
    answers = iter(taken)
    outcomes = [
        EventResult(EventOutcome.REFUSED, reading.faults)
        if reading.event is None
        else _settled(next(answers))
        for reading in readings
    ]
    ignored = tuple(sorted({name for reading in readings for name in reading.ignored}))
    headers: tuple[Header, ...] = ((b"cache-control", b"no-store"),)
    if ignored and not strict:
        headers += ((b"ignored-fields", name_list(ignored)),)
    return Response(207, _encode(_body(readings, outcomes)).encode(), headers)


def _sent(body: object) -> Sequence[object]:
    """One event, an array of them, or an object with the array under `events`."""
    if isinstance(body, dict) and "events" in body:
        body = body["events"]
        if type(body) is not list:
            raise Invalid([Fault("events", "wrong_type", "must be an array")])
    if type(body) is dict:
        return [body]
    if type(body) is not list:
        raise Invalid([Fault("events", "wrong_type", "must be an event or an array of events")])
    if len(body) > MOST_EVENTS:
        raise Invalid([Fault("events", "too_many", f"must be {MOST_EVENTS} events at most")])
    return body


def _settled(taken: EventResult | Exception) -> EventResult:
    if isinstance(taken, Exception):
        raise taken
    return taken


def _body(readings: Sequence[ParsedEvent], outcomes: Sequence[EventResult]) -> dict[str, Any]:
    counts = dict.fromkeys(EventOutcome, 0)
    results = []
    for reading, taken in zip(readings, outcomes, strict=True):
        counts[taken.outcome] += 1
        result: dict[str, Any] = {"id": reading.id, "outcome": taken.outcome}
        if taken.faults:
            result["errors"] = [fault.serialize() for fault in taken.faults]
        results.append(result)
    return {outcome.value: count for outcome, count in counts.items()} | {"results": results}
