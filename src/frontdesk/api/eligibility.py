"""A member of a plan, created or updated by a request (docs/interface.md, Eligible members)."""

import orjson

from frontdesk.app import App
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Enrolled, Outcome, Submission
from frontdesk.invitations.model import Delivery
from frontdesk.web.json_body import parse_json_object
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response, name_list

_INVITATION: dict[str, bytes] = {Delivery.IMMEDIATE: b"immediate", Delivery.BATCHED: b"queued"}
_NO_STORE: Header = (b"cache-control", b"no-store")


async def enrol_member(app: App, request: Request) -> Response:
    """Create or update an eligible member by external_id. All or nothing: with a single fault nothing is written, and every
    fault is reported. A member of another plan of the account moves to this one. Sending a request again is safe."""
    plan_id = request.path_id("plan_id")
    body = parse_json_object(await request.body())
    record = parse_member(body, today=app.clock().date().isoformat(), strict=request.prefers_strict())
    caller = request.caller
    enrolled = await app.enrolments.submit(
        Submission(request.account_id, plan_id, record, caller.client_id, request.request_id)
    )
    status = 201 if enrolled.outcome is Outcome.CREATED else 200
    return Response(status, orjson.dumps(enrolled.answer), _headers(enrolled, record.ignored))


def _headers(enrolled: Enrolled, ignored: tuple[str, ...]) -> tuple[Header, ...]:
    """The outcome, in headers: the body has the nine documented fields only."""
    decision = enrolled.invitation
    headers: tuple[Header, ...] = (
        (b"eligibility-outcome", enrolled.outcome.encode()),
        (b"invitation", _INVITATION.get(decision) or b"none; reason=" + decision.encode()),
        _NO_STORE,
    )
    if enrolled.outcome is not Outcome.CREATED:
        changed = ",".join(name for name in enrolled.changes if name in FIELDS)
        headers += ((b"eligibility-changed", changed.encode()),) if changed else ()
    if enrolled.warnings:
        headers += ((b"eligibility-warnings", ",".join(enrolled.warnings).encode()),)
    if ignored:
        headers += ((b"ignored-fields", name_list(ignored)),)
    return headers
