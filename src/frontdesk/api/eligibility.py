"""Members of a plan, written by requests: one, a batch, an end, a new identifier
(docs/interface.md, Eligible members).
"""

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.envelope import links_of
from frontdesk.api.paths import Path
from frontdesk.app import ANSWER_SECONDS, App
from frontdesk.codes import Kind
from frontdesk.codes.operators import Noun
from frontdesk.db import Tx
from frontdesk.eligibility import model, parse_member, reading
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import (
    ANY_INTENT,
    MOST_RECORDS,
    Action,
    Enrolled,
    Intent,
    Outcome,
    Submission,
)
from frontdesk.errors import Fault, FrontdeskError, Invalid, Malformed, Unavailable, unknown_faults
from frontdesk.formats.json_rows import TooManyBlankLines, parse_row, read_texts
from frontdesk.formats.model import Format
from frontdesk.formats.source import Source
from frontdesk.idempotency import refuse_answered
from frontdesk.idempotency.model import AnsweredBefore, Once
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    ELIGIBILITY_CHANGED,
    ELIGIBILITY_LEFT_PLAN,
    ELIGIBILITY_OUTCOME,
    ELIGIBILITY_WARNINGS,
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
from frontdesk.plans import find_plan
from frontdesk.text import SHOWN_LENGTH, nearest_name
from frontdesk.time_slices import TimeSlice
from frontdesk.web.endpoint import record_read
from frontdesk.web.idempotency import REPLAYED, once, once_each
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.request import (
    BATCH_LIMIT_BYTES,
    BLOCK_BYTES,
    JSON_LINES,
    LARGE_BODY_BYTES,
    MOST_BLANK_LINES,
    Request,
    check_text,
    hash_text,
    note_ignored_fields,
    parse_json_object,
)
from frontdesk.web.response import NO_STORE, Header, Response, json_response, large_json_response

GROUP = Group("Eligibility", "Members who are eligible under a plan, one by one.")

_INVITATION: dict[str, str] = {Delivery.IMMEDIATE: "immediate", Delivery.BATCHED: "queued"}
# Records of a batch that are parsed and committed together. Larger groups are hardly quicker, and
# hold up other callers longer.
_TOGETHER = 48
_NOT_TRIED = Unavailable("The database is busy. The record was not tried; send it again.")
LINES_BLOCK_BYTES = 8 * 1024  # splitting 64 KiB of line feeds takes 9 ms
COUNTED_NAMES = 1000  # of unknown fields, of which the answer says how many there are
_COUNTED = ("created", "updated", "unchanged", "moved", "refused")
_NOUN: Noun = "eligible member"
_NO_MISTAKES = {"country"}  # near to `county`, and something else

OnceOf = Callable[[int], Once[Enrolled] | None]  # by the index of a record


@GROUP.post(
    Path.MEMBERS,
    scope=Scope.ELIGIBILITY_WRITE,
    body=types.EligibleMember,
    parameters=[ONLY, MOVE, IF_MATCH, IF_NONE_MATCH, PREFER, IDEMPOTENCY_KEY],
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
        body, today=app.clock().date().isoformat(), strict=request.prefers_strict()
    )
    if record.ignored:
        note_ignored_fields(request, record.ignored, lambda name: likely_field(name, body))
    by = (request.caller.client_id, request.request_id)
    own = None if request.key_hash is None else once(request, _response)
    return Submission(request.account_id, plan_id, record, *by, intent=_intent(request), once=own)


@GROUP.post(
    Path.MEMBER_BATCH,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    body=types.EligibleMembers,
    takes_lines=True,
    parameters=[ONLY, MOVE, IF_MATCH, IF_NONE_MATCH, PREFER, IDEMPOTENCY_KEY],
    answers={
        207: Answer(
            "The result of each record.",
            types.BatchResults,
            headers=[CACHE_CONTROL, IGNORED_FIELDS],
        )
    },
    problems=[Kind.CONFLICT],
    faults=[
        codes.faults.EMPTY,
        codes.faults.TOO_MANY_RECORDS,
        codes.faults.TOO_MANY_BLANK_LINES,
        codes.faults.NOT_ALLOWED,
        codes.faults.REPEATED,
    ],
)
async def enrol_members(app: App, request: Request) -> Response:
    """Create or update up to 1,000 members.

    Each record is written or refused as if it had been sent alone, in this order; a refused record
    stops no other. The body is an array, or one record per line as `application/x-ndjson`, of 8 MiB
    at most. A condition counts for every record. The request counts once against the limit of
    requests. Sending it again is safe; with an `Idempotency-Key` each record that was written has
    its first result again, and the others are tried.
    """
    app.refuse_used_up_storage(request.account_id)
    intent = _intent(request)
    with request.uploading():
        raw = await request.body(limit_bytes=BATCH_LIMIT_BYTES)
        async with app.fair_share.admitted(request.account_id):
            return await _enrol_batch(app, request, raw, intent)


