"""Delivery reports of relays that call back: each event is parsed and applied by itself, and may come twice."""

import json
from collections.abc import Sequence
from typing import Any

from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.db.races import write_together
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.reports import read_message_id, read_status, receive_report
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Response

LARGEST_COUNT = 500


async def receive(app: App, request: Request) -> Response:
    """`POST /operator/v1/email-events`: 200 with a result per event, in order. Raises Invalid without a list of events."""
    events = parse_json_object(await request.body()).get("events")
    if type(events) is not list or not 1 <= len(events) <= LARGEST_COUNT:
        raise Invalid([Fault("events", "wrong_type", f"must be an array of 1 to {LARGEST_COUNT} events")])
    parsed = [_parse_event(event) for event in events]
    reports = [report for report in parsed if isinstance(report, DeliveryReport)]
    effects = iter(await app.in_thread(lambda: _receive(app, reports)))
    results = [
        {"result": next(effects).value}
        if isinstance(each, DeliveryReport)
        else {"result": "invalid", "errors": [fault.serialize() for fault in each]}
        for each in parsed
    ]
    return Response(200, json.dumps({"results": results}).encode(), ((b"cache-control", b"no-store"),))


def _receive(app: App, reports: Sequence[DeliveryReport]) -> list[ReportEffect]:
    if not reports:
        return []

    def work(tx: Tx, some: Sequence[DeliveryReport]) -> list[ReportEffect]:
        return [receive_report(tx, report, now=app.clock()) for report in some]

    effects = []
    for effect in write_together(app.db, reports, work):
        if isinstance(effect, Exception):
            raise effect
        effects.append(effect)
    return effects


def _parse_event(event: Any) -> DeliveryReport | list[Fault]:
    """The report, or every fault of the event. Unknown fields are ignored: relays send many."""
    if type(event) is not dict:
        return [Fault("event", "wrong_type", "must be an object")]
    kind, status, permanent = (event.get(name) for name in ("event", "status", "permanent"))
    message_id = _message_id(event.get("message_id"))
    faults = []
    if message_id is None:
        faults.append(Fault("message_id", "malformed_message_id", "must be the Message-ID of one mail"))
    if kind not in list(ReportEvent):
        faults.append(Fault("event", "not_allowed", "must be one of " + ", ".join(ReportEvent)))
    if status is not None and (type(status) is not str or read_status(status) is None):
        faults.append(Fault("status", "malformed_status", "must be an enhanced status code, such as 5.1.1"))
    if permanent is not None and type(permanent) is not bool:
        faults.append(Fault("permanent", "wrong_type", "must be true or false"))
    if faults or message_id is None:
        return faults
    return DeliveryReport(message_id, ReportEvent(str(kind)), status, permanent)


def _message_id(sent: object) -> str | None:
    """The Message-ID, sent with or without its angle brackets: relays differ."""
    if type(sent) is not str:
        return None
    text = sent.strip()
    return read_message_id(text if text.startswith("<") else f"<{text}>")
