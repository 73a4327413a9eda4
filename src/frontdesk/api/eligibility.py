"""A member of a plan, created or updated by a request (docs/interface.md, Eligible members)."""

from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote

import orjson

from frontdesk.app import App
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import ANY_INTENT, Enrolled, Intent, Outcome, Submission
from frontdesk.errors import Malformed
from frontdesk.invitations.model import Delivery
from frontdesk.mapping.suggest.names import likely_field as likely_field_of
from frontdesk.plans import external_ids_of
from frontdesk.text import SHOWN_LENGTH, nearest_name
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Header, Response

_INVITATION: dict[str, bytes] = {Delivery.IMMEDIATE: b"immediate", Delivery.BATCHED: b"queued"}
_NO_MISTAKES = {"country"}  # near to `county`, and something else


async def enrol_member(app: App, request: Request) -> Response:
    """Create or update an eligible member by external_id. All or nothing: with a single fault nothing is written, and every
    fault is reported. A member of another plan of the account moves to this one. Sending a request again is safe.
    `If-None-Match: *` only creates, `If-Match: *` and `only=update` only update, `move=false` moves no member.

    Body: EligibleMember
    Parameters: only move if_match if_none_match prefer
    Problems: conflict precondition_failed
    200 Eligibility [Eligibility-Outcome Invitation Cache-Control Eligibility-Warnings Ignored-Fields Eligibility-Changed
        Eligibility-Left-Plan]: The record with the `external_id` was updated, or had these values already.
    201 Eligibility [Eligibility-Outcome Invitation Cache-Control Eligibility-Warnings Ignored-Fields]: No record had the
        `external_id`; a new one was created.
    Faults: required wrong_type too_long control_character not_a_date in_the_future before_1900 expiry_before_effective
        not_allowed not_ten_digits malformed_email malformed_zipcode too_many_keys empty_key unknown_field not_enrolled not_unique
        repeated
    """
    plan_id = request.path_id("plan_id")
    body = parse_json_object(await request.body())
    record = parse_member(body, today=app.clock().date().isoformat(), strict=request.prefers_strict())
    if record.ignored:
        note_ignored_fields(request, record.ignored, lambda name: likely_field(name, body))
    by = (request.caller.client_id, request.request_id)
    intent = _intent(request)
    enrolled = await app.enrolments.submit(
        Submission(request.account_id, plan_id, record, *by, intent=intent)
    )
    status = 201 if enrolled.outcome is Outcome.CREATED else 200
    headers = _headers(enrolled)
    if (left := enrolled.left_plan_id) is not None:
        names = await app.ask(lambda tx: external_ids_of(tx, [left]))
        headers += ((b"eligibility-left-plan", quote(names[left], safe="").encode()),)
    return Response(status, orjson.dumps(enrolled.answer), headers)


def _intent(request: Request) -> Intent:
    """What the request lets its records do, by its conditions. Raises Malformed for conditions that exclude each other, and for a
    version in a condition."""
    sent = {name: (request.header(name) or "").strip() for name in (b"if-match", b"if-none-match")}
    if not any(sent.values()) and not request.parameters:
        return ANY_INTENT
    if not {*sent.values()} <= {"", "*"}:
        raise Malformed("If-Match and If-None-Match take * only here: a member is not compared by versions.")
    creates_only, updates_only = (
        sent[b"if-none-match"] == "*",
        sent[b"if-match"] == "*" or "only" in request.parameters,
    )
    if creates_only and updates_only:
        raise Malformed(
            "One condition asks for a new member, another one for a stored member. Send one of them."
        )
    return Intent(not updates_only, not creates_only, request.parameters.get("move", True))


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
    return headers
