"""A batch: up to 1,000 members in one request, each with a result of its own (docs/interface.md, Many
members in one request).
"""

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.eligibility import (
    GROUP,
    changed_fields,
    intent_of,
    invitation_of,
    likely_field,
    status_of,
    warnings_of,
)
from frontdesk.api.envelope import links_of
from frontdesk.api.paths import Path
from frontdesk.app import ANSWER_SECONDS, App
from frontdesk.codes import Kind
from frontdesk.eligibility import model, parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import MOST_RECORDS, Enrolled, Intent, Submission
from frontdesk.errors import Fault, FrontdeskError, Invalid, Malformed, Unavailable
from frontdesk.formats.json_rows import TooManyBlankLines, parse_row, read_texts
from frontdesk.formats.model import Format
from frontdesk.formats.source import Source
from frontdesk.idempotency.model import AnsweredBefore, Once
from frontdesk.interface import present
from frontdesk.interface.operations import Answer
from frontdesk.interface.parameters import (
    CACHE_CONTROL,
    EMAIL_TAKEN,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    IGNORED_FIELDS,
    MOVE_OF_BATCH,
    ONLY,
    PREFER,
)
from frontdesk.interface.types import member_writes as types
from frontdesk.plans import find_plan
from frontdesk.text import SHOWN_LENGTH, SHOWN_NAMES
from frontdesk.time_slices import TimeSlice
from frontdesk.web.endpoint import record_read
from frontdesk.web.idempotency import REPLAYED, once_each
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.request import (
    BATCH_LIMIT_BYTES,
    BLOCK_BYTES,
    JSON_LINES,
    MOST_BLANK_LINES,
    Request,
    check_text,
    hash_text,
    note_ignored_fields,
)
from frontdesk.web.response import Header, Response, json_response, large_json_response

# Records of a batch that are parsed and committed together. Larger groups are hardly quicker, and
# hold up other callers longer.
_TOGETHER = 48
_NOT_TRIED = Unavailable("The database is busy. The record was not tried; send it again.")
LINES_BLOCK_BYTES = 8 * 1024  # splitting 64 KiB of line feeds takes 9 ms
COUNTED_NAMES = 1000  # of unknown fields, of which the answer says how many there are
_COUNTED = ("created", "updated", "unchanged", "moved", "reopened", "refused")

OnceOf = Callable[[int], Once[Enrolled] | None]  # by the index of a record


@dataclass(slots=True)
class _IgnoredFields:
    """The unknown fields of a batch: of each record by its index, as they are shown, and those of
    all, each with the fields that are given beside it, up to COUNTED_NAMES.
    """

    of_record: dict[int, list[str]] = field(default_factory=dict)
    beside: dict[str, Collection[str]] = field(default_factory=dict)

    def note(self, index: int, record: model.MemberRecord, body: Collection[str]) -> None:
        if not record.ignored:
            return
        self.of_record[index] = [name[:SHOWN_LENGTH] for name in record.ignored[:SHOWN_NAMES]]
        given = FIELDS.keys() & body
        for name in record.ignored[: COUNTED_NAMES - len(self.beside)]:
            self.beside[name] = given


class _Batch(NamedTuple):
    """The texts of a batch's records, what they may do, and the unknown fields that are found."""

    texts: Sequence[str]
    once_of: OnceOf
    intent: Intent
    ignored: _IgnoredFields


@GROUP.post(
    Path.MEMBER_BATCH,
    scope=Scope.ELIGIBILITY_WRITE,
    is_bulk=True,
    body=types.EligibleMembers,
    takes_lines=True,
    parameters=[ONLY, MOVE_OF_BATCH, EMAIL_TAKEN, IF_MATCH, IF_NONE_MATCH, PREFER, IDEMPOTENCY_KEY],
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
    stops no other. A member of another plan moves only with `move=true`. The body is an array, or
    one record per line as `application/x-ndjson`, of 8 MiB at most. A condition
    counts for every record. The request counts once against the limit of requests. Sending it again
    is safe; with an `Idempotency-Key` each record that was written has its first result again, and
    the others are tried.
    """
    app.refuse_used_up_storage(request.account_id)
    intent = intent_of(request, moves=False)
    with request.uploading(request.account_id):
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
    ignored = _IgnoredFields()
    batch = _Batch(texts, once_of, intent, ignored)
    results = await _enrol_in_order(app, request, batch, time_slice)
    if ignored.beside:
        names = [*ignored.beside]
        note_ignored_fields(request, names, lambda name: likely_field(name, ignored.beside[name]))
    headers: tuple[Header, ...] = ()
    if any(isinstance(each, AnsweredBefore) for each in results):
        await record_read(app, request, "answer.replayed")
        headers = () if any(isinstance(each, Enrolled) for each in results) else (REPLAYED,)
    of_record = {} if request.prefers_strict() else ignored.of_record
    pieces = await _write_results(app, request, results, time_slice, ignored=of_record)
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
    app: App,
    request: Request,
    results: Sequence[Enrolled | Exception],
    time_slice: TimeSlice,
    *,
    ignored: Mapping[int, list[str]],
) -> list[bytes]:
    """The answer to a batch as pieces of JSON; `ignored` has the unknown fields of records, by index.
    Raises as `_shown` does.
    """
    links = orjson.dumps(links_of(app, request))
    pieces = [b'{"links":', links, b',"data":[']
    counts = Counter[str]()
    for index, result in enumerate(results):
        each = {"index": index} | _shown(result)
        if index in ignored:
            each["ignored_fields"] = ignored[index]
        pieces += (b"," if index else b"", orjson.dumps(each, option=orjson.OPT_UTC_Z))
        counts[str(each.get("outcome", "refused"))] += 1
        await time_slice.pause_if_due()
    counted = orjson.dumps({name: counts[name] for name in _COUNTED})
    return [*pieces, b'],"counts":', counted, b"}"]


async def _enrol_in_order(
    app: App, request: Request, batch: _Batch, time_slice: TimeSlice
) -> list[Enrolled | Exception]:
    """The result of each record. Once the database answers none of a group, or the time is up, the
    others are not tried.
    """
    loop = asyncio.get_running_loop()
    today = app.day_of(request.caller).latest
    strict = request.prefers_strict()
    place = (request.account_id, request.path_id("plan_id"))
    by = (request.caller.client_id, request.request_id)
    ends_at = loop.time() + ANSWER_SECONDS
    results: list[Enrolled | Exception] = []
    texts = batch.texts
    while group := texts[len(results) : len(results) + _TOGETHER]:
        sent: list[Submission] = []
        errors: dict[int, Malformed] = {}  # by the place in the group
        for place_in_group, text in enumerate(group):
            body = parse_row(text)
            if isinstance(body, Fault):
                errors[place_in_group] = Malformed(f"The record {body.message}.")
            else:
                record = parse_member(body, today=today, strict=strict)
                index = len(results) + place_in_group
                batch.ignored.note(index, record, body)
                own = batch.once_of(index)
                sent.append(Submission(*place, record, *by, intent=batch.intent, once=own))
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
    return results


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
        "status": status_of(result),
        "outcome": result.outcome,
        "id": member["id"],
        "external_id": member["external_id"],
        "changed": changed_fields(result),
        "invitation": invitation_of(result),
        "warnings": warnings_of(result),
    } | left
