"""Members of a plan, written by requests: one, a batch, an end, a new identifier (docs/interface.md, Eligible members)."""

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from frontdesk.app import ANSWER_SECONDS, App
from frontdesk.db import Tx
from frontdesk.eligibility import model, parse_member, reading
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import ANY_INTENT, Action, Enrolled, Intent, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError, Invalid, Malformed, Unavailable, unknown_faults
from frontdesk.formats.json_rows import read_json
from frontdesk.formats.model import Format
from frontdesk.formats.source import Source
from frontdesk.idempotency import refuse_answered
from frontdesk.idempotency.model import AnsweredBefore, Once
from frontdesk.invitations.model import Delivery
from frontdesk.mapping.suggest.names import likely_field as likely_field_of
from frontdesk.plans import find_plan
from frontdesk.text import SHOWN_LENGTH, nearest_name
from frontdesk.web.endpoint import record_read
from frontdesk.web.idempotency import REPLAYED, once, once_each
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.request import (
    BATCH_LIMIT_BYTES,
    JSON_LINES,
    MOST_RECORDS,
    Request,
    note_ignored_fields,
    parse_json_object,
    read_text,
)
from frontdesk.web.response import NO_STORE, Header, Response, json_response

_INVITATION: dict[str, str] = {Delivery.IMMEDIATE: "immediate", Delivery.BATCHED: "queued"}
# Records of a batch that are parsed and committed together. Larger groups are hardly quicker, and hold up other callers longer.
_TOGETHER = 48
_NOT_TRIED = Unavailable("The database is busy. The record was not tried; send it again.")
_COUNTED = ("created", "updated", "unchanged", "moved", "refused")
_NOUN = "eligible member"
_NO_MISTAKES = {"country"}  # near to `county`, and something else

Kept = Callable[[int], Once[Enrolled] | None]  # by the index of a record


