"""Delivery reports of relays that call back: each event is parsed and applied by itself, and may come twice."""

from collections.abc import Sequence
from typing import Any

from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.db.engine import write_together
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.reports import read_message_id, read_status, receive_report
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import Response, json_response

LARGEST_COUNT = 500


async def receive(app: App, request: Request) -> Response:
    """`POST /operator/v1/email-events`: 200 with a result per event, in order. Raises Invalid without a list of events."""
    events = parse_json_object(await request.body()).get("events")
    if type(events) is not list or not 1 <= len(events) <= LARGEST_COUNT:
        raise Invalid([Fault("events", "wrong_type", f"must be an array of 1 to {LARGEST_COUNT} events")])
    parsed = [_parse_event(event) for event in events]
    results = await app.in_thread(lambda: _results(app, parsed))
    return json_response({"results": results})


def _results(app: App, parsed: Sequence[DeliveryReport | list[Fault]]) -> list[dict[str, Any]]:
    """Apply the reports; a result for each event."""
    reports = [each for each in parsed if isinstance(each, DeliveryReport)]

    def work(tx: Tx, some: Sequence[DeliveryReport]) -> list[ReportEffect]:
        return [receive_report(tx, report, now=app.clock()) for report in some]

    effects = iter(write_together(app.db, reports, work) if reports else ())
    results: list[dict[str, Any]] = []
    for each in parsed:
        if not isinstance(each, DeliveryReport):
            results.append({"result": "invalid", "errors": [fault.serialize() for fault in each]})
        elif isinstance(effect := next(effects), Exception):
            raise effect
        else:
            results.append({"result": effect.value})
    return results


def _parse_event(event: Any) -> DeliveryReport | list[Fault]:
    """The report, or every fault of the event. Unknown fields are ignored: relays send many."""
    if type(event) is not dict:
        return [Fault("event", "wrong_type", "must be an object")]
    kind, status, permanent = (event.get(name) for name in ("event", "status", "permanent"))
    sent = event.get("message_id")
    text = sent.strip() if type(sent) is str else ""  # with or without its angle brackets: relays differ
    message_id = read_message_id(text if text.startswith("<") else f"<{text}>")
    is_status = status is None or (type(status) is str and read_status(status) is not None)
    is_flag = permanent is None or type(permanent) is bool
    rules = (
        (message_id, "message_id", "malformed_message_id", "must be the Message-ID of one mail"),
        (kind in list(ReportEvent), "event", "not_allowed", "must be one of " + ", ".join(ReportEvent)),
        (is_status, "status", "malformed_status", "must be an enhanced status code, such as 5.1.1"),
        (is_flag, "permanent", "wrong_type", "must be true or false"),
    )
    faults = [Fault(field, code, rule) for is_right, field, code, rule in rules if not is_right]
    return faults or DeliveryReport(str(message_id), ReportEvent(str(kind)), status, permanent)
