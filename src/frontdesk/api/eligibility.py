"""A member of a plan, created or updated by a request (docs/interface.md, Eligible members)."""

import hashlib
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote

import orjson

from frontdesk.app import App
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Enrolled, Outcome, Submission
from frontdesk.invitations.model import Delivery
from frontdesk.mapping.suggest.names import likely_field as likely_field_of
from frontdesk.text import SHOWN_LENGTH, nearest_name
from frontdesk.web.idempotency import once
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Header, Response

_INVITATION: dict[str, bytes] = {Delivery.IMMEDIATE: b"immediate", Delivery.BATCHED: b"queued"}
_NO_MISTAKES = {"country"}  # near to `county`, and something else


async def enrol_member(app: App, request: Request) -> Response:
    """Create or update an eligible member by external_id. All or nothing: with a single fault nothing is written, and every
    fault is reported. A member of another plan of the account moves to this one. Sending a request again is safe.

    Body: EligibleMember
    Parameters: idempotency_key
    200 Eligibility [Eligibility-Outcome Invitation Cache-Control Eligibility-Warnings Ignored-Fields Eligibility-Changed
        Eligibility-Left-Plan]: The record with the `external_id` was updated, or had these values already.
    201 Eligibility [Eligibility-Outcome Invitation Cache-Control Eligibility-Warnings Ignored-Fields]: No record had the
        `external_id`; a new one was created.
    Faults: required wrong_type too_long control_character not_a_date in_the_future before_1900 expiry_before_effective
        not_allowed not_ten_digits malformed_email malformed_zipcode too_many_keys empty_key unknown_field not_enrolled not_unique
    """
    plan_id = request.path_id("plan_id")
    raw = await request.body()
    body = parse_json_object(raw)
    record = parse_member(body, today=app.clock().date().isoformat(), strict=request.prefers_strict())
    if record.ignored:
        note_ignored_fields(request, record.ignored, lambda name: likely_field(name, body))
    caller = request.caller
    submission = Submission(request.account_id, plan_id, record, caller.client_id, request.request_id)
    if request.key_hash is not None:
        submission = submission._replace(once=once(request, hashlib.sha256(raw).hexdigest(), _response))
    return _response(await app.enrolments.submit(submission))


def likely_field(name: str, given: Collection[str]) -> str | None:
    """The field of a member that an unknown one may have been meant for, if that field is not given too: nearly the same name, or
    one that senders of files use (`expiration_date`)."""
    field = _likely_field(name) if len(name) <= SHOWN_LENGTH else None
    return None if field in given else field


@lru_cache(maxsize=4096)  # a caller sends the same names again, and each takes 0.2 ms
def _likely_field(name: str) -> str | None:
    if name.lower() in _NO_MISTAKES:
        return None
    return likely_field_of(name) or nearest_name(name, FIELDS)


def _response(enrolled: Enrolled) -> Response:
    status = 201 if enrolled.outcome is Outcome.CREATED else 200
    return Response(status, orjson.dumps(enrolled.answer), _headers(enrolled))


def _headers(enrolled: Enrolled) -> tuple[Header, ...]:
    """The outcome, in headers: the body has the nine documented fields only."""
    decision = enrolled.invitation
    headers: tuple[Header, ...] = (
        (b"eligibility-outcome", enrolled.outcome.encode()),
        (b"invitation", _INVITATION.get(decision) or b"none; reason=" + decision.encode()),
        NO_STORE,
    )
    if enrolled.outcome is not Outcome.CREATED:
        changed = ",".join(name for name in enrolled.changes if name in FIELDS)
        headers += ((b"eligibility-changed", changed.encode()),) if changed else ()
    if enrolled.warnings:
        warnings = ",".join(enrolled.warnings).replace("; looks like member ", ";member=")
        headers += ((b"eligibility-warnings", warnings.encode()),)
    if enrolled.left_plan is not None:
        headers += ((b"eligibility-left-plan", quote(enrolled.left_plan, safe="").encode()),)
    return headers