async def enrol_member(app: App, request: Request) -> Response:
    """Create or update an eligible member by external_id. All or nothing: with a single fault nothing is written, and every
    fault is reported. A member of another plan of the account moves to this one. Sending a request again is safe.
    `If-None-Match: *` only creates, `If-Match: *` and `only=update` only update, `move=false` moves no member.

    Body: EligibleMember
    Parameters: only move if_match if_none_match prefer idempotency_key
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
    kept = None if request.key_hash is None else once(request, _response)
    submission = Submission(request.account_id, plan_id, record, *by, intent=_intent(request), once=kept)
    return _response(await app.enrolments.submit(submission))


async def enrol_members(app: App, request: Request) -> Response:
    """Create or update up to 1,000 members. Each record is written or refused as if it had been sent alone, in this order; a
    refused record stops no other. The body is an array, or one record per line as `application/x-ndjson`, of 8 MiB at most. A
    condition counts for every record. The request counts once against the limit of requests. Sending it again is safe; with an
    `Idempotency-Key` each record that was written has its first result again, and the others are tried.

    Body: EligibleMembers
    Parameters: only move if_match if_none_match prefer idempotency_key
    207 BatchResults [Cache-Control Ignored-Fields]: The result of each record.
    Problems: conflict
    Faults: empty too_many_records not_allowed repeated
    """
    plan_id, intent = request.path_id("plan_id"), _intent(request)
    with request.uploading():
        values = await _read_batch(request)
        await app.lookups.ask(find_plan(request.account_id, plan_id))
        kept: Kept = await once_each(app, request, lambda each: json_response(_shown(each)))
        results = await _enrol_in_order(app, request, values, kept=kept, intent=intent)
    shown = [{"index": index} | _shown(result) for index, result in enumerate(results)]
    counts = Counter(str(each.get("outcome", "refused")) for each in shown)
    body = {
        "links": {"self": app.config.base_url + request.target},
        "data": shown,
        "counts": {name: counts[name] for name in _COUNTED},
    }
    if not any(isinstance(each, AnsweredBefore) for each in results):
        return json_response(body, status=207)
    await record_read(app, request, "answer.replayed")
    headers = () if any(isinstance(each, Enrolled) for each in results) else (REPLAYED,)
    return json_response(body, *headers, status=207)


async def _read_batch(request: Request) -> list[dict[str, Any] | Malformed]:
    """The records of the body, each with its own error if it is no JSON object. Raises HttpError, Malformed, Invalid."""
    raw = await request.body(limit_bytes=BATCH_LIMIT_BYTES)
    if not read_text(raw)[:1].isascii():
        raise Malformed("The body is not valid JSON: line 1, column 1.")  # as of a byte order mark
    is_lines = JSON_LINES in (request.header(b"content-type") or "").lower()
    source = Source(io.BufferedReader(io.BytesIO(raw)), "utf-8")
    values: list[dict[str, Any] | Malformed] = []
    for _, value in read_json(source, Format.JSON_LINES if is_lines else Format.JSON):
        if len(values) == MOST_RECORDS:
            raise Invalid([Fault("records", "too_many_records", f"must be {MOST_RECORDS:,} at most")])
        values.append(Malformed(f"The record {value.message}.") if isinstance(value, Fault) else value)
        if len(values) % _TOGETHER == 0:
            await asyncio.sleep(0)  # others take their turn
    if not values:
        raise Invalid([Fault("records", "empty", "must be one at least")])
    return values


async def _enrol_in_order(
    app: App, request: Request, values: Sequence[dict[str, Any] | Malformed], *, kept: Kept, intent: Intent
) -> list[Enrolled | Exception]:
    """The result of each record. Once the database answers none of a group, or the time is up, the others are not tried."""
    loop, today, strict = asyncio.get_running_loop(), app.clock().date().isoformat(), request.prefers_strict()
    place = (request.account_id, request.path_id("plan_id"))
    by = (request.caller.client_id, request.request_id)
    ends_at, results = loop.time() + ANSWER_SECONDS, list[Enrolled | Exception]()
    ignored: dict[str, Collection[str]] = {}
    while group := values[len(results) : len(results) + _TOGETHER]:
        sent: list[Submission] = []
        for index, body in enumerate(group, len(results)):
            if isinstance(body, dict):
                record = parse_member(body, today=today, strict=strict)
                ignored |= dict.fromkeys(record.ignored, body)
                sent.append(Submission(*place, record, *by, intent=intent, once=kept(index)))
        try:
            written = [*await app.enrolments.submit_together(sent)] if sent else []
        except Unavailable as error:
            written = [error] * len(sent)
        is_away = bool(sent) and all(isinstance(each, Unavailable) for each in written)
        results += [written.pop(0) if isinstance(each, dict) else each for each in group]
        if is_away or loop.time() > ends_at:
            results += [_NOT_TRIED] * (len(values) - len(results))
    if ignored:
        note_ignored_fields(request, [*ignored], lambda name: likely_field(name, ignored[name]))
    return results


def _shown(result: Enrolled | Exception) -> dict[str, Any]:
    """The result of a record of a batch: what the answer to its POST would say. Raises a fault of the service: the log has it,
    and the batch can be sent again."""
    if isinstance(result, AnsweredBefore):
        return dict(orjson.loads(result.answer.body))
    if isinstance(result, FrontdeskError):
        errors = {"errors": [fault.serialize() for fault in result.faults]} if result.faults else {}
        return {"status": PROBLEMS[result.kind].status, "detail": result.detail} | errors
    if isinstance(result, Exception):
        raise result
    left = {} if result.left_plan is None else {"left_plan": result.left_plan}
    return {
        "status": _status(result),
        "outcome": result.outcome,
        "id": result.answer["id"],
        "external_id": result.answer["external_id"],
        "changed": _changed(result),
        "invitation": _invitation(result),
        "warnings": _warnings(result),
    } | left


async def end_member(app: App, request: Request) -> Response:
    """End a member's access. `on` is the last day of access, as an `expiry_date` is; another day replaces it. Sending it again is
    safe.

    Body: MemberEnd
    Parameters: idempotency_key
    200 Eligibility [Eligibility-Outcome Invitation Cache-Control Ignored-Fields Eligibility-Changed]: The access ends on that
        day, or did so before.
    Problems: conflict
    Faults: required wrong_type not_a_date expiry_before_effective unknown_field
    """

    def ended(given: dict[str, object], stored: dict[str, Any]) -> model.MemberRecord:
        given = {"external_id": stored["external_id"], "expiry_date": given.get("on")}
        record = parse_member(given, today="")
        if record.faults or record.given["expiry_date"] is not None:
            return record
        return replace(record, faults=(Fault("expiry_date", "required", "must be the last day of access"),))

    try:
        return await _change(app, request, ("on",), ended, Action.END)
    except Invalid as error:
        named = {"expiry_date": "on"}
        faults = [each._replace(field=named.get(each.field, each.field)) for each in error.faults]
        raise Invalid(faults) from None


async def rename_member(app: App, request: Request) -> Response:
    """Give a member another external_id. Its `id`, history and invitation stay. The old identifier is free afterwards.

    Body: MemberRename
    Parameters: idempotency_key
    200 Eligibility [Eligibility-Outcome Invitation Cache-Control Ignored-Fields Eligibility-Changed Eligibility-Warnings]: The
        member has the identifier, or had it before.
    Problems: conflict
    Faults: required wrong_type too_long control_character not_unique unknown_field
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
    """Change the path's member by the fields of these names. `record_of` makes the record of the fields and of the stored member,
    by column. Raises Malformed, NotFound, Invalid, AnsweredBefore; Conflict if another request renames or merges the member at
    the same time."""
    body = parse_json_object(await request.body())
    if unknown := [name for name in body if name not in names]:
        note_ignored_fields(request, unknown, lambda name: nearest_name(name, names))
    account_id, plan_id = request.account_id, request.path_id("plan_id", of=_NOUN)
    eligibility_id, kept = request.path_id("eligibility_id", of=_NOUN), once(request, _response)

    def find(tx: Tx) -> dict[str, Any]:
        if kept is not None:
            refuse_answered(tx, kept)  # first: the member may have left the plan since
        return reading.get_member(tx, eligibility_id, account_id=account_id, plan_id=plan_id)

    stored = await app.ask(find)
    record = record_of({name: body[name] for name in names if name in body}, stored)
    faults = (*(unknown_faults(unknown) if request.prefers_strict() else ()), *record.faults)
    record = replace(record, external_id=stored["external_id"], faults=faults)
    by, intent = (request.caller.client_id, request.request_id), Intent(False, True, False, eligibility_id)
    submission = Submission(account_id, plan_id, record, *by, action, intent=intent, once=kept)
    return _response(await app.enrolments.submit(submission))


