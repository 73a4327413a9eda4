"""Delivery reports of relays and providers that call back: each event is parsed and applied by
itself, and may come twice.
"""

import asyncio
import hmac
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import lru_cache, partial
from http.client import HTTPException, HTTPSConnection
from typing import Any

import orjson

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.db.engine import write_together
from frontdesk.errors import Fault, Invalid, NotFound, Unauthorized, Unavailable
from frontdesk.interface.operations import Answer, Group
from frontdesk.invitations.message import derive_token
from frontdesk.invitations.model import DeliveryReport, ReportEffect, ReportEvent
from frontdesk.invitations.provider_events import PROVIDERS, check_sendgrid, read_events, read_sns
from frontdesk.invitations.reports import read_message_id, receive_report
from frontdesk.mail.status import read_status
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import Response, json_response

# A mail provider proves itself by the token in the path and its signature.
GROUP = Group("Email events", "Delivery reports of relays and mail providers.")

LARGEST_COUNT = 500
LARGEST_CALL_BYTES = 1024 * 1024
LARGEST_ANSWER_BYTES = 64 * 1024
FETCH_SECONDS = 3.0
_READING = ThreadPoolExecutor(2, "provider")  # nothing else waits for SNS
# Hosts of Amazon SNS alone: the middle is a region, such as us-gov-west-1. An S3 bucket named `sns`
# is at sns.s3.amazonaws.com or sns.s3-eu-west-1.amazonaws.com, and serves what its owner puts
# there.
_OF_SNS = re.compile(
    r"https://(sns\.(?:cn-[a-z]+-[0-9]\.amazonaws\.com\.cn|(?!cn-)[a-z]{2}(?:-[a-z]+){1,2}"
    r"-[0-9]\.amazonaws\.com))(/[!-~]*)"
)
_OF_SENDGRID = b"x-twilio-email-event-webhook-"


@GROUP.post(
    "/operator/v1/email-events",
    scope=Scope.OPERATOR,
    body=dict[str, Any],
    answers={200: Answer("The result of each event, in order.", dict[str, Any])},
    faults=[codes.faults.WRONG_TYPE],
)
async def receive(app: App, request: Request) -> Response:
    """Send delivery reports of a relay."""
    events = parse_json_object(await request.body()).get("events")
    if type(events) is not list or not 1 <= len(events) <= LARGEST_COUNT:
        raise Invalid(
            [
                Fault(
                    "events",
                    codes.faults.WRONG_TYPE,
                    f"must be an array of 1 to {LARGEST_COUNT} events",
                )
            ]
        )
    parsed = [_parse_event(event) for event in events]
    results = await app.in_thread(lambda: _results(app, parsed))
    return json_response({"results": results})


@GROUP.post(
    "/operator/v1/email-events/{provider}/{token}",
    ignores_accept=True,
    answers={200: Answer("The number of events by result.", dict[str, Any])},
    problems=[Kind.UNAUTHORIZED, Kind.TIMEOUT, Kind.TOO_LARGE, Kind.UNAVAILABLE],
)
async def receive_from_provider(app: App, request: Request) -> Response:
    """Receive a provider's call with its events.

    The token in the path has to be that of the provider and the signer, and the call genuine.
    Unknown events are left out.
    """
    secret = app.config.link_secret
    provider = request.path_parameters["provider"]
    token = derive_token(secret, provider, signer := dict(request.query_pairs).get("signer", ""))
    is_ours = hmac.compare_digest(request.path_parameters["token"].encode(), token.encode())
    if not secret or provider not in PROVIDERS or not is_ours:
        raise NotFound("address", "There is nothing at this address.")
    raw = await request.body(limit_bytes=LARGEST_CALL_BYTES)
    headers = [request.header(_OF_SENDGRID + name) or "" for name in (b"signature", b"timestamp")]

    def read() -> list[DeliveryReport | list[Fault]]:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

        try:
            body = orjson.loads(raw)
            if provider == "ses":
                body = read_sns(body, signer, fetch)
            elif provider == "sendgrid":
                check_sendgrid(raw, signer, headers, app.clock())
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            InvalidSignature,
            UnsupportedAlgorithm,
        ):
            raise Unauthorized("This is no call of the provider that the address is for.") from None
        return [_parse_event(event) for event in read_events(body)]

    parsed = await app.in_time(asyncio.get_running_loop().run_in_executor(_READING, read))
    counts = Counter[str]()
    for at in range(0, len(parsed), LARGEST_COUNT):
        results = await app.in_thread(partial(_results, app, parsed[at : at + LARGEST_COUNT]))
        counts.update(each["result"] for each in results)
    return json_response(counts)


@lru_cache(maxsize=8)  # one certificate signs for months
def fetch(url: str) -> bytes:
    """What Amazon SNS serves at an address of its own. Raises ValueError for another address,
    Unavailable without an answer.
    """
    if (found := _OF_SNS.fullmatch(url)) is None:
        raise ValueError
    with (
        closing(HTTPSConnection(found[1], timeout=FETCH_SECONDS)) as sns,
        suppress(OSError, HTTPException),
    ):
        sns.request("GET", found[2])
        answer = sns.getresponse()
        if answer.status == 200:
            return answer.read(LARGEST_ANSWER_BYTES)
    raise Unavailable("Amazon SNS does not serve what it names. Send the call again.")


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
        return [Fault("event", codes.faults.WRONG_TYPE, "must be an object")]
    kind, status, permanent = (event.get(name) for name in ("event", "status", "permanent"))
    sent = event.get("message_id")
    # with or without its angle brackets: relays differ
    text = sent.strip() if type(sent) is str else ""
    message_id = read_message_id(text if text.startswith("<") else f"<{text}>")
    is_status = status is None or (type(status) is str and read_status(status) is not None)
    is_flag = permanent is None or type(permanent) is bool
    rules = (
        (
            message_id,
            "message_id",
            codes.operators.MALFORMED_MESSAGE_ID,
            "must be the Message-ID of one mail",
        ),
        (
            kind in list(ReportEvent),
            "event",
            codes.faults.NOT_ALLOWED,
            "must be one of " + ", ".join(ReportEvent),
        ),
        (
            is_status,
            "status",
            codes.operators.MALFORMED_STATUS,
            "must be an enhanced status code, such as 5.1.1",
        ),
        (is_flag, "permanent", codes.faults.WRONG_TYPE, "must be true or false"),
    )
    faults = [Fault(field, code, rule) for is_right, field, code, rule in rules if not is_right]
    return faults or DeliveryReport(str(message_id), ReportEvent(str(kind)), status, permanent)