async def _enrol_batch(app: App, request: Request, raw: bytes, intent: Intent) -> Response:
    """The answer to the batch. Raises Malformed, Invalid, NotFound, Unavailable."""
    time_slice = app.slices.begin()
    try:
        texts = await _read_batch(request, raw, time_slice)
    except TooManyBlankLines:
        rule = f"must have {MOST_BLANK_LINES:,} blank lines between them at most"
        raise Invalid([Fault("records", codes.faults.TOO_MANY_BLANK_LINES, rule)]) from None
    await app.lookups.ask(find_plan(request.account_id, request.path_id("plan_id")))
    if request.key_hash is not None:
        request.raw_sha256 = await hash_text(raw, time_slice)
    once_of: OnceOf = await once_each(
        app, request, lambda each: json_response(_shown(each)), parts_together=_TOGETHER
    )
    results = await _enrol_in_order(app, request, texts, time_slice, once_of=once_of, intent=intent)
    headers: tuple[Header, ...] = ()
    if any(isinstance(each, AnsweredBefore) for each in results):
        await record_read(app, request, "answer.replayed")
        headers = () if any(isinstance(each, Enrolled) for each in results) else (REPLAYED,)
    pieces = await _write_results(app, request, results, time_slice)
    return large_json_response(pieces, *headers, status=207)


async def _read_batch(request: Request, raw: bytes, time_slice: TimeSlice) -> list[str]:
    """The texts of the records. They are parsed one group at a time: values by the million would
    hold up the event loop while the garbage collector looks at them. Raises Malformed, Invalid,
    TooManyBlankLines.
    """
    await check_text(raw, time_slice)
    if not raw[:1].isascii():
        raise Malformed("The body is not valid JSON: line 1, column 1.")  # as of a byte order mark
    is_lines = JSON_LINES in (request.header(b"content-type") or "").lower()
    format_ = Format.JSON_LINES if is_lines else Format.JSON
    block_bytes = LINES_BLOCK_BYTES if is_lines else BLOCK_BYTES
    source = Source(io.BufferedReader(io.BytesIO(raw)), "utf-8", block_bytes=block_bytes)
    texts: list[str] = []
    for _, text in read_texts(source, format_, most_blank_lines=MOST_BLANK_LINES):
        if len(texts) == MOST_RECORDS:
            raise Invalid(
                [
                    Fault(
                        "records",
                        codes.faults.TOO_MANY_RECORDS,
                        f"must be {MOST_RECORDS:,} at most",
                    )
                ]
            )
        texts.append(text)
        await time_slice.pause_if_due()
    if not texts:
        raise Invalid([Fault("records", codes.faults.EMPTY, "must be one at least")])
    return texts


async def _write_results(
    app: App, request: Request, results: Sequence[Enrolled | Exception], time_slice: TimeSlice
) -> list[bytes]:
    """The answer to a batch as pieces of JSON. Raises as `_shown` does."""
    links = orjson.dumps(links_of(app, request))
    pieces = [b'{"links":', links, b',"data":[']
    counts = Counter[str]()
    for index, result in enumerate(results):
        each = {"index": index} | _shown(result)
        pieces += (b"," if index else b"", orjson.dumps(each, option=orjson.OPT_UTC_Z))
        counts[str(each.get("outcome", "refused"))] += 1
        await time_slice.pause_if_due()
    counted = orjson.dumps({name: counts[name] for name in _COUNTED})
    return [*pieces, b'],"counts":', counted, b"}"]