def _intent(request: Request) -> Intent:
    """What the request lets its records do, by its conditions. Raises Malformed for conditions that exclude each other, and for a
    version in a condition."""
    match, none_match = request.header(b"if-match"), request.header(b"if-none-match")
    if match is none_match is None and not request.parameters:
        return ANY_INTENT
    match, none_match = (match or "").strip(), (none_match or "").strip()
    if not {match, none_match} <= {"", "*"}:
        raise Malformed("If-Match and If-None-Match take * only here: a member is not compared by versions.")
    updates_only = bool(match) or "only" in request.parameters
    if none_match and updates_only:
        raise Malformed("One condition asks for a new member, another for a stored one. Send one of them.")
    return Intent(not updates_only, not none_match, request.parameters.get("move", True))


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
    return Response(_status(enrolled), orjson.dumps(enrolled.answer), _headers(enrolled))


def _headers(enrolled: Enrolled) -> tuple[Header, ...]:
    """The outcome, in headers: the body has the nine documented fields only."""
    headers: tuple[Header, ...] = (
        (b"eligibility-outcome", enrolled.outcome.encode()),
        (b"invitation", _invitation(enrolled).encode()),
        NO_STORE,
    )
    if changed := _changed(enrolled):
        headers += ((b"eligibility-changed", ",".join(changed).encode()),)
    if enrolled.warnings:
        headers += ((b"eligibility-warnings", ",".join(_warnings(enrolled)).encode()),)
    if enrolled.left_plan is not None:
        headers += ((b"eligibility-left-plan", quote(enrolled.left_plan, safe="").encode()),)
    return headers


def _status(enrolled: Enrolled) -> int:
    return 201 if enrolled.outcome is Outcome.CREATED else 200


def _invitation(enrolled: Enrolled) -> str:
    decision = enrolled.invitation
    return _INVITATION.get(decision) or f"none; reason={decision}"


def _changed(enrolled: Enrolled) -> list[str]:
    return (
        [] if enrolled.outcome is Outcome.CREATED else [name for name in enrolled.changes if name in FIELDS]
    )


def _warnings(enrolled: Enrolled) -> list[str]:
    return [each.replace("; looks like member ", ";member=") for each in enrolled.warnings]
