"""Members of a plan, written by requests: one, a batch, an end, a new identifier
(docs/interface.md, Eligible members).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.codes.operators import Noun
from frontdesk.db import Tx
from frontdesk.eligibility import model, parse_member, reading
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import ANY_INTENT, Action, Enrolled, Intent, Outcome, Submission
from frontdesk.errors import Fault, Invalid, Malformed, unknown_faults
from frontdesk.idempotency import refuse_answered
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    ELIGIBILITY_CHANGED,
    ELIGIBILITY_LEFT_PLAN,
    ELIGIBILITY_OUTCOME,
    ELIGIBILITY_WARNINGS,
    EMAIL_TAKEN,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    IGNORED_FIELDS,
    INVITATION,
    MOVE,
    ONLY,
    PREFER,
)
from frontdesk.interface.types import member_writes as types
from frontdesk.interface.types.members import Eligibility
from frontdesk.invitations.model import Delivery, QueuedReason
from frontdesk.mapping.suggest.names import likely_field as likely_field_of
from frontdesk.text import SHOWN_LENGTH, nearest_name
from frontdesk.web.idempotency import once
from frontdesk.web.request import LARGE_BODY_BYTES, Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Header, Response

GROUP = Group("Eligibility", "Members who are eligible under a plan, one by one.")

_INVITATION: dict[str, str] = {Delivery.IMMEDIATE: "immediate", Delivery.BATCHED: "queued"}
_NOUN: Noun = "eligible member"
_NO_MISTAKES = {"country"}  # near to `county`, and something else


@GROUP.post(
    Path.MEMBERS,
    scope=Scope.ELIGIBILITY_WRITE,
    body=types.EligibleMember,
    parameters=[ONLY, MOVE, EMAIL_TAKEN, IF_MATCH, IF_NONE_MATCH, PREFER, IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The record with the `external_id` was updated, or had these values already.",
            Eligibility,
            headers=[
                ELIGIBILITY_OUTCOME,
                INVITATION,
                CACHE_CONTROL,
                ELIGIBILITY_WARNINGS,
                IGNORED_FIELDS,
                ELIGIBILITY_CHANGED,
                ELIGIBILITY_LEFT_PLAN,
            ],
        ),
        201: Answer(
            "No record had the `external_id`; a new one was created.",
            Eligibility,
            headers=[
                ELIGIBILITY_OUTCOME,
                INVITATION,
                CACHE_CONTROL,
                ELIGIBILITY_WARNINGS,
                IGNORED_FIELDS,
            ],
        ),
    },
    problems=[Kind.CONFLICT, Kind.PRECONDITION_FAILED],
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.TOO_LONG,
        codes.faults.CONTROL_CHARACTER,
        codes.faults.LOOKALIKE_CHARACTER,
        codes.faults.NOT_A_DATE,
        codes.faults.IN_THE_FUTURE,
        codes.faults.BEFORE_1900,
        codes.faults.EXPIRY_BEFORE_EFFECTIVE,
        codes.faults.NOT_ALLOWED,
        codes.faults.NOT_TEN_DIGITS,
        codes.faults.MALFORMED_EMAIL,
        codes.faults.MALFORMED_ZIPCODE,
        codes.faults.TOO_MANY_KEYS,
        codes.faults.EMPTY_KEY,
        codes.faults.UNKNOWN_FIELD,
        codes.faults.NOT_ENROLLED,
        codes.faults.NOT_UNIQUE,
        codes.faults.REPEATED,
    ],
)
async def enrol_member(app: App, request: Request) -> Response:
    """Create or update an eligible member by external_id.

    All or nothing: with a single fault nothing is written, and every fault is reported. A member of
    another plan of the account moves to this one. Sending a request again is safe. `If-None-Match:
    *` only creates, `If-Match: *` and `only=update` only update, `move=false` moves no member.
    `email_taken=drop` writes the record without an e-mail that another member has.
    """
    app.refuse_used_up_storage(request.account_id)
    raw = await request.body()
    if len(raw) <= LARGE_BODY_BYTES:
        submission = _submission(app, request, raw)
    else:
        async with app.fair_share.admitted(request.account_id):
            submission = _submission(app, request, raw)
    return _response(await app.enrolments.submit(submission))


def _submission(app: App, request: Request, raw: bytes) -> Submission:
    """The record of the body. Raises NotFound, Malformed."""
    plan_id = request.path_id("plan_id")
    body = parse_json_object(raw)
    record = parse_member(
        body, today=app.day_of(request.caller).latest, strict=request.prefers_strict()
    )
    if record.ignored:
        note_ignored_fields(request, record.ignored, lambda name: likely_field(name, body))
    by = (request.caller.client_id, request.request_id)
    own = None if request.key_hash is None else once(request, _response)
    return Submission(
        request.account_id, plan_id, record, *by, intent=intent_of(request, moves=True), once=own
    )


@GROUP.post(
    Path.MEMBER_END,
    scope=Scope.ELIGIBILITY_WRITE,
    body=types.MemberEnd,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The access ends on that day, or did so before.",
            Eligibility,
            headers=[
                ELIGIBILITY_OUTCOME,
                INVITATION,
                CACHE_CONTROL,
                IGNORED_FIELDS,
                ELIGIBILITY_CHANGED,
            ],
        )
    },
    problems=[Kind.CONFLICT],
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.NOT_A_DATE,
        codes.faults.EXPIRY_BEFORE_EFFECTIVE,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def end_member(app: App, request: Request) -> Response:
    """End a member's access.

    `on` is the last day of access, as an `expiry_date` is; another day replaces it. Sending it
    again is safe.
    """

    def ended(given: dict[str, object], stored: dict[str, Any]) -> model.MemberRecord:
        given = {"external_id": stored["external_id"], "expiry_date": given.get("on")}
        record = parse_member(given, today="")
        if record.faults or record.given["expiry_date"] is not None:
            return record
        return replace(
            record,
            faults=(Fault("expiry_date", codes.faults.REQUIRED, "must be the last day of access"),),
        )

    try:
        return await _change(app, request, ("on",), ended, Action.END)
    except Invalid as error:
        named = {"expiry_date": "on"}
        faults = [each._replace(field=named.get(each.field, each.field)) for each in error.faults]
        raise Invalid(faults) from None


@GROUP.post(
    Path.MEMBER_RENAME,
    scope=Scope.ELIGIBILITY_WRITE,
    body=types.MemberRename,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The member has the identifier, or had it before.",
            Eligibility,
            headers=[
                ELIGIBILITY_OUTCOME,
                INVITATION,
                CACHE_CONTROL,
                IGNORED_FIELDS,
                ELIGIBILITY_CHANGED,
                ELIGIBILITY_WARNINGS,
            ],
        )
    },
    problems=[Kind.CONFLICT],
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.TOO_LONG,
        codes.faults.CONTROL_CHARACTER,
        codes.faults.LOOKALIKE_CHARACTER,
        codes.faults.NOT_UNIQUE,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def rename_member(app: App, request: Request) -> Response:
    """Give a member another external_id.

    Its `id`, history and invitation stay. The old identifier is free afterwards.
    """

    def renamed(given: dict[str, object], stored: dict[str, Any]) -> model.MemberRecord:
        if stored["member_id"] == stored["external_id"]:  # both are equal by default in an 834
            given = {"member_id": given.get("external_id", stored["external_id"])} | given
        return parse_member(given, today="")

    return await _change(app, request, ("external_id", "member_id"), renamed)


async def _change(
    app: App,
    request: Request,
    names: Sequence[str],
    record_of: Callable[[dict[str, object], dict[str, Any]], model.MemberRecord],
    action: Action = Action.ENROL,
) -> Response:
    """Change the path's member by the fields of these names. `record_of` makes the record of the
    fields and of the stored member, by column. Raises Malformed, NotFound, Invalid, AnsweredBefore;
    Conflict if another request renames or merges the member at the same time.
    """
    app.refuse_used_up_storage(request.account_id)
    body = parse_json_object(await request.body())
    if unknown := [name for name in body if name not in names]:
        note_ignored_fields(request, unknown, lambda name: nearest_name(name, names))
    account_id = request.account_id
    plan_id = request.path_id("plan_id", of=_NOUN)
    eligibility_id = request.path_id("eligibility_id", of=_NOUN)
    own = once(request, _response)

    def find(tx: Tx) -> dict[str, Any]:
        if own is not None:
            refuse_answered(tx, own)  # first: the member may have left the plan since
        return reading.get_member(tx, eligibility_id, account_id=account_id, plan_id=plan_id)

    stored = await app.ask(find)
    record = record_of({name: body[name] for name in names if name in body}, stored)
    faults = (*(unknown_faults(unknown) if request.prefers_strict() else ()), *record.faults)
    record = replace(record, external_id=stored["external_id"], faults=faults)
    by = (request.caller.client_id, request.request_id)
    intent = Intent(creates=False, moves=False, eligibility_id=eligibility_id)
    submission = Submission(account_id, plan_id, record, *by, action, intent=intent, once=own)
    return _response(await app.enrolments.submit(submission))


def intent_of(request: Request, *, moves: bool) -> Intent:
    """What the request lets its records do, by its conditions; `moves` is the value of `move` where
    the request has none. Raises Malformed for conditions that exclude each other, and for a version
    in a condition.
    """
    match = request.header(b"if-match")
    none_match = request.header(b"if-none-match")
    if match is none_match is None and not request.parameters and moves:
        return ANY_INTENT
    match = (match or "").strip()
    none_match = (none_match or "").strip()
    if not {match, none_match} <= {"", "*"}:
        raise Malformed(
            "If-Match and If-None-Match take * only here: a member is not compared by versions."
        )
    updates_only = bool(match) or "only" in request.parameters
    if none_match and updates_only:
        raise Malformed(
            "One condition asks for a new member, another for a stored one. Send one of them."
        )
    return Intent(
        creates=not updates_only,
        updates=not none_match,
        moves=request.parameters.get("move", moves),
        drops_taken_email="email_taken" in request.parameters,
    )


def likely_field(name: str, given: Collection[str]) -> str | None:
    """The field of a member that an unknown one may have been meant for, if that field is not given
    too: nearly the same name, or one that senders of files use (`expiration_date`).
    """
    field = _likely_field(name) if len(name) <= SHOWN_LENGTH else None
    return None if field in given else field


@lru_cache(maxsize=4096)  # a caller sends the same names again, and each takes 0.2 ms
def _likely_field(name: str) -> str | None:
    if name.lower() in _NO_MISTAKES:
        return None
    return likely_field_of(name) or nearest_name(name, FIELDS)


def _response(enrolled: Enrolled) -> Response:
    return Response(status_of(enrolled), orjson.dumps(present.member(enrolled)), _headers(enrolled))


def _headers(enrolled: Enrolled) -> tuple[Header, ...]:
    """The outcome, in headers: the body has the nine documented fields only."""
    headers: tuple[Header, ...] = (
        (b"eligibility-outcome", enrolled.outcome.encode()),
        (b"invitation", invitation_of(enrolled).encode()),
        NO_STORE,
    )
    if changed := changed_fields(enrolled):
        headers += ((b"eligibility-changed", ",".join(changed).encode()),)
    if enrolled.warnings:
        headers += ((b"eligibility-warnings", ",".join(warnings_of(enrolled)).encode()),)
    if enrolled.left_plan is not None:
        headers += ((b"eligibility-left-plan", quote(enrolled.left_plan, safe="").encode()),)
    return headers


def status_of(enrolled: Enrolled) -> int:
    return 201 if enrolled.outcome is Outcome.CREATED else 200


def invitation_of(enrolled: Enrolled) -> str:
    decision = enrolled.invitation
    if isinstance(decision, QueuedReason):
        return f"queued; reason={decision}"
    return _INVITATION.get(decision) or f"none; reason={decision}"


def changed_fields(enrolled: Enrolled) -> list[str]:
    return (
        []
        if enrolled.outcome is Outcome.CREATED
        else [name for name in enrolled.changes if name in FIELDS]
    )


def warnings_of(enrolled: Enrolled) -> list[str]:
    """The codes of the warnings; one about a similar member has its id too, and one that may be
    about several fields has the field.
    """
    found = []
    for warning in enrolled.warnings:
        if warning.member_id:
            found.append(f"{warning.code};member={warning.member_id}")
        elif not warning.code.field:
            found.append(f"{warning.code};field={warning.field}")
        else:
            found.append(warning.code)
    return found