async def _enrol_in_order(
    app: App,
    request: Request,
    texts: Sequence[str],
    time_slice: TimeSlice,
    *,
    once_of: OnceOf,
    intent: Intent,
) -> list[Enrolled | Exception]:
    """The result of each record. Once the database answers none of a group, or the time is up, the
    others are not tried.
    """
    loop = asyncio.get_running_loop()
    today = app.clock().date().isoformat()
    strict = request.prefers_strict()
    place = (request.account_id, request.path_id("plan_id"))
    by = (request.caller.client_id, request.request_id)
    ends_at = loop.time() + ANSWER_SECONDS
    results: list[Enrolled | Exception] = []
    ignored: dict[str, Collection[str]] = {}
    while group := texts[len(results) : len(results) + _TOGETHER]:
        sent: list[Submission] = []
        errors: dict[int, Malformed] = {}  # by the place in the group
        for place_in_group, text in enumerate(group):
            body = parse_row(text)
            if isinstance(body, Fault):
                errors[place_in_group] = Malformed(f"The record {body.message}.")
            else:
                record = parse_member(body, today=today, strict=strict)
                _note_unknown(ignored, record, body)
                own = once_of(len(results) + place_in_group)
                sent.append(Submission(*place, record, *by, intent=intent, once=own))
            await time_slice.pause_if_due()
        try:
            written = [*await app.enrolments.submit_together(sent)] if sent else []
        except Unavailable as error:
            written = [error] * len(sent)
        is_away = bool(sent) and all(isinstance(each, Unavailable) for each in written)
        answers = iter(written)
        results += [errors[n] if n in errors else next(answers) for n in range(len(group))]
        if is_away or loop.time() > ends_at:
            results += [_NOT_TRIED] * (len(texts) - len(results))
    if ignored:
        note_ignored_fields(request, [*ignored], lambda name: likely_field(name, ignored[name]))
    return results


def _note_unknown(
    ignored: dict[str, Collection[str]], record: model.MemberRecord, body: Collection[str]
) -> None:
    """Note the record's unknown fields, each with the fields that are given beside it, up to
    COUNTED_NAMES.
    """
    if not record.ignored or len(ignored) >= COUNTED_NAMES:
        return
    beside = FIELDS.keys() & body
    for name in record.ignored[: COUNTED_NAMES - len(ignored)]:
        ignored[name] = beside


def _shown(result: Enrolled | Exception) -> dict[str, Any]:
    """The result of a record of a batch: what the answer to its POST would say. Raises a fault of
    the service: the log has it, and the batch can be sent again.
    """
    if isinstance(result, AnsweredBefore):
        return dict(orjson.loads(result.answer.body))
    if isinstance(result, FrontdeskError):
        errors = {"errors": [fault.serialize() for fault in result.faults]} if result.faults else {}
        return {"status": PROBLEMS[result.kind].status, "detail": result.detail} | errors
    if isinstance(result, Exception):
        raise result
    left = {} if result.left_plan is None else {"left_plan": result.left_plan}
    member = present.member(result)
    return {
        "status": _status(result),
        "outcome": result.outcome,
        "id": member["id"],
        "external_id": member["external_id"],
        "changed": _changed(result),
        "invitation": _invitation(result),
        "warnings": _warnings(result),
    } | left


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


def _intent(request: Request) -> Intent:
    """What the request lets its records do, by its conditions. Raises Malformed for conditions that
    exclude each other, and for a version in a condition.
    """
    match = request.header(b"if-match")
    none_match = request.header(b"if-none-match")
    if match is none_match is None and not request.parameters:
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
    return Intent(not updates_only, not none_match, request.parameters.get("move", True))


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
    return Response(_status(enrolled), orjson.dumps(present.member(enrolled)), _headers(enrolled))


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
    if isinstance(decision, QueuedReason):
        return f"queued; reason={decision}"
    return _INVITATION.get(decision) or f"none; reason={decision}"


def _changed(enrolled: Enrolled) -> list[str]:
    return (
        []
        if enrolled.outcome is Outcome.CREATED
        else [name for name in enrolled.changes if name in FIELDS]
    )


def _warnings(enrolled: Enrolled) -> list[str]:
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
